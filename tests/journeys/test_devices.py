"""Devices over HTTP, with simulated devices."""

from __future__ import annotations

from pathlib import Path

import orjson

from appliance.home import events
from appliance.home.model import DeviceKind, Observation, Report
from tests.fakes.app import LIGHT, TV, App, open_app
from tests.fakes.clock import VirtualClock

TV_INFO = {
    "manufacturer": "Roku",
    "model": "Simulated TV",
    "firmware": "12.5.0",
    "serial": "LARES0000002",
    "class": "media_player",
}


async def test_devices_are_listed_by_id_with_every_field(quiet: App) -> None:
    assert (await quiet.get("/devices")).json == [
        {
            "id": LIGHT,
            "room_id": None,
            "name": "Simulated light",
            "kind": "Light",
            "info": {
                "manufacturer": "Elgato",
                "model": "Elgato Key Light",
                "firmware": "1.0.3",
                "serial": "LARES0000001",
            },
            "attributes": {
                "power": "off",
                "brightness": 50,
                "color_temperature": {"value": 4695, "unit": "kelvin"},
                "state": "online",
            },
            "metadata": {"source": "elgato_lights", "accuracy": None, "vendor_specific": {"light_index": 0}},
            "updated_at": "2026-01-01T12:00:00.000Z",
            "last_seen": "2026-01-01T12:00:00.000Z",
        },
        {
            "id": TV,
            "room_id": None,
            "name": "Simulated TV - LARES0000002",
            "kind": "Switch",
            "info": TV_INFO,
            "attributes": {"power": "on", "state": "online"},
            "metadata": {
                "source": "roku_tv",
                "accuracy": None,
                "vendor_specific": {
                    "power_mode": "PowerOn",
                    "friendly_name": "Simulated TV - LARES0000002",
                    "model_name": "Simulated TV",
                },
            },
            "updated_at": "2026-01-01T12:00:00.000Z",
            "last_seen": "2026-01-01T12:00:00.000Z",
        },
    ]


QUERIES = [
    (f"ids={TV}&ids={LIGHT}", [TV, LIGHT]),
    (f"ids={LIGHT}&ids={TV}", [LIGHT, TV]),
    (f"ids={LIGHT}", [LIGHT]),
    ("ids=elgato_lights%3Alight%3A0", [LIGHT]),
    (f"ids={TV}&ids=nothing&ids={LIGHT}&ids=elgato_lights:light:9", [TV, LIGHT]),
    (f"ids={TV}&ids={LIGHT}&ids={TV}", [TV, LIGHT]),
    ("ids=nothing", []),
    (f"ids={LIGHT},{TV}", []),
    (f"IDS={TV}", [LIGHT, TV]),
    ("", [LIGHT, TV]),
    ("ids", []),
    (f"ids=&ids={TV}", [TV]),
    (f"ids=%FF&&&ids={TV}&", [TV]),
    (f"ids=+{TV}", []),
]


async def test_ids_select_devices_in_their_order(app: App) -> None:
    for query, ids in QUERIES:
        answer = await app.get(f"/devices?{query}")
        assert (answer.status, [device["id"] for device in answer.json]) == (200, ids), query


async def test_an_unchanged_poll_updates_only_last_seen_and_is_not_published(quiet: App, clock: VirtualClock) -> None:
    before = await quiet.device(LIGHT)
    async with quiet.stream() as frames:
        await clock.advance(3.5, sleepers=3)
        assert await quiet.received(frames) == []
    assert await quiet.device(LIGHT) == {**before, "last_seen": "2026-01-01T12:00:03.000Z"}


async def test_a_change_of_metadata_is_shown_but_not_published_or_dated(quiet: App, clock: VirtualClock) -> None:
    quiet.tv.power_mode = "DisplayOn"
    await clock.advance(1, sleepers=3)
    before = await quiet.device(TV)
    quiet.tv.power_mode = "Ready"
    async with quiet.stream() as frames:
        await clock.advance(1, sleepers=3)
        assert await quiet.received(frames) == []
    renamed = await quiet.device(TV)
    assert renamed["metadata"]["vendor_specific"]["power_mode"] == "Ready"
    assert renamed["updated_at"] == before["updated_at"]
    assert renamed["last_seen"] == "2026-01-01T12:00:02.000Z"


