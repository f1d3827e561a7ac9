"""Tests of adapters over HTTP: the running adapters, their starts, and their status."""

from __future__ import annotations

from typing import Any

from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.adapters.roku_tv.simulator import TvSimulator
from tests.fakes.app import LIGHT, TV, App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

NOON = "2026-01-01T12:00:00.000Z"
OK = {"status": "ok", "message": None, "last_updated": NOON}


async def statuses(app: App) -> dict[str, str]:
    answer = await app.get("/adapters")
    assert answer.status == 200
    return {each["name"]: each["status"] for each in answer.json}


async def test_the_hub_is_ready_and_an_adapter_started_once_its_first_poll_has_ended(clock: VirtualClock) -> None:
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    light.faults.delay, tv.faults.delay = 1.0, 2.0
    async with open_app(clock=clock, light=light, tv=tv, wait_until_ready=False) as app:
        async with app.stream() as frames:
            await until(lambda: clock.sleepers == 3)
            answer = await app.get("/ready", token=None)
            assert (answer.status, answer.json) == (
                503,
                {"error": "starting: elgato_lights, roku_tv", "code": "not_ready"},
            )
            assert await statuses(app) == {"elgato_lights": "starting", "roku_tv": "starting"}
            assert (await app.get("/adapters/roku_tv")).json == {
                "name": "roku_tv",
                "runtime_status": "starting",
                "health": {"status": "unknown", "message": None, "last_updated": None},
                "last_success": None,
                "last_error": None,
                "operations": ["info"],
                "dropped": [],
            }
            light.faults.delay = 0.0
            await clock.advance(1.0, sleepers=3)
            answer = await app.get("/ready", token=None)
            assert (answer.status, answer.json) == (503, {"error": "starting: roku_tv", "code": "not_ready"})
            assert await statuses(app) == {"elgato_lights": "running", "roku_tv": "starting"}
            await clock.advance(1.0, sleepers=3)
            answer = await app.get("/ready", token=None)
            assert (answer.status, answer.json) == (200, {"status": "ok"})
            assert await app.received(frames) == [
                {"type": "device.state_changed", "id": LIGHT, "state": (await app.device(LIGHT))["attributes"]},
                {"type": "adapter.started", "adapter": "elgato_lights"},
                {"type": "device.state_changed", "id": TV, "state": (await app.device(TV))["attributes"]},
                {"type": "adapter.started", "adapter": "roku_tv"},
            ]


async def test_unreachable_devices_do_not_prevent_readiness(clock: VirtualClock) -> None:
    light, tv = LightSimulator(clock=clock), TvSimulator(clock=clock)
    async with light, tv:
        await light.unplug()
        tv.faults.status = 500
        adapters: dict[str, Any] = {
            "elgato_lights": ElgatoLights(base_url=light.url, poll_interval_secs=1),
            "roku_tv": RokuTv(ip_address=tv.host, port=tv.port, poll_interval_secs=1),
        }
        async with open_app(clock=clock, adapters=adapters, wait_until_ready=False) as app:
            async with app.stream() as frames:
                await clock.advance(0.25, sleepers=3)
                assert (await app.get("/ready", token=None)).json == {"status": "ok"}
                assert await statuses(app) == {"elgato_lights": "degraded", "roku_tv": "degraded"}
                assert (await app.get("/devices")).json == []
                assert (await app.command(LIGHT, "power", "on")).status == 404
                received = [frame for frame in await app.received(frames) if frame["type"] == "adapter.started"]
                assert sorted(frame["adapter"] for frame in received) == ["elgato_lights", "roku_tv"]

                await light.plug_in()
                tv.faults.status = None
                await clock.advance(2.0, sleepers=3)
                assert await statuses(app) == {"elgato_lights": "running", "roku_tv": "running"}
                frames_later = await app.received(frames)
                assert {frame["id"] for frame in frames_later if "id" in frame} == {LIGHT, TV}
                assert not any(frame["type"] == "adapter.started" for frame in frames_later)


async def test_an_adapter_has_its_last_success_and_last_error(quiet: App, clock: VirtualClock) -> None:
    well: dict[str, Any] = {"name": "elgato_lights", "runtime_status": "running", "health": OK, "last_success": NOON}
    well |= {"operations": ["identify", "info"]}
    answer = await quiet.get("/adapters/elgato_lights")
    assert (answer.status, answer.json) == (
        200,
        {**well, "last_error": None, "dropped": [], "operations": ["identify", "info"]},
    )

    quiet.light.faults.body = b"<html>"
    await clock.advance(1, sleepers=3)
    reported, at = f"{quiet.light.url} answered with something that is not JSON", "2026-01-01T12:00:01.000Z"
    assert (await quiet.get("/adapters/elgato_lights")).json == {
        **well,
        "runtime_status": "degraded",
        "health": {"status": "error", "message": reported, "last_updated": at},
        "last_error": reported,
        "dropped": [],
    }
    assert await statuses(quiet) == {"elgato_lights": "degraded", "roku_tv": "running"}

    quiet.light.faults.body = None
    await clock.advance(1, sleepers=3)
    again = "2026-01-01T12:00:02.000Z"
    assert (await quiet.get("/adapters/elgato_lights")).json == {
        **well,
        "health": {**OK, "last_updated": again},
        "last_success": again,
        "last_error": reported,
        "dropped": [],
    }
