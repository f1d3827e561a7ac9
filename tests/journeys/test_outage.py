"""A lamp and a TV are unplugged for ten minutes of virtual time. The tests check reports, log lines, responses,
and the recovery."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.adapters.simulated import SimulatedDevice
from appliance.home.events import AdapterErrored
from tests.fakes.app import LIGHT, TV, App, Received, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

SECOND = "elgato_lights:light:1"
TEN_MINUTES = 600


@pytest.fixture
async def home(adapter: str, clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> AsyncIterator[App]:
    """Run a hub with two lamps at one address and a TV, and record its log from now on. Only the tested adapter is
    polled each second."""
    lamps = LightSimulator(
        lights=[SimulatedLight(on=True, temperature=200), SimulatedLight(temperature=300)], clock=clock
    )
    secs = (1, 300) if adapter == "elgato_lights" else (300, 1)
    async with open_app(clock=clock, light=lamps, tv=TvSimulator(clock=clock), poll_interval_secs=secs) as home:
        caplog.set_level(logging.INFO)
        caplog.clear()
        yield home


def _lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return level and message of each log line of the adapters."""
    return [(record.levelname, record.message) for record in caplog.records if record.name == "adapters"]


async def _wait_out(clock: VirtualClock, asking: asyncio.Task[Received]) -> Received:
    """Return the response to a command that is repeated once, after 250 ms. Meanwhile, the polls of the adapters
    do not begin."""
    await until(lambda: clock.sleepers == 4)
    await clock.advance(0.25, sleepers=3)
    return await asking


async def _pass_a_poll(app: App, clock: VirtualClock, adapter: str) -> None:
    """Advance the clock until a poll has failed. After that, the next poll is almost a minute away."""

    def failed_polls() -> int:
        return sum(isinstance(event, AdapterErrored) and event.adapter == adapter for event in app.events)

    before = failed_polls()
    while failed_polls() == before:
        await clock.advance(1, sleepers=3)


def _asking(app: App, device_id: str, action: str) -> asyncio.Task[Received]:
    return asyncio.ensure_future(app.command(device_id, "power", action))


async def _states(app: App) -> dict[str, str]:
    return {device["id"]: device["attributes"]["state"] for device in (await app.get("/devices")).json}


def _frames(*expected: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "device.state_changed", "id": id_, "state": state} for id_, state in expected]


CASES = [("elgato_lights", [LIGHT, SECOND]), ("roku_tv", [TV])]


def _device(app: App, adapter: str) -> SimulatedDevice:
    return app.light if adapter == "elgato_lights" else app.tv


@pytest.mark.parametrize(("adapter", "ids"), CASES)
@pytest.mark.slow
async def test_ten_minutes_without_power_cause_one_event_per_device_and_one_line_each_way(
    home: App, clock: VirtualClock, caplog: pytest.LogCaptureFixture, adapter: str, ids: list[str]
) -> None:
    device = _device(home, adapter)
    before = {id_: (await home.device(id_))["attributes"] for id_ in ids}
    seen = {id_: (await home.device(id_))["last_seen"] for id_ in ids}
    reported = f"{adapter}: {device.url} does not answer (connection refused)"
    async with home.stream() as frames:
        await device.unplug()
        await clock.advance(1.5, sleepers=3)
        assert await home.received(frames) == [], "one poll without an answer is no outage"
        await clock.advance(TEN_MINUTES, sleepers=3)
        assert await home.received(frames) == [
            *_frames(*((id_, {**before[id_], "state": "offline"}) for id_ in ids)),
            {"type": "system.error", "message": reported},
        ]
        assert _lines(caplog) == [("WARNING", reported)]
        assert {id_: (await home.device(id_))["last_seen"] for id_ in ids} == seen
        assert [id_ for id_, state in (await _states(home)).items() if state == "offline"] == ids
        assert (await home.get("/ready", token=None)).status == 200
        shown = (await home.get(f"/adapters/{adapter}")).json
        assert (shown["runtime_status"], f"{adapter}: {shown['last_error']}") == ("degraded", reported)

        await device.plug_in()
        caplog.clear()
        await clock.advance(61, sleepers=3)
        assert await home.received(frames) == _frames(*before.items())
        assert _lines(caplog) == [("INFO", f"{adapter}: answers again")]
        assert (await home.get(f"/adapters/{adapter}")).json["runtime_status"] == "running"

        polled = len(device.requests)
        await clock.advance(3, sleepers=3)
        assert len(device.requests) == polled + 3, "polled every second again"
        assert await home.received(frames) == []


@pytest.mark.parametrize(("adapter", "ids"), CASES)
@pytest.mark.slow
async def test_commands_during_an_outage_fail_in_time_and_the_first_one_after_it_ends_it(
    home: App, clock: VirtualClock, caplog: pytest.LogCaptureFixture, adapter: str, ids: list[str]
) -> None:
    device = _device(home, adapter)
    await device.unplug()
    await clock.advance(TEN_MINUTES, sleepers=3)
    await _pass_a_poll(home, clock, adapter)
    reported = f"{device.url} does not answer (connection refused)"
    caplog.clear()
    async with home.stream() as frames:
        for id_ in ids:
            for action in ("on", "off", "toggle"):
                began = clock.monotonic()
                answer = await _wait_out(clock, _asking(home, id_, action))
                assert (answer.status, answer.json) == (400, {"error": reported, "code": "device_unreachable"})
                assert clock.monotonic() - began == 0.25
        assert await home.received(frames) == [], "the outage was already reported"
        assert _lines(caplog) == []

        await device.plug_in()
        device.requests.clear()
        caplog.clear()
        has_facts = adapter == "elgato_lights"  # after ten minutes, a poll also reads the facts
        began = clock.monotonic()
        assert (await home.command(ids[0], "power", "toggle")).status == 200
        assert clock.monotonic() == began, "it did not wait for a poll"
        received = await home.received(frames)
        assert [(frame["type"], frame["id"], frame["state"]["state"]) for frame in received] == [
            ("device.state_changed", id_, "online") for id_ in ids
        ]
        assert received[0]["state"]["power"] == "off"
        assert _lines(caplog) == [("INFO", f"{adapter}: answers again")]
        assert set((await _states(home)).values()) == {"online"}

        await until(lambda: len(device.requests) >= 4 and clock.sleepers == 3)
        polled = len(device.requests)
        assert polled in (4, 4 + has_facts), "on a very busy machine the facts are given up after two seconds"
        await clock.advance(3, sleepers=3)
        assert len(device.requests) == polled + 3, "at once, and every second again"
        assert await home.received(frames) == []
