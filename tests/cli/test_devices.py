"""`lares devices` lists the devices of the running hub or of the store, for authors of automations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import asked, ended
from tests.cli.homes import home
from tests.fakes.lua import automation, scene, write
from tests.fakes.process import configure, running

HOME = """
[adapters.virtual]
devices = [
  { id = "lamp", name = "Reading lamp", kind = "Light", attributes = { power = "off", brightness = 5 } },
  { id = "door", name = "Front door", class = "door", attributes = { contact = "closed", battery = 80 } },
  { id = "meter", name = "Meter", attributes = { energy_total = TOTAL } },
]
""".replace("TOTAL", '{ value = 12.345600000000001, unit = "kWh", period = "total" }')
COMMAND = 'ctx:command("hall_lamp", { capability = "brightness", action = "set", value = 50 })  -- from 0 to 100 %'


@pytest.mark.slow
@pytest.mark.parametrize("is_running", [True, False])
async def test_devices_are_listed_found_and_described(tmp_path: Path, is_running: bool) -> None:
    write(
        tmp_path,
        {
            "scenes/a.lua": scene("a", 'ctx:command("hall_lamp", {})'),
            "automations/b.lua": automation("b", '{ type = "device_event", device_id = "virtual:door" }'),
            "scripts/lights/c.lua": "return { 'virtual:lamp' }",
        },
    )
    configure(tmp_path, HOME)
    async with running(tmp_path) as process:
        await process.ready()
        assert await process.post("/devices/virtual:lamp/alias", alias="hall_lamp") == 200
        assert await process.post("/rooms", id="hall", name="Entrance") == 200
        assert await process.post("/devices/virtual:door/room", room_id="hall") == 200
        event = {"device_id": "virtual:door", "event": "ring"}
        assert await process.post("/adapters/virtual/operations/observe", **event) == 200
        if not is_running:
            assert await process.stop() == 0
        every = await asked(tmp_path, "devices")
        lamp, by_room = await asked(tmp_path, "devices", "reading LAMP"), await asked(tmp_path, "devices", "entrance")
        as_json, none = await asked(tmp_path, "devices", "lamp", "--json"), await asked(tmp_path, "devices", "doom")
        several = await asked(tmp_path, "devices", "virtual:")
    state = "online" if is_running else "offline"
    assert every.code == 0 and several.out == every.out
    lines = [line.split() for line in every.out.splitlines()]
    assert lines == [
        ["virtual:door", "Front", "door", "Entrance", state, "battery", "80", "%,", "contact", "closed"],
        ["hall_lamp", "Reading", "lamp", "-", state, "brightness", "5", "%,", "power", "off"],
        ["virtual:meter", "Meter", "-", state, "energy_total", "12.3456", "kWh"],
    ]
    assert bool(every.err) is not is_running
    for text in ("Reading lamp", "id: virtual:lamp", "alias: hall_lamp", COMMAND, "brightness  5 %", "2 files:"):
        assert text in lamp.out, lamp
    assert "  config/scenes/a.lua\n  config/scripts/lights/c.lua\n" in lamp.out
    assert "room: Entrance (hall)" in by_room.out and "events: ring" in by_room.out
    [found] = json.loads(as_json.out)
    assert (found["id"], found["alias"], found["room"], found["events"]) == ("virtual:lamp", "hall_lamp", None, [])
    assert found["attributes"]["brightness"] == 5 and found["commands"][0]["capability"] == "brightness"
    assert found["files"] == ["config/scenes/a.lua", "config/scripts/lights/c.lua"]
    assert none.code == 67 and "did you mean" in none.err


def test_a_home_without_devices_shows_a_remedy(tmp_path: Path) -> None:
    configure(tmp_path)
    (tmp_path / "data").mkdir(mode=0o700)
    result = ended(tmp_path, "devices")
    assert result.code == 0 and "`lares discover` finds devices" in result.out, result
    assert json.loads(ended(tmp_path, "devices", "--json").out) == []


@pytest.mark.slow
def test_stored_devices_of_other_sections_and_kinds_are_omitted(tmp_path: Path) -> None:
    stored: dict[str, Any] = {}
    types = {"desk:a": "virtual", "desk:b": "roku_tv", "desk:c": None, "x:d": None}
    for id_, type_ in types.items():
        device: dict[str, Any] = {
            "kind": "Light",
            "source": id_.partition(":")[0],
            "vendor_specific": {},
            "type": type_,
        }
        stored |= {f"device/{id_}": device, f"state/{id_}": {"at": 1767225600000, "is": {"power": "on"}}}
    home(tmp_path, stored)
    for text, expected in (
        ('[adapters.desk]\ntype = "virtual"\n', ["desk:a", "desk:c"]),
        ("[adapters.desk]\ntype = 1\n", [*types]),
    ):
        configure(tmp_path, text)
        assert [each["id"] for each in json.loads(ended(tmp_path, "devices", "--json").out)] == expected
