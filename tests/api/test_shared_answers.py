"""Large answers for several clients at the same time: computed once, and sent in separate turns of the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from appliance.api.http_server.unsent_bytes import UnsentBytes
from appliance.api.route import ApiResource
from appliance.api.routes.completions import CompletionsApi
from appliance.api.routes.devices import DevicesApi
from appliance.api.routes.files import FilesApi
from appliance.api.routes.status import StatusApi
from appliance.api.routes.variables import TimersApi
from appliance.automations.timers import Timer
from appliance.event_loop import SHORT_TURN_SECS, loop_lag, run
from appliance.files.home_files import FileEntry
from tests.fakes.clock import SteppingClock

CLIENTS = 16


class Computed(Exception):
    """Raised by the first step of a computation, so that a test needs no other part of the hub."""


class Hub:
    """The first parts that the computations use. Counts the computations."""

    def __init__(self) -> None:
        self.computations = 0
        self.store = SimpleNamespace(recorder=SimpleNamespace(list_present=self._compute_later))
        self.files = SimpleNamespace(list_files=self._compute_later)
        self.names = SimpleNamespace(find_known=self._compute_later)
        self.figures = SimpleNamespace(collect=self._compute_later)

    def _compute(self) -> object:
        self.computations += 1
        raise Computed

    async def _compute_later(self, *_: object) -> object:
        await asyncio.sleep(0)
        return self._compute()


@pytest.mark.parametrize(
    ("resource", "handler"),
    [(StatusApi, "list_state"), (StatusApi, "show_status"), (CompletionsApi, "list_all"), (FilesApi, "list_all")],
)
async def test_clients_share_one_computation(resource: type[ApiResource], handler: str) -> None:
    hub = Hub()
    parts: Any = SimpleNamespace(hub=hub, figures=hub.figures, unsent=UnsentBytes(1))
    handle = getattr(resource(parts), handler)
    results = await asyncio.gather(*(handle(None) for _ in range(CLIENTS)), return_exceptions=True)
    assert hub.computations == 1
    assert [type(each) for each in results] == [Computed] * CLIENTS


def test_large_pictures_are_sent_in_separate_turns() -> None:
    turns: list[int] = []
    picture = SimpleNamespace(body=b"", media_type="image/png", at=datetime(2026, 1, 1, tzinfo=UTC))

    async def find(*_: object) -> object:
        await asyncio.sleep(0)  # all pictures are found in one turn
        return picture

    async def request(handle: Any) -> None:
        await handle(SimpleNamespace(query=lambda: {"attribute": None}), "x")
        turns.append(loop_lag().turns)
        time.sleep(2 * SHORT_TURN_SECS)  # noqa: ASYNC251 - sends a large picture

    async def request_all() -> None:
        registry = SimpleNamespace(get_device=lambda _: None)
        parts: Any = SimpleNamespace(hub=SimpleNamespace(registry=registry, dispatcher=SimpleNamespace(picture=find)))
        await asyncio.gather(*(request(DevicesApi(parts).picture) for _ in range(4)))

    run(request_all())
    assert len({*turns}) == 4


async def _list_files() -> list[FileEntry]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [FileEntry(path=str(each), kind="scene", size=1, modified_at=at, version="x") for each in range(20)]


def _list_timers() -> Iterator[Timer]:
    return (Timer(name=str(each), due_at=datetime(2026, 1, 1, tzinfo=UTC), payload=each) for each in range(20))


@pytest.mark.parametrize(
    ("resource", "things", "field"), [(FilesApi, "files", "path"), (TimersApi, "timers", "name")]
)
def test_long_lists_are_encoded_in_separate_turns(resource: type[ApiResource], things: str, field: str) -> None:
    async def request() -> tuple[Any, int]:
        environment = SimpleNamespace(timers=SimpleNamespace(list_all=_list_timers))
        files = SimpleNamespace(list_files=_list_files)
        hub = SimpleNamespace(clock=SteppingClock(), environment=environment, files=files)
        handlers: Any = resource(cast("Any", SimpleNamespace(hub=hub)))
        before = loop_lag().turns
        return await handlers.list_all(SimpleNamespace()), loop_lag().turns - before

    body, turns = run(request())
    answer = orjson.loads(body)
    listed = answer if isinstance(answer, list) else answer[things]
    assert turns >= 20 and [each[field] for each in listed] == [*map(str, range(20))]
