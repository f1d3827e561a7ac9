"""The light adapter, as the specification's tables and the contract tell it, over HTTP."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from appliance.adapters.elgato_lights.kind import ElgatoLights
from appliance.adapters.elgato_lights.simulator import LightSimulator, SimulatedLight
from appliance.adapters.roku_tv.simulator import TvSimulator
from appliance.errors import Invalid, Unreachable, Unsupported
from tests.fakes.app import LIGHT, App, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.patience import until

SECOND = "elgato_lights:light:1"
GET, PUT = ("GET", "/elgato/lights"), ("PUT", "/elgato/lights")


async def shown(app: App, device_id: str = LIGHT) -> dict[str, Any]:
    """The attributes of the light."""
    attributes: dict[str, Any] = (await app.device(device_id))["attributes"]
    return attributes


# --- several lights behind one address -----------------------------------------------------------


async def test_each_light_is_a_device_by_its_index_and_commanded_alone() -> None:
    lights = [SimulatedLight(on=True, brightness=n, temperature=150 + n) for n in range(3)]
    async with open_app(light=LightSimulator(lights=lights)) as app:
        for index in range(3):
            device = await app.device(f"elgato_lights:light:{index}")
            assert device["kind"] == "Light"
            assert device["metadata"]["vendor_specific"] == {"light_index": index}
            assert device["attributes"]["brightness"] == index
        async with app.stream() as frames:
            assert (await app.command(SECOND, "brightness", "set", 77)).status == 200
            assert [frame["id"] for frame in await app.received(frames)] == [SECOND]
        assert [light.brightness for light in app.light.lights] == [0, 77, 2]
        assert (await app.command("elgato_lights:light:3", "power", "on")).status == 404


async def test_a_change_at_another_light_that_a_command_reads_is_taken_in(quiet: App, clock: VirtualClock) -> None:
    quiet.light.lights = [SimulatedLight(temperature=200), SimulatedLight(temperature=200)]
    await clock.advance(1, sleepers=3)
    quiet.light.lights[1].on = True
    async with quiet.stream() as frames:
        await quiet.command(LIGHT, "power", "on")
        assert [(frame["id"], frame["state"]["power"]) for frame in await quiet.received(frames)] == [
            (LIGHT, "on"),
            (SECOND, "on"),
        ]


async def test_a_light_that_vanishes_is_removed_and_keeps_its_place(quiet: App, clock: VirtualClock) -> None:
    lights = [SimulatedLight(temperature=200), SimulatedLight(brightness=7, temperature=200)]
    quiet.light.lights = lights
    await clock.advance(1, sleepers=3)
    await quiet.post("/rooms", {"id": "den", "name": "Den"})
    await quiet.post(f"/devices/{SECOND}/room", {"room_id": "den"})
    await quiet.post("/groups", {"id": "all", "name": "All", "members": [SECOND, LIGHT]})
    before = await quiet.device(SECOND)
    async with quiet.stream() as frames:
        quiet.light.lights = lights[:1]
        await clock.advance(3, sleepers=3)
        renamed, removed = await quiet.received(frames)
        assert (renamed["type"], renamed["name"]) == ("device.updated", "Simulated light"), "it stands alone now"
        assert removed == {"type": "device.removed", "id": SECOND}
        assert (await quiet.get(f"/devices/{SECOND}")).json == {
            "error": f"device '{SECOND}' not found",
            "code": "device_not_found",
        }
        assert (await quiet.command(SECOND, "power", "on")).status == 404
        assert (await quiet.get("/rooms/den/devices")).json == []
        results = (await quiet.post("/groups/all/command", {"capability": "power", "action": "off"})).json
        assert [result["device_id"] for result in results] == [LIGHT]
        assert (await quiet.get("/groups/all")).json["members"] == [SECOND, LIGHT]

        quiet.light.lights = lights
        await clock.advance(1, sleepers=3)
        numbered, returned = await quiet.received(frames)
        assert numbered["name"] == "Simulated light 1"
        assert returned == {"type": "device.state_changed", "id": SECOND, "state": before["attributes"]}
    now = "2026-01-01T12:00:05.000Z"
    assert await quiet.device(SECOND) == {**before, "updated_at": now, "last_seen": now}
    assert before["room_id"] == "den"
    assert [device["id"] for device in (await quiet.get("/groups/all/devices")).json] == [SECOND, LIGHT]


# --- what goes wrong -----------------------------------------------------------------------------


async def test_a_light_that_answers_wrongly_is_a_400_with_a_sentence_and_stays_online(
    quiet: App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "adapters")
    quiet.light.faults.status = 500
    async with quiet.stream() as frames:
        answer = await quiet.command(LIGHT, "power", "on")
        said = f"{quiet.light.url}/elgato/lights answered 500 Internal Server Error"
        assert (answer.status, answer.json) == (400, {"error": said, "code": "device_refused"})
        assert await quiet.received(frames) == []
    assert (await shown(quiet))["state"] == "online"
    assert [record.message for record in caplog.records if record.name == "adapters"] == [
        f"{LIGHT}: power on failed: {said}"
    ]


# --- what was asked before a command ended -------------------------------------------------------


async def test_a_lamp_never_flips_back(quiet: App, clock: VirtualClock) -> None:
    """A poll is on its way back with the old state while the command is asked, done and answered."""
    quiet.light.faults.delay = 0.5
    async with quiet.stream() as frames:
        await clock.advance(1, sleepers=3)
        await until(lambda: quiet.light.requests[-1] == GET and clock.sleepers == 3)
        quiet.light.faults.delay = 0.0
        assert (await quiet.command(LIGHT, "power", "on")).status == 200
        await clock.advance(0.5, sleepers=3)
        assert [frame["state"]["power"] for frame in await quiet.received(frames)] == ["on"]
        assert (await shown(quiet))["power"] == "on"
        await clock.advance(3, sleepers=3)
        assert await quiet.received(frames) == []


# --- two sections of one address, and operations -------------------------------------------------


async def test_two_sections_may_name_one_address_and_are_commanded_in_turn(clock: VirtualClock) -> None:
    async with LightSimulator(clock=clock) as lamp:
        section = ElgatoLights(base_url=lamp.url, poll_interval_secs=3600)
        async with open_app(clock=clock, adapters={"desk": section, "shelf": section}) as app:
            lamp.requests.clear()
            lamp.faults.delay = 0.25
            first = asyncio.ensure_future(app.command("desk:light:0", "power", "toggle"))
            await until(lambda: len(lamp.requests) == 1)
            second = asyncio.ensure_future(app.command("shelf:light:0", "power", "toggle"))
            await clock.advance(0.75, sleepers=4)
            assert (await first).status == 200
            assert lamp.requests[:3] == [GET, PUT, GET]
            await until(lambda: len(lamp.requests) == 4)
            lamp.faults.delay = 0.0
            await clock.advance(0.25, sleepers=3)
            assert (await second).status == 200
            assert lamp.requests[3:] == [GET, PUT, GET]
            assert [write["lights"][0]["on"] for write in lamp.writes] == [1, 0]
            await clock.advance(3600, sleepers=3)
            for device_id in ("desk:light:0", "shelf:light:0"):
                assert (await shown(app, device_id))["power"] == "off"


async def test_the_adapter_s_own_operations_are_invoked_by_the_name_of_its_section() -> None:
    async with LightSimulator() as lamp, TvSimulator() as tv:
        section = ElgatoLights(base_url=lamp.url, poll_interval_secs=1)
        async with open_app(adapters={"desk": section}, light=LightSimulator(), tv=tv) as app:
            invoke = app.hub.dispatcher.invoke
            assert await invoke("desk:info", {}) == lamp.info
            assert await invoke("desk:identify", {"device_id": "desk:light:0"}) is None
            assert lamp.identified == 1
            with pytest.raises(Invalid, match="identify needs the device_id of a light of desk"):
                await invoke("desk:identify", {"device_id": LIGHT})
            for target in ("elgato_lights:info", "roku_tv:info", "desk:reboot", "desk"):
                with pytest.raises(Unsupported, match=f"invoke target '{target}' is not supported"):
                    await invoke(target, {})
            await lamp.unplug()
            with pytest.raises(Unreachable, match="connection refused"):
                await invoke("desk:info", {})
