"""A lamp and a TV are unplugged for ten minutes of virtual time. The tests check reports, log lines, responses,
and the recovery."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.adapters.simulated_device import SimulatedDevice
from tests.fakes.app import LIGHT, TV, App, open_app
from tests.fakes.clock import VirtualClock

SECOND = "elgato_lights:light:1"
TEN_MINUTES = 600


@pytest.fixture
async def home(adapter: str, clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> AsyncIterator[App]:
    """Run a hub with two lamps at one address and a TV, and record the hub's log from now on. Only the tested adapter
    is polled each second."""
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
