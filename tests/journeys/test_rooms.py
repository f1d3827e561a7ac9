"""Rooms over HTTP, and commands to all of their devices."""

from __future__ import annotations

from typing import Any

from tests.fakes.app import LIGHT, TV, App, Received

ON = {"capability": "power", "action": "on"}


async def put(app: App, room_id: str, name: str = "Den") -> Received:
    return await app.post("/rooms", {"id": room_id, "name": name})


async def furnish(app: App, room_id: str, *device_ids: str) -> None:
    """Create a room with these devices."""
    await put(app, room_id)
    for device_id in device_ids:
        assert (await app.post(f"/devices/{device_id}/room", {"room_id": room_id})).status == 200


async def test_a_room_is_created_renamed_and_removed_and_each_change_is_published_once(app: App) -> None:
    den, lounge = {"id": "den", "name": "Den"}, {"id": "den", "name": "Lounge"}
    async with app.stream() as frames:
        for room in (den, den, lounge, lounge):
            answer = await app.post("/rooms", room)
            assert (answer.status, answer.json) == (200, room)
            assert (await app.get("/rooms/den")).json == room
        assert await app.received(frames) == [
            {"type": "room.added", "room": den},
            {"type": "room.updated", "room": lounge},
        ]
        answer = await app.delete("/rooms/den")
        assert (answer.status, answer.json) == (204, None)
        assert await app.received(frames) == [{"type": "room.removed", "id": "den"}]
        for missing in (await app.get("/rooms/den"), await app.delete("/rooms/den")):
            assert (missing.status, missing.json) == (
                404,
                {"error": "room 'den' not found", "code": "room_not_found"},
            )
        assert await app.received(frames) == []


async def test_rooms_are_listed_by_id(app: App) -> None:
    assert (await app.get("/rooms")).json == []
    for room_id in ("den", "attic", "Zoo", "10", "9"):
        await put(app, room_id, f"The {room_id}")
    answer = await app.get("/rooms")
    assert answer.status == 200
    assert answer.json == [{"id": id_, "name": f"The {id_}"} for id_ in ("10", "9", "Zoo", "attic", "den")]


async def test_outer_white_space_is_trimmed_other_fields_are_ignored_and_any_name_is_valid(app: App) -> None:
    answer = await app.post("/rooms", {"id": " a/b käse%20 ", "name": "\t Käse & <b>📺</b> ", "size": 7})
    assert answer.json == {"id": "a/b käse%20", "name": "Käse & <b>📺</b>"}
    assert (await app.get("/rooms/a%2Fb%20k%C3%A4se%2520")).json == answer.json
    assert (await app.delete("/rooms/a%2Fb%20k%C3%A4se%2520")).status == 204
    longest = {"id": "i" * 256, "name": "n" * 1000}
    assert (await app.post("/rooms", longest)).json == longest


async def test_a_room_lists_its_devices_by_id(app: App) -> None:
    await furnish(app, "den", TV, LIGHT)
    await put(app, "attic")
    answer = await app.get("/rooms/den/devices")
    assert (answer.status, [device["id"] for device in answer.json]) == (200, [LIGHT, TV])
    assert answer.json == [await app.device(LIGHT), await app.device(TV)]
    assert (await app.get("/rooms/attic/devices")).json == []
    await app.post(f"/devices/{TV}/room", {"room_id": "attic"})
    assert [device["id"] for device in (await app.get("/rooms/attic/devices")).json] == [TV]
    assert [device["id"] for device in (await app.get("/rooms/den/devices")).json] == [LIGHT]


async def test_removing_a_room_first_unassigns_its_devices_and_no_others(app: App) -> None:
    await furnish(app, "den", TV, LIGHT)
    await put(app, "attic")
    before = [await app.device(LIGHT), await app.device(TV)]
    async with app.stream() as frames:
        assert (await app.delete("/rooms/den")).status == 204
        assert await app.received(frames) == [
            {"type": "device.room_changed", "id": LIGHT, "room_id": None},
            {"type": "device.room_changed", "id": TV, "room_id": None},
            {"type": "room.removed", "id": "den"},
        ]
    for old in before:
        device = await app.device(old["id"])
        assert (device["room_id"], device["updated_at"]) == (None, old["updated_at"])
    await put(app, "den")
    assert (await app.get("/rooms/den/devices")).json == []
    assert (await app.get("/rooms")).json == [{"id": id_, "name": "Den"} for id_ in ("attic", "den")]


def _ok(device_id: str) -> dict[str, Any]:
    return {"device_id": device_id, "status": "ok", "message": None}


async def test_a_command_goes_to_every_device_and_each_has_its_result(app: App) -> None:
    app.tv.power_mode = "Ready"
    await furnish(app, "den", TV, LIGHT)
    answer = await app.post("/rooms/den/command", ON)
    assert (answer.status, answer.json) == (200, [_ok(LIGHT), _ok(TV)])
    assert app.light.lights[0].on and app.tv.power_mode == "PowerOn"


async def test_a_room_without_devices_has_no_results(app: App) -> None:
    await put(app, "den")
    answer = await app.post("/rooms/den/command", ON)
    assert (answer.status, answer.json) == (200, [])


async def test_an_unsupported_command_is_reported_and_the_others_are_commanded(app: App) -> None:
    await furnish(app, "den", TV, LIGHT)
    body = {"capability": "brightness", "action": "set", "value": 5}
    unsupported = {
        "device_id": TV,
        "status": "unsupported",
        "message": f"device '{TV}' does not offer brightness set",
    }
    answer = await app.post("/rooms/den/command", body)
    assert (answer.status, answer.json) == (200, [_ok(LIGHT), unsupported])
    assert app.light.lights[0].brightness == 5


async def test_a_failed_command_is_an_error_and_the_others_are_commanded(app: App) -> None:
    await furnish(app, "den", TV, LIGHT)
    warm = {"capability": "color_temperature", "action": "set", "value": {"value": 2500, "unit": "kelvin"}}
    [light, tv] = (await app.post("/rooms/den/command", warm)).json
    assert light["status"] == "error" and tv["status"] == "unsupported"
    assert light["message"] == "color_temperature must be from 2900 to 7000 kelvin for this device, not 2500"

    app.tv.limited = True
    [light, tv] = (await app.post("/rooms/den/command", {**ON, "action": "toggle"})).json
    assert (light, tv["status"]) == (_ok(LIGHT), "error")
    assert tv["message"].startswith(f"{app.tv.url} refuses to be controlled")

    app.tv.limited = False
    await app.light.unplug()
    answer = await app.post("/rooms/den/command", {**ON, "action": "off"})
    assert answer.status == 200
    assert answer.json == [
        {
            "device_id": LIGHT,
            "status": "error",
            "message": f"{app.light.url} does not answer (connection refused)",
        },
        _ok(TV),
    ]
