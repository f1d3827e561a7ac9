"""Names, facts and what a device takes, as clients see them."""

from __future__ import annotations

from pathlib import Path

import orjson

from appliance.home.model import DeviceKind, Observation, Report
from tests.fakes.house import LIGHT, TV, House, open_house


async def test_a_person_names_a_device_and_takes_the_name_away_again(house: House) -> None:
    vendor = await house.device(LIGHT)
    async with house.stream() as frames:
        named = await house.post(f"/devices/{LIGHT}/name", {"name": "  Desk ☃ "})
        assert (named.status, named.json["name"]) == (200, "Desk ☃")
        assert set(named.json) == set(vendor) and named.json["info"] == vendor["info"]
        assert (await house.device(LIGHT))["name"] == "Desk ☃"
        assert (await house.post(f"/devices/{LIGHT}/name", {"name": "Desk ☃"})).status == 200
        back = await house.post(f"/devices/{LIGHT}/name", {"name": None})
        assert back.json["name"] == vendor["name"] == "Simulated light"
        received = [frame for frame in await house.heard(frames) if frame["type"] == "device.updated"]
    assert received == [
        {"type": "device.updated", "id": LIGHT, "name": name, "info": vendor["info"]}
        for name in ("Desk ☃", "Simulated light")
    ]


async def test_a_name_outlives_a_restart_and_a_device_that_is_away(tmp_path: Path) -> None:
    async with open_house(data_dir=tmp_path) as house:
        await house.post(f"/devices/{TV}/name", {"name": "Den"})
        reported = await house.get(f"/devices/{TV}?include=commands")
    async with open_house(data_dir=tmp_path, wait_until_ready=False) as house:
        assert (await house.device(TV))["name"] == "Den"
        assert (await house.get(f"/devices/{TV}?include=commands")).json["commands"] == reported.json["commands"]
        assert (await house.device(LIGHT))["name"] == "Simulated light"


async def test_what_each_device_takes_is_told_on_demand(house: House) -> None:
    light, tv = (await house.get("/devices?include=commands")).json
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
    assert (await house.get(f"/devices/{LIGHT}?include=commands")).json["commands"] == light["commands"]
    assert (await house.get(f"/devices?ids={TV}&include=commands")).json[0]["commands"] == tv["commands"]
    assert "commands" not in await house.device(LIGHT)
    assert (await house.get("/devices/nobody?include=x")).status == 404


async def test_what_the_catalog_does_not_allow_is_dropped_and_said_once(house: House) -> None:
    bad = {"brightness": 300, "power": "on", "colour": "red", "custom.x.y": [1], "humidity": None, "presence": True}
    seen = Observation(device_id="roku_tv:probe", kind=DeviceKind.SENSOR, attributes=bad)
    for _ in range(3):
        house.hub.registry.apply(Report(adapter="roku_tv", observations=(seen,)))
    shown = (await house.device("roku_tv:probe"))["attributes"]
    assert shown == {"power": "on", "custom.x.y": [1], "presence": True, "state": "online"}
    dropped = (await house.get("/adapters/roku_tv")).json["dropped"]
    assert [(each["device_id"], each["attribute"]) for each in dropped] == [
        ("roku_tv:probe", attribute) for attribute in ("brightness", "colour", "humidity")
    ]
    assert dropped[0]["reason"] == "must be an integer from 0 to 100, not 300"


async def test_what_happens_at_a_device_is_told_each_time_and_is_no_state(house: House) -> None:
    registry = house.hub.registry
    before = await house.device(TV)
    async with house.stream() as frames:
        for _ in range(2):
            registry.publish_event("roku_tv", TV, "double", {"count": 2})
        registry.publish_event("roku_tv", "nobody", "double", {})
        registry.publish_event("elgato_lights", TV, "double", {})
        registry.publish_event("roku_tv", TV, "", {})
        registry.publish_event("roku_tv", TV, "x", {"bad": float("nan")})
        received = await house.heard(frames)
    reported = {"type": "device.event", "id": TV, "event": "double", "data": {"count": 2}}
    assert [frame for frame in received if frame["type"] == "device.event"] == [reported, reported]
    assert (await house.device(TV))["attributes"] == before["attributes"]


async def test_stored_things_that_nobody_understands_are_left_out_kept_and_said(tmp_path: Path) -> None:
    async with open_house(data_dir=tmp_path) as house:
        await house.post("/rooms", {"id": "den", "name": "Den"})
        device = {"kind": "Robot", "source": "roku_tv", "vendor_specific": {}}
        odd = {
            "device/roku_tv:robot": device,
            "state/roku_tv:robot": {"at": 1, "is": {}},
            "room/odd": 7,
            "group/odd": {"name": "Odd"},
            "name/odd": {},
            "key/key_odd": {"role": "read"},
            "thing/new": {"x": 1},
        }
        await house.hub.document.put_many(odd)
    for _ in range(2):
        async with open_house(data_dir=tmp_path) as house:
            said = " ".join(event.message for event in house.events if hasattr(event, "message"))
            for key in ("device/roku_tv:robot", "room/odd", "group/odd", "name/odd", "key/key_odd"):
                assert f"{key} cannot be understood" in said
            assert [room["id"] for room in (await house.get("/rooms")).json] == ["den"]
            kept = house.hub.document.get("device/roku_tv:robot")
            assert kept is not None and orjson.loads(kept) == device


async def test_a_group_with_an_absent_member_can_be_written_back(house: House) -> None:
    await house.post("/groups", {"id": "all", "name": "All", "members": [LIGHT, TV]})
    house.hub.registry.remove("roku_tv", TV)
    group = (await house.get("/groups/all")).json
    assert group["members"] == [LIGHT, TV]
    assert (await house.post("/groups", group)).json == group
    assert (await house.post("/groups/all/members", {"members": [TV, LIGHT]})).json["members"] == [TV, LIGHT]
    assert (await house.post("/groups/all/members", {"members": [TV, "nobody"]})).status == 400