async def test_a_device_is_put_into_a_room_moved_and_taken_out(quiet: App, clock: VirtualClock) -> None:
    for room in ("den", "attic"):
        await quiet.post("/rooms", {"id": room, "name": room})
    before = await quiet.device(LIGHT)
    await clock.advance(0.5, sleepers=3)
    async with quiet.stream() as frames:
        for room_id in ("den", "den", "attic", None, None):
            answer = await quiet.post(f"/devices/{LIGHT}/room", {"room_id": room_id})
            assert (answer.status, answer.json) == (200, {**before, "room_id": room_id})
            assert await quiet.device(LIGHT) == answer.json
        assert await quiet.received(frames) == [
            {"type": "device.room_changed", "id": LIGHT, "room_id": room_id} for room_id in ("den", "attic", None)
        ]


async def test_a_command_returns_after_its_result_is_shown_and_published(app: App) -> None:
    async with app.stream() as frames:
        answer = await app.command(LIGHT, "power", "on")
        assert (answer.status, answer.json) == (200, {"status": "ok"})
        device = await app.device(LIGHT)
        assert device["attributes"]["power"] == "on"
        assert device["updated_at"] == device["last_seen"]
        assert await app.received(frames) == [
            {"type": "device.state_changed", "id": LIGHT, "state": device["attributes"]}
        ]
        assert (await app.command(LIGHT, "power", "on")).json == {"status": "ok"}
        assert await app.received(frames) == [], "nothing changed"
        assert (await app.device(LIGHT))["updated_at"] == device["updated_at"]


async def test_a_person_names_a_device_and_removes_the_name(app: App) -> None:
    vendor = await app.device(LIGHT)
    async with app.stream() as frames:
        named = await app.post(f"/devices/{LIGHT}/name", {"name": "  Desk ☃ "})
        assert (named.status, named.json["name"]) == (200, "Desk ☃")
        assert set(named.json) == set(vendor) and named.json["info"] == vendor["info"]
        assert (await app.device(LIGHT))["name"] == "Desk ☃"
        assert (await app.post(f"/devices/{LIGHT}/name", {"name": "Desk ☃"})).status == 200
        back = await app.post(f"/devices/{LIGHT}/name", {"name": None})
        assert back.json["name"] == vendor["name"] == "Simulated light"
        received = [frame for frame in await app.received(frames) if frame["type"] == "device.updated"]
    assert received == [
        {"type": "device.updated", "id": LIGHT, "name": name, "info": vendor["info"]}
        for name in ("Desk ☃", "Simulated light")
    ]


async def test_a_name_survives_a_restart_and_an_absent_device(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path) as app:
        await app.post(f"/devices/{TV}/name", {"name": "Den"})
        reported = await app.get(f"/devices/{TV}?include=commands")
    async with open_app(data_dir=tmp_path, wait_until_ready=False) as app:
        assert (await app.device(TV))["name"] == "Den"
        assert (await app.get(f"/devices/{TV}?include=commands")).json["commands"] == reported.json["commands"]
        assert (await app.device(LIGHT))["name"] == "Simulated light"


async def test_the_commands_of_each_device_are_shown_on_request(app: App) -> None:
    light, tv = (await app.get("/devices?include=commands")).json
    assert light["commands"] == [
        {
            "capability": "brightness",
            "actions": ["set"],
            "schema": {"type": "percentage", "values": [], "min": 0, "max": 100},
        },
        {
            "capability": "color_temperature",
            "actions": ["set"],
            "schema": {"type": "color_temperature", "values": [], "min": 2900, "max": 7000, "unit": "kelvin"},
        },
        {
            "capability": "power",
            "actions": ["on", "off", "toggle"],
            "schema": {"type": "enum", "values": ["on", "off"]},
        },
    ]
    assert [each["capability"] for each in tv["commands"]] == ["power"]
    assert (await app.get(f"/devices/{LIGHT}?include=commands")).json["commands"] == light["commands"]
    assert (await app.get(f"/devices?ids={TV}&include=commands")).json[0]["commands"] == tv["commands"]
    assert "commands" not in await app.device(LIGHT)
    assert (await app.get("/devices/nobody?include=x")).status == 404


