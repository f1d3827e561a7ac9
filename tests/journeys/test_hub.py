"""What the hub says of itself, and how its event stream is entered, over HTTP."""

from __future__ import annotations

from appliance.home.capabilities import CAPABILITIES, OWNERSHIP, UNITS
from tests.fakes.house import House


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


async def test_diagnostics_count_what_is_there(house: House) -> None:
    await house.post("/rooms", {"id": "den", "name": "Den"})
    async with house.stream():
        answer = await house.get("/diagnostics")
    assert answer.status == 200
    counts = {"adapters": 2, "devices": 2, "rooms": 1, "groups": 0, "scenes": 0, "automations": 0, "keys": 0}
    assert answer.json["counts"] == counts
    assert answer.json["adapters"]["roku_tv"]["runtime_status"] == "running"
    assert answer.json["events"]["readers"] == 1
