"""The start and the stop of the adapters of a configuration."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from appliance import config
from appliance.adapters.device_http.session import DeviceSession
from appliance.adapters.elgato_lights.adapter import ElgatoAdapter
from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.kinds import kind_of
from appliance.adapters.mqtt.out.section_publishers import PUBLISH_RETRY_SECS, SectionPublishers
from appliance.adapters.polling import PollingAdapter
from appliance.adapters.roku_tv.adapter import RokuAdapter
from appliance.adapters.running_adapters import RunningAdapters
from appliance.clock import Clock
from appliance.errors import StoreFailed
from tests.fakes.clock import VirtualClock
from tests.fakes.context import context_of
from tests.fakes.patience import until

LAMPS = 50


class Turns:
    """Counts the iterations of the running event loop, and the requests that begin in each iteration. No request is
    answered."""

    def __init__(self) -> None:
        self.fresh = self.lasting = self.connector = self
        self.force_close = False
        self.number = 0
        self.requests = Counter[int]()
        self._count()

    def _count(self) -> None:
        self.number += 1
        asyncio.get_running_loop().call_soon(self._count)

    def request(self, *_: Any, **__: Any) -> Any:
        self.requests[self.number] += 1
        return self

    ws_connect = request

    async def connect(self, *_: Any) -> Any:
        self.requests[self.number] += 1
        await asyncio.Event().wait()

    async def __aenter__(self) -> Any:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None: ...


async def test_no_two_adapters_start_in_one_turn_of_the_loop() -> None:
    clock, turns = Clock(), Turns()
    sections = {f"lamp{each}": ElgatoLights(base_url="http://lamp") for each in range(LAMPS)}
    running = RunningAdapters(sections, lambda name: context_of(name, turns, clock))
    async with AsyncExitStack() as stack, asyncio.timeout(5):
        for runner in running.runners:
            await stack.enter_async_context(runner)
        await running.begin()
        while turns.requests.total() < LAMPS:  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(0)
    assert max(turns.requests.values()) == 1


class Leaving:
    """A part of a section that stops only once all other parts are stopping."""

    def __init__(self, barrier: asyncio.Barrier) -> None:
        self._barrier = barrier

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None:
        await self._barrier.wait()


async def test_all_sections_and_all_parts_of_a_section_stop_at_once() -> None:
    barrier = asyncio.Barrier(2 * LAMPS)
    async with asyncio.timeout(5), RunningAdapters({}, lambda name: context_of(name, None, Clock())) as running:
        for each in range(2 * LAMPS):
            await running.enter(f"lamp{each // 2}", Leaving(barrier))


HOME = """
[adapters.roku_tv]
ip_address = "192.168.1.30"

[adapters.desk]
type = "elgato_lights"
base_url = "http://192.168.1.20:9123/"
poll_interval_secs = 1

[adapters.elgato_lights]
base_url = "http://lamp.local"
poll_interval_secs = 86400

[adapters.den]
type = "roku_tv"
ip_address = "2001:DB8::30"
port = 9060

[adapters.spare]
type = "roku_tv"
enabled = false
"""


def test_each_section_is_an_adapter_of_its_kind_under_its_name(session: DeviceSession, clock: VirtualClock) -> None:
    built = []
    for name, settings in config.parse(HOME, "default.toml", {}).adapters.items():
        adapter = kind_of(settings).build(settings, context_of(name, session, clock))
        assert isinstance(adapter, PollingAdapter)
        built.append((type(adapter), adapter.name, adapter.http.address, adapter.poll_interval))
    assert built == [
        (RokuAdapter, "roku_tv", "http://192.168.1.30:8060", 5),
        (ElgatoAdapter, "desk", "http://192.168.1.20:9123", 1),
        (ElgatoAdapter, "elgato_lights", "http://lamp.local", 86400),
        (RokuAdapter, "den", "http://[2001:db8::30]:9060", 5),
    ]


async def test_publishers_start_once_the_card_stores_their_ids(caplog: pytest.LogCaptureFixture) -> None:
    clock, steps = VirtualClock(), list[str]()
    refusals = [StoreFailed("the change cannot be stored now"), StoreFailed("it cannot be stored now")]

    @asynccontextmanager
    async def publish() -> AsyncIterator[None]:
        steps.append("start")
        yield
        steps.append("stop")

    async def open_() -> list[AbstractAsyncContextManager[Any]]:
        if refusals:
            raise refusals.pop()
        return [publish()]

    with caplog.at_level(logging.INFO):
        async with SectionPublishers("mqtt", open_, clock):
            await clock.advance(PUBLISH_RETRY_SECS, sleepers=1)
            await until(lambda: not refusals)
            assert not steps
            await clock.advance(PUBLISH_RETRY_SECS, sleepers=0)
            await until(lambda: steps == ["start"])
    assert steps == ["start", "stop"]
    sentence = [
        "mqtt: publishing waits for the storage: it cannot be stored now",
        "mqtt: publishing has started",
    ]
    assert caplog.messages == sentence
