"""What the hub says of itself, and how its event stream is entered, over HTTP."""

from __future__ import annotations

from msgspec.structs import asdict

from appliance.adapters.discovery.discovery import Found
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP, UNITS
from tests.fakes.house import READER, House, open_house


async def test_the_capabilities_of_every_attribute_are_in_the_catalog(house: House) -> None:
    answer = await house.get("/capabilities")
    assert (answer.status, len(answer.json["capabilities"]), answer.json["ownership"]) == (200, 60, OWNERSHIP)
    listed = {entry["key"] for entry in answer.json["capabilities"]}
    units = {entry["key"]: entry["unit"] for entry in answer.json["capabilities"] if "unit" in entry}
    assert units == UNITS == (await house.get("/overview")).json["units"]
    periods = {entry["key"]: entry["period"] for entry in answer.json["capabilities"] if "period" in entry}
    assert periods["energy_today"] == "today"
    for device in (await house.get("/devices")).json:
        assert set(device["attributes"]) <= listed
        for key, value in device["attributes"].items():
            assert CAPABILITIES[key].check(value) == value


async def test_what_a_search_found_is_listed_and_its_seconds_are_bounded() -> None:
    section = '[adapters.wled]\nbase_url = "http://10.0.0.2"\n'
    lamp = Found(kind="wled", name="Desk", address="10.0.0.2:80", serial=None, section=section)
    async with open_house(adapters={}, found=[lamp]) as house:
        for query in ("", "?seconds=1", "?seconds=30"):
            answer = await house.get(f"/discovery{query}")
            assert (answer.status, answer.json) == (200, {"found": [asdict(lamp)]})
        for wrong in ("0", "31", "1.5", "", "x"):
            assert (await house.get(f"/discovery?seconds={wrong}")).status == 400
        assert (await house.get("/discovery", token=READER.text)).status == 403


async def test_diagnostics_count_what_is_there(house: House) -> None:
    await house.post("/rooms", {"id": "den", "name": "Den"})
    async with house.stream():
        answer = await house.get("/diagnostics")
    assert answer.status == 200
    counts = {"adapters": 2, "devices": 2, "rooms": 1, "groups": 0, "scenes": 0, "automations": 0, "keys": 0}
    assert answer.json["counts"] == counts
    assert answer.json["adapters"]["roku_tv"]["runtime_status"] == "running"
    assert answer.json["events"]["readers"] == 1
