"""Large answers for several clients at the same time: computed once, and sent in separate turns of the loop."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from appliance.api.route import ApiResource
from appliance.api.routes.completions import CompletionsApi
from appliance.api.routes.devices import DevicesApi
from appliance.api.routes.status import StatusApi
from appliance.api.routes.variables import TimersApi
from appliance.automations.timers import Timer
from appliance.event_loop import SHORT_TURN_SECS, loop_lag, run
from tests.fakes.clock import SteppingClock

CLIENTS = 16


class Computed(Exception):
    """Raised by the first step of a computation, so that a test needs no other part of the hub."""


class Hub:
    """The first parts that the computations use. Counts the computations."""

    def __init__(self) -> None:
        self.computations = 0
        self.store = SimpleNamespace(recorder=SimpleNamespace(list_present=self._compute_later))
        self.names = SimpleNamespace(find_known=self._compute_later)
        self.figures = SimpleNamespace(tree=self._compute)

    def _compute(self) -> object:
        self.computations += 1
        raise Computed

    async def _compute_later(self, *_: object) -> object:
        await asyncio.sleep(0)
        return self._compute()


@pytest.mark.parametrize(
    ("resource", "handler"),
    [(StatusApi, "list_state"), (StatusApi, "show_status"), (CompletionsApi, "list_all")],
)
async def test_clients_share_one_computation(resource: type[ApiResource], handler: str) -> None:
    hub = Hub()
    parts: Any = SimpleNamespace(hub=hub, figures=hub.figures)
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


def test_timers_are_encoded_in_separate_turns() -> None:
    timers = [Timer(name=str(each), due_at=datetime(2026, 1, 1, tzinfo=UTC), payload=each) for each in range(20)]

    async def request() -> tuple[Any, int]:
        environment = SimpleNamespace(timers=SimpleNamespace(list_all=lambda: iter(timers)))
        parts: Any = SimpleNamespace(hub=SimpleNamespace(clock=SteppingClock(), environment=environment))
        before, call = loop_lag().turns, SimpleNamespace()
        return await TimersApi(parts).list_all(call), loop_lag().turns - before

    body, turns = run(request())
    assert turns == len(timers) and [each["payload"] for each in orjson.loads(body)] == [*range(20)]
