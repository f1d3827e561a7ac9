"""Tests of adapters over HTTP: the running adapters, their starts, and their status."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.kind import RokuTv
from appliance.adapters.roku_tv.simulator import STANDBY, TvSimulator
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


async def test_a_hub_without_adapters_is_ready_and_empty() -> None:
    async with open_app(adapters={}) as app:
        assert (await app.get("/adapters")).json == []
        assert (await app.get("/devices")).json == []
        assert (await app.get("/ready", token=None)).status == 200


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


async def test_an_unknown_adapter_is_named(app: App) -> None:
    for written, named in (("nothing", "nothing"), ("Roku_tv", "Roku_tv"), ("a%2Fb", "a/b")):
        answer = await app.get(f"/adapters/{written}")
        assert (answer.status, answer.json) == (
            404,
            {"error": f"adapter '{named}' not found", "code": "adapter_not_found"},
        )
    assert (await app.get("/adapters/")).json == {"error": "this path does not exist", "code": "path_not_found"}


async def test_a_home_can_have_many_adapters_of_each_kind() -> None:
    async with AsyncExitStack() as stack:
        lamps = [LightSimulator(lights=[SimulatedLight(brightness=n, temperature=200)] * n) for n in (1, 2)]
        sets = [TvSimulator(), TvSimulator()]
        sets[0].power_mode = STANDBY
        for device in (*lamps, *sets):
            await stack.enter_async_context(device)
        adapters: dict[str, Any] = {
            "shelf": ElgatoLights(base_url=lamps[1].url, poll_interval_secs=1),
            "den": RokuTv(ip_address=sets[0].host, port=sets[0].port, poll_interval_secs=1),
            "desk": ElgatoLights(base_url=lamps[0].url, poll_interval_secs=1),
            "attic": RokuTv(ip_address=sets[1].host, port=sets[1].port, poll_interval_secs=1),
        }
        app = await stack.enter_async_context(open_app(adapters=adapters))
        assert list(await statuses(app)) == ["attic", "den", "desk", "shelf"]
        devices = {device["id"]: device for device in (await app.get("/devices")).json}
        assert list(devices) == ["attic:tv", "den:tv", "desk:light:0", "shelf:light:0", "shelf:light:1"]
        assert [device["attributes"]["power"] for device in devices.values()] == ["on", "off", "off", "off", "off"]
        assert [device["metadata"]["source"] for device in devices.values()] == [
            id_.partition(":")[0] for id_ in devices
        ]
        for device_id in devices:
            assert (await app.command(device_id, "power", "on")).status == 200
        assert [lamp.lights[-1].on for lamp in lamps] == [True, True]
        assert [tv.keys for tv in sets] == [["PowerOn"], ["PowerOn"]]
        await lamps[0].unplug()
        assert (await app.command("desk:light:0", "power", "off")).status == 400
        assert (await app.command("shelf:light:0", "power", "off")).status == 200
        states = {device["id"]: device["attributes"]["state"] for device in (await app.get("/devices")).json}
        assert {id_ for id_, state in states.items() if state == "offline"} == {"desk:light:0"}