async def test_values_outside_the_catalog_are_dropped_and_reported_once(app: App) -> None:
    bad = {"brightness": 300, "power": "on", "colour": "red", "custom.x.y": [1], "humidity": None, "presence": True}
    seen = Observation(device_id="roku_tv:probe", kind=DeviceKind.SENSOR, attributes=bad)
    for _ in range(3):
        app.hub.registry.apply(Report(adapter="roku_tv", observations=(seen,)))
    shown = (await app.device("roku_tv:probe"))["attributes"]
    assert shown == {"power": "on", "custom.x.y": [1], "presence": True, "state": "online"}
    dropped = (await app.get("/adapters/roku_tv")).json["dropped"]
    assert [(each["device_id"], each["attribute"]) for each in dropped] == [
        ("roku_tv:probe", attribute) for attribute in ("brightness", "colour", "humidity")
    ]
    assert dropped[0]["reason"] == "must be an integer from 0 to 100, not 300"
    lost = events.ObservationDropped(adapter="roku_tv", device_id="roku_tv:lost", attribute="x", reason="is not JSON")
    app.hub.bus.publish(lost)
    for id_, sentence in (
        ("roku_tv:probe", "brightness was dropped: must be an integer from 0 to 100, not 300"),
        ("roku_tv:lost", "x was dropped: is not JSON"),
        ("roku_tv", "GET /adapters/roku_tv lists all dropped values"),
    ):
        assert sentence in (await app.get(f"/why?id={id_}")).json["summary"]
    for number in range(2):
        app.hub.registry.apply(Report(adapter="roku_tv", observations=(seen,)))
        listed = (await app.get("/adapters/roku_tv")).json["dropped"]
        assert [each["device_id"] for each in listed].count("roku_tv:probe") == 3, number
        app.hub.registry.remove("roku_tv", "roku_tv:probe")
        listed = (await app.get("/adapters/roku_tv")).json["dropped"]
        assert [each["device_id"] for each in listed] == ["roku_tv:lost"], "a device that is gone has no drops"


async def test_each_event_of_a_device_is_published_and_is_not_a_state(app: App) -> None:
    registry = app.hub.registry
    before = await app.device(TV)
    async with app.stream() as frames:
        for _ in range(2):
            registry.publish_event("roku_tv", TV, "double", {"count": 2})
        registry.publish_event("roku_tv", "nobody", "double", {})
        registry.publish_event("elgato_lights", TV, "double", {})
        registry.publish_event("roku_tv", TV, "", {})
        registry.publish_event("roku_tv", TV, "x", {"bad": float("nan")})
        received = await app.received(frames)
    reported = {"type": "device.event", "id": TV, "event": "double", "data": {"count": 2}}
    assert [frame for frame in received if frame["type"] == "device.event"] == [reported, reported]
    assert (await app.device(TV))["attributes"] == before["attributes"]


async def test_unknown_stored_entries_are_kept_and_reported(tmp_path: Path) -> None:
    async with open_app(data_dir=tmp_path) as app:
        await app.post("/rooms", {"id": "den", "name": "Den"})
        device = {"kind": "Robot", "source": "roku_tv", "vendor_specific": {}}
        odd = {
            "device/roku_tv:robot": device,
            "state/roku_tv:robot": {"at": 1, "is": {}},
            "room/odd": 7,
            "group/odd": {"name": "Odd"},
            "name/odd": {},
            "key/key_odd": {"role": "read"},
            "thing/new": {"x": 1},
            **{key: ["odd"] for key in ("files/version_key", "counter/running", "variable/x", "timer/x")},
            **{key: {"key": "odd"} for key in ("automation/x", "toggle/x", "changed/virtual:x", "sent/virtual:x")},
        }
        await app.hub.store.document.put_many(odd)
    for _ in range(2):
        async with open_app(data_dir=tmp_path) as app:
            output = " ".join(event.message for event in app.events if hasattr(event, "message"))
            for key in ("device/roku_tv:robot", "room/odd", "group/odd", "name/odd", "key/key_odd"):
                assert f"{key} is invalid" in output
            assert [room["id"] for room in (await app.get("/rooms")).json] == ["den"]
            kept = app.hub.store.document.get("device/roku_tv:robot")
            assert kept is not None and orjson.loads(kept) == device
