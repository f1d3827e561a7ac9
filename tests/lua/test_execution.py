"""An execution inside the worker, on the test's own thread: what arrives while it still tells the hub something."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from appliance.lua_worker.protocol import TIMING, Decoder, FrameKind, Reason
from appliance.lua_worker.worker_execution import WorkerExecution

TEXT = b"return {execute = function(ctx) ctx:get_device('a') end}"
NOW = TIMING.pack(5.0, Reason.CPU, 0.0)

ARRIVALS: tuple[tuple[Callable[[WorkerExecution], Callable[[], None] | None], FrameKind], ...] = (
    (lambda execution: execution.take_answer((NOW, b"1", b"null")), FrameKind.DONE),
    (lambda execution: execution.take_answer((NOW, b"", b"no such device")), FrameKind.FAILED),
    (lambda execution: execution.take_stop(Reason.CANCELLED), FrameKind.STOPPED),
)


@pytest.mark.parametrize(("arrival", "last"), ARRIVALS)
def test_what_the_hub_says_may_come_before_the_request_is_quite_sent(
    arrival: Callable[[WorkerExecution], Callable[[], None] | None], last: FrameKind
) -> None:
    """Another thread may end the execution, and free its state, while the one that made the request is in `send`."""
    told: list[FrameKind] = []

    def send(data: bytes) -> None:
        [frame] = Decoder().feed(data)
        told.append(frame.kind)
        if frame.kind is FrameKind.REQUEST:
            job = arrival(execution)
            assert job is not None
            job()

    over: list[int] = []
    execution = WorkerExecution(1 << 24, send, over.append)
    execution.begin(FrameKind.EXECUTE, (NOW, TEXT, b"x.lua", b""))
    assert told == [FrameKind.REQUEST, last]
    assert over == [execution.number] and execution.memory == 0


def test_an_execution_that_is_told_to_stop_before_it_asks_asks_nothing() -> None:
    told: list[bytes] = []
    execution = WorkerExecution(1 << 24, told.append, lambda _: None)
    assert execution.take_stop(Reason.BACKSTOP) is None
    execution.begin(FrameKind.EXECUTE, (NOW, TEXT, b"x.lua", b""))
    [frame] = Decoder().feed(b"".join(told))
    assert (frame.kind, frame.parts[0][0]) == (FrameKind.STOPPED, Reason.BACKSTOP)
