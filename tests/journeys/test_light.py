"""The light adapter over HTTP. The expected results are those in the tables of the specification and the contract."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from appliance.adapters.elgato_lights.simulator import SimulatedLight
from tests.fakes.app import LIGHT, App
from tests.fakes.clock import VirtualClock

SECOND = "elgato_lights:light:1"
GET, PUT = ("GET", "/elgato/lights"), ("PUT", "/elgato/lights")


async def shown(app: App, device_id: str = LIGHT) -> dict[str, Any]:
    attributes: dict[str, Any] = (await app.device(device_id))["attributes"]
    return attributes


@pytest.mark.slow
async def test_a_vanished_light_is_removed_and_keeps_its_room(quiet: App, clock: VirtualClock) -> None:
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
        assert (renamed["type"], renamed["name"]) == ("device.updated", "Simulated light"), (
            "only one light is left, so it has no number"
        )
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


async def test_a_wrong_answer_is_400_and_the_light_stays_online(quiet: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "adapters")
    quiet.light.faults.status = 500
    async with quiet.stream() as frames:
        answer = await quiet.command(LIGHT, "power", "on")
        sentence = f"{quiet.light.url}/elgato/lights answered 500 Internal Server Error"
        assert (answer.status, answer.json) == (400, {"error": sentence, "code": "device_refused"})
        assert await quiet.received(frames) == []
    assert (await shown(quiet))["state"] == "online"
    assert [record.message for record in caplog.records if record.name == "adapters"] == [
        f"{LIGHT}: power on failed: {sentence}"
    ]
