"""The order in which the runs of clients begin, and the share of the worker that they may use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from appliance.lua.running.client_queue import (
    MAX_SHARE,
    MAX_SHARE_OF_NEW_CLIENT,
    MAX_SHARE_OF_NEW_FILE,
    ClientQueue,
)
from appliance.lua_worker.protocol import FrameKind


def test_clients_and_files_with_few_computing_executions_begin_first() -> None:
    def run(client: str, name: str, number: int) -> Any:
        return SimpleNamespace(client=client, name=name, number=number)

    def order(*computing: Any, share: float = 0.0) -> list[int]:
        waiting = ClientQueue()
        for each in (run("a", "x", 1), run("a", "x", 2), run("a", "y", 3), run("b", "x", 4)):
            waiting.append((each, FrameKind.EXECUTE, ()))
        every = list(computing)
        while following := waiting.find_next(every, share):
            every.append(following.popleft()[0])
        return [each.number for each in every[len(computing) :]]

    assert order() == [1, 4, 3, 2]
    assert order(run("b", "z", 0)) == [1, 3, 4, 2]
    assert order(run("a", "x", 0), share=MAX_SHARE) == [4, 3, 1, 2]
    assert order(run("a", "x", 0), share=MAX_SHARE_OF_NEW_FILE) == [4, 3]
    assert order(run("a", "x", 0), share=MAX_SHARE_OF_NEW_CLIENT) == [4]
    assert order(share=1.0) == []
