"""The adapters of a configuration: how they begin."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from appliance.adapters.adapter_setup import AdapterStart
from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from tests.fakes.context import context_of

LAMPS = 50


class Turns:
    """Counts the turns of the running loop, and how many requests begin in each; none is ever answered."""

    def __init__(self) -> None:
        self.brief = self.lasting = self
        self.number = 0
        self.requests = Counter[int]()
        self._count()

    def _count(self) -> None:
        self.number += 1
        asyncio.get_running_loop().call_soon(self._count)

    def request(self, *_: Any, **__: Any) -> Any:
        """Count it."""
        self.requests[self.number] += 1
        return self

    ws_connect = request

    async def __aenter__(self) -> Any:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None: ...


async def test_no_two_adapters_begin_in_one_turn_of_the_loop() -> None:
    bus, clock, turns = Bus(), Clock(), Turns()
    start = AdapterStart({f"lamp{each}": ElgatoLights(base_url="http://lamp") for each in range(LAMPS)})
    unused: Any = None
    record = context_of("x", None, clock).record
    runners = start.build_runners(Registry(bus, clock), bus, clock, lambda _: unused, lambda: turns, record, Path())
    async with AsyncExitStack() as stack, asyncio.timeout(5):
        for runner in runners:
            await stack.enter_async_context(runner)
        await start.begin()
        while turns.requests.total() < LAMPS:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
    assert max(turns.requests.values()) == 1
