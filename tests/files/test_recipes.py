"""Recipes: each bundled recipe can be filled in, checked, and simulated. Wrong fields and values are reported."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from appliance.cli.initial_config import read_template, write_config
from appliance.config import bundled_config
from appliance.errors import Invalid
from appliance.files.recipe_fields import FieldFault
from appliance.files.recipes import Recipe, fill, read_recipe
from appliance.lua.text.source import Source
from tests.fakes.app import App, open_app

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

TEN = {
    *("away", "door_left_open", "double_press", "evening_light", "low_batteries", "motion_light", "vacation_lights"),
    *("wake_up_light", "washing_machine", "window_heating"),
}
NEW = {
    *("alarm_message", "daily_energy", "dawn_and_dusk_lights", "doorbell", "everything_off", "fan_by_humidity"),
    *("garage_left_open", "heating_schedule", "offline_devices", "presence_by_hooks"),
}
SCENES = {"good_night", "movie_night", "wake_up", "wind_down"}
TOML = """
[locale]
timezone = "UTC"
latitude = 52.5
longitude = 13.4
[adapters.virtual]
enabled = true
[[adapters.virtual.devices]]
id = "lamp"
kind = "Light"
attributes = { power = "off", brightness = 50 }
[[adapters.virtual.devices]]
id = "motion"
attributes = { motion = "clear", occupancy = "unoccupied" }
[[adapters.virtual.devices]]
id = "door"
attributes = { contact = "closed" }
[[adapters.virtual.devices]]
id = "plug"
[adapters.virtual.devices.attributes]
power = "on"
power_consumption = { value = 0, unit = "W" }
energy_today = { value = 1.5, unit = "kWh", period = "day" }
[[adapters.virtual.devices]]
id = "radiator"
attributes = { hvac_mode = "heat", target_temperature = { value = 20, unit = "°C" } }
[[adapters.virtual.devices]]
id = "air"
attributes = { humidity = { value = 50, unit = "%" }, battery = 10 }
[[adapters.virtual.devices]]
id = "alarm"
attributes = { smoke = false, water_leak = false }
[[adapters.virtual.devices]]
id = "phone"
attributes = { presence = true }
[[adapters.virtual.devices]]
id = "bell"
attributes = { power = "on" }
"""

DEVICES = {
    "motion|occupancy": "virtual:motion",
    "contact": "virtual:door",
    "garage_door|door|contact": "virtual:door",
    "power_consumption": "virtual:plug",
    "energy_today|energy_total": "virtual:plug",
    "target_temperature|hvac_mode": "virtual:radiator",
    "humidity": "virtual:air",
    "smoke": "virtual:alarm",
    "water_leak": "virtual:alarm",
    "presence": "virtual:phone",
    "power": "virtual:lamp",
    None: "virtual:bell",
}

EVENTS = {
    "alarm_message": ["00:10 virtual:alarm smoke true"],
    "away": ["00:10 virtual:phone presence false"],
    "door_left_open": ["00:10 virtual:door contact open"],
    "doorbell": ["00:10 virtual:bell event single"],
    "double_press": ["00:10 virtual:bell event double"],
    "fan_by_humidity": ["00:10 virtual:air humidity 80 %"],
    "garage_left_open": ["00:10 virtual:door contact open"],
    "motion_light": ["00:10 virtual:motion occupancy occupied", "+60 virtual:motion occupancy unoccupied"],
    "presence_by_hooks": ["00:10 hook anna_home"],
    "washing_machine": ["00:10 virtual:plug power_consumption 500 W", "+60 virtual:plug power_consumption 1 W"],
    "window_heating": ["00:10 virtual:door contact open"],
}
"""The events in the home that trigger the automation."""

SHOWS = {
    "alarm_message": "Smoke detected",
    "daily_energy": "1.50 kWh",
    "door_left_open": "Left open",
    "garage_left_open": "is open",
    "low_batteries": "battery is low",
    "washing_machine": "is done",
    "doorbell": "at the door",
    "motion_light": "virtual:lamp",
    "fan_by_humidity": "virtual:lamp",
    "heating_schedule": "target_temperature",
    "window_heating": "hvac_mode",
}
"""Expected parts of the simulation's lines."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """Run a hub with the bundled configuration and a virtual device of each kind."""
    root = tmp_path_factory.mktemp("home")
    write_config(root / "config", read_template(bundled_config()))
    (root / "config" / "test.toml").write_text(TOML)
    (root / "data").mkdir()
    async with open_app(root=root, data_dir=root / "data", adapters=TOML, toml=TOML) as app:
        for name in ("hall", "evening", "bedroom", "vacation", "outside", "pretend", "night"):
            await app.post("/groups", {"id": name, "name": name, "members": ["virtual:lamp"]})
        await app.post("/rooms", {"id": "living_room", "name": "Living room"})
        await app.post("/devices/virtual:radiator/room", {"room_id": "living_room"})
        for event in ("single", "double"):
            await app.post("/adapters/virtual/operations/observe", {"device_id": "virtual:bell", "event": event})
        yield app


async def listed(app: App) -> dict[str, Any]:
    return {each["id"]: each for each in (await app.get("/recipes")).json["recipes"]}


def values_of(recipe: Any) -> dict[str, Any]:
    """Return a value for each field, as a person would choose it."""
    values = {}
    for field in recipe["fields"]:
        value = field["default"]
        if field["type"] == "device":
            value = DEVICES[field["of"]] if isinstance(value, str) else [DEVICES[field["of"]]]
        values[field["name"]] = 36_000 if field["name"] == "again" else value
    return values


async def test_the_recipes_exist_and_are_not_automations(home: App) -> None:
    recipes = await listed(home)
    assert recipes.keys() == TEN | NEW | SCENES
    for id_, recipe in recipes.items():
        assert recipe["kind"] == ("scene" if id_ in SCENES | {"everything_off"} else "automation")
        assert recipe["name"] and recipe["description"].endswith(".") and recipe["fields"]
    assert not {each["id"] for each in (await home.get("/automations")).json} & recipes.keys()


@pytest.mark.parametrize("id_", sorted(TEN | NEW | SCENES))
async def test_a_recipe_is_filled_in_checked_and_simulated(home: App, id_: str) -> None:
    recipe = (await listed(home))[id_]
    file = f"my_{id_}"
    body = {"file": file, "name": f"My {id_}", "values": values_of(recipe)}
    await home.delete("/variables/vacation")
    checked = await home.post(f"/recipes/{id_}/check", body)
    assert (checked.status, checked.json) == (200, {"errors": [], "warnings": []})
    made = await home.post(f"/recipes/{id_}", body)
    assert made.status == 200, made.json
    assert made.json["path"] == f"config/{recipe['kind']}s/{file}.lua"
    assert made.json["warnings"] == []
    found = [each for each in (await home.get(f"/{recipe['kind']}s")).json if each["id"] == file]
    assert found and found[0]["name"] == f"My {id_}"
    if recipe["kind"] == "automation":
        assert found[0]["status"] == "enabled"
        await home.ask("PUT", "/variables/vacation", json={"value": True})
        asked = {"from": "2026-11-20T00:00:00Z", "hours": 30, "run": True, "events": EVENTS.get(id_, [])}
        simulation = (await home.post("/simulate", asked)).json
        own = [line for line in simulation["lines"] if line.get("automation") == file]
        assert any(line.get("fired") for line in own), simulation
        assert not [line for line in own if line.get("fired") and line["error"]], own
        assert SHOWS.get(id_, "") in str(own)
    else:
        assert (await home.post(f"/scenes/{file}/cancel")).status == 200
    for path in (f"/recipes/{id_}", f"/recipes/{id_}/check"):
        again = await home.post(path, body)
        assert (again.status, again.json["code"]) == (409, "file_exists")
    assert (await home.delete(f"/files/{made.json['path']}")).status == 204


async def test_simultaneous_requests_for_one_file_write_it_once(home: App) -> None:
    recipe = (await listed(home))["motion_light"]
    body = {"file": "twice", "name": "Twice", "values": values_of(recipe)}
    answers = await asyncio.gather(*(home.post("/recipes/motion_light", body) for _ in range(4)))
    await home.delete("/files/config/automations/twice.lua")
    assert Counter(each.json.get("code") for each in answers) == {None: 1, "file_exists": 3}


async def test_two_automations_of_one_recipe_share_no_timer_and_no_variable(home: App) -> None:
    recipe = (await listed(home))["motion_light"]
    texts = []
    for file in ("one", "two"):
        made = await home.post("/recipes/motion_light", {"file": file, "name": file, "values": values_of(recipe)})
        texts.append((await home.get(f"/files/{made.json['path']}")).json["text"])
        await home.delete(f"/files/{made.json['path']}")
    assert '"one.moves"' in texts[0] and '"two.moves"' in texts[1] and "motion_light" not in "".join(texts)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no sensors": ({"group": "hall"}, "values.sensors is missing (the motion sensors)"),
    "an unknown field": ({"sensor": ["x"]}, "did you mean sensors?"),
    "no list": ({"sensors": 7}, "values.sensors must be a list of ids of devices"),
    "an empty list": (
        {"sensors": []},
        "values.sensors must be a list with at least one id of a device (the motion sensors)",
    ),
    "a number beyond": ({"brightness": 200}, "values.brightness must be a number from 1 to 100"),
    "a number as text": ({"brightness": "7"}, "values.brightness must be a number"),
    "a wrong duration": ({"hold": "soon"}, "values.hold must be a number of seconds"),
    "a text for a group": ({"group": 5}, "values.group must be a string"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_value_is_named(home: App, what: str) -> None:
    values, words = WRONG[what]
    good = {"sensors": ["virtual:motion"], "group": "hall"} if what != "no sensors" else {}
    body = {"file": "wrong", "name": "Wrong", "values": {**good, **values}}
    for path in ("/recipes/motion_light", "/recipes/motion_light/check"):
        refused = await home.post(path, body)
        assert refused.status == 400 and words in refused.json["error"], refused.json


@pytest.mark.parametrize("file", ["", "../x", "A", "x.txt", "x" * 41, "config/scenes/x"])
async def test_a_file_has_a_plain_name(home: App, file: str) -> None:
    body = {"file": file, "name": "x", "values": {"time": "10:00"}}
    assert (await home.post("/recipes/low_batteries", body)).status == 400


async def test_an_unknown_recipe_is_not_found(home: App) -> None:
    missing = await home.post("/recipes/nothing", {"file": "x", "name": "x"})
    assert (missing.status, missing.json["code"]) == (404, "recipe_not_found")


OWN = """-- @field in a comment is none
--- @field lamp device power: the lamp
-- which one
local lamp = "virtual:lamp" -- a sample
--- @field at time: when
local at = "07:00"
--- @field word choice a|b c: a word
local word = 'b c'
--- @field low number -5..0.5: a number
local low = -2.5

return { id = "own", name = "Own", trigger = { type = "wall_clock", time = at },
  execute = function(ctx) ctx:log("info", "own") if word == "a" then return elseif low then lamp = nil end end,
  description = "Mine." }
"""


async def test_a_home_has_recipes_of_its_own_that_replace_others(home: App) -> None:
    folder = home.hub._config.root / "config" / "recipes"
    folder.mkdir(exist_ok=True)
    (folder / "own.lua").write_text(OWN)
    (folder / "evening_light.lua").write_text(OWN)
    (folder / "broken.lua").write_text('--- @field x nothing: what\nlocal x = "a"\n')
    recipes = await listed(home)
    assert recipes["own"] == {
        "id": "own",
        "name": "Own",
        "description": "Mine.",
        "kind": "automation",
        "fields": [
            {"name": "lamp", "type": "device", "of": "power", "label": "the lamp", "default": "virtual:lamp"},
            {"name": "at", "type": "time", "of": None, "label": "when", "default": "07:00"},
            {"name": "word", "type": "choice", "of": "a|b c", "label": "a word", "default": "b c"},
            {"name": "low", "type": "number", "of": "-5..0.5", "label": "a number", "default": -2.5},
        ],
    }
    assert recipes["evening_light"]["name"] == "Own" and "broken" not in recipes
    values = {"lamp": 'a"\\b', "at": "08:15", "word": "a", "low": 0.5}
    made = await home.post("/recipes/own", {"file": "mine", "name": 'Mi"ne', "values": values})
    text = (await home.get(f"/files/{made.json['path']}")).json["text"]
    assert 'local lamp = "a\\"\\\\b" -- a sample' in text and 'local at = "08:15"' in text
    assert (
        "local low = 0.5\n" in text and 'id = "mine", name = "Mi\\"ne"' in text and 'ctx:log("info", "mine")' in text
    )
    for file in folder.iterdir():
        file.unlink()


FAULTS = {
    "no label": ('--- @field x device\nlocal x = "a"', 1, "write the field as"),
    "no type": ('--- @field x: a\nlocal x = "a"', 1, "write the field as"),
    "an unknown type": ('--- @field x devise: a\nlocal x = "a"', 1, "did you mean device?"),
    "another local": ('\n--- @field x device: a\nlocal y = "a"', 2, "`local x = …` must follow"),
    "nothing behind": ("--- @field x device: a", 1, "must follow"),
    "a computed value": ("--- @field x text: a\nlocal x = f()", 2, "must be a text"),
    "a number beyond its range": ("--- @field x number 1..5: a\nlocal x = 7", 2, "from 1 to 5"),
    "a number without a range": ("--- @field x number: a\nlocal x = 7", 2, "needs a range"),
    "a default that is no choice": ('--- @field x choice a|b: c\nlocal x = "c"', 2, "must be a or b"),
    "a hexadecimal number": ("--- @field x number 1..5: a\nlocal x = 0x10", 2, "must be a text, a decimal number"),
    "a malformed number": ("--- @field x number 1..5: a\nlocal x = 1..2", 2, "must be a text"),
    "a comparison": ('--- @field x text: a\nlocal x == "a"', 2, "has no value"),
    "a field inside a text": ('local a = [[\n--- @field x text: a\nlocal x = "a"\n]]', 3, "has no value"),
    "a minus without a number": ("--- @field x number 1..5: a\nlocal x = -", 2, "must be a text"),
    "a negated text": ('--- @field x text: a\nlocal x = -"a"', 2, "must be a text"),
    "a rule without a reason": ("--- @rule x < y\n", 1, "write the rule as"),
    "a rule for an unknown field": ('--- @field xx text: a\nlocal xx = "a"\n--- @rule xx ~= yy: b', 3, "yy is not"),
    "a rule that the samples contradict": (
        "--- @field x number 1..5: a\nlocal x = 2\n--- @rule x < x: b",
        3,
        "values.x must be less than values.x: b",
    ),
    "a rule for two types": (
        '--- @field x number 1..5: a\nlocal x = 2\n--- @field y text: a\nlocal y = "a"\n--- @rule x ~= y: b',
        5,
        "different types",
    ),
    "durations in other units": (
        '--- @field x duration: a\nlocal x = "5m"\n--- @field y duration: a\nlocal y = 60\n--- @rule x < y: b',
        5,
        "values.x must be less than values.y: b",
    ),
    "an order of texts": (
        '--- @field x text: a\nlocal x = "a"\n--- @field y text: a\nlocal y = "b"\n--- @rule x < y: c',
        5,
        "`<` compares only fields of the types number, duration, time",
    ),
    "too many fields": (
        "\n".join(f'--- @field x{number} text: a\nlocal x{number} = "a"' for number in range(101)),
        201,
        "at most 100 fields",
    ),
    "a list without an end": ('--- @field x device: a\nlocal x = { "a",', 2, "is not closed"),
}


async def test_durations_are_compared_in_seconds() -> None:
    text = '--- @field x duration: a\nlocal x = "5m"\n--- @field y duration: a\nlocal y = "10m"\n--- @rule x < y: b\n'
    recipe = read_recipe(Source(name="config/recipes/x.lua", text=text.encode()))
    assert "local x = 300\n" in fill(recipe, "x", "x", {}) and "local x = 540\n" in fill(
        recipe, "x", "x", {"x": "9m"}
    )
    with pytest.raises(Invalid, match=r"values\.x must be less than values\.y: b"):
        fill(recipe, "x", "x", {"x": 600})


@pytest.mark.parametrize("what", FAULTS)
async def test_a_wrong_field_is_named_with_its_line(what: str) -> None:
    text, line, words = FAULTS[what]
    with pytest.raises(FieldFault) as raised:
        read_recipe(Source(name="config/recipes/x.lua", text=text.encode()))
    assert raised.value.line == line and words in str(raised.value)


@pytest.mark.parametrize(
    ("id_", "values", "sentence"),
    [
        (
            "fan_by_humidity",
            {"on_above": 40, "off_below": 70},
            "off_below must be less than values.on_above: otherwise",
        ),
        ("heating_schedule", {"day_time": "07:00", "night_time": "07:00"}, "day_time must differ from"),
        ("presence_by_hooks", {"home": "anna", "away": "anna"}, "home must differ from values.away"),
        ("washing_machine", {"runs_above": 5, "rests_below": 5}, "rests_below must be less than"),
        ("away", {"from": "20:00", "to": "20:00"}, "from must differ from values.to"),
        ("vacation_lights", {"from": "20:00", "to": "20:00"}, "from must differ from values.to"),
    ],
)
async def test_contradictory_values_are_refused(home: App, id_: str, values: dict[str, Any], sentence: str) -> None:
    stated = values_of((await listed(home))[id_]) | values
    answer = await home.post(f"/recipes/{id_}", {"file": "odd", "name": "Odd", "values": stated})
    assert answer.status == 400 and f"values.{sentence}" in answer.json["error"], answer.json


async def test_an_unusual_unit_and_a_room_without_thermostat_cause_warnings(home: App) -> None:
    observe, units = "/adapters/virtual/operations/observe", {"kW": 1, "W": 0}
    for unit, warned in units.items():
        seen = {"power_consumption": {"value": 0, "unit": unit}}
        assert (await home.post(observe, {"device_id": "virtual:plug", "attributes": seen})).status == 200
        stated = values_of((await listed(home))["washing_machine"])
        made = await home.post(
            "/recipes/washing_machine", {"file": f"w_{unit.lower()}", "name": "W", "values": stated}
        )
        found = [
            each
            for each in made.json["warnings"]
            if "reports power_consumption in kW, so 10 means 10 kW" in str(each)
        ]
        assert len(found) == warned, made.json
    await home.post("/rooms", {"id": "cellar", "name": "Cellar"})
    stated = values_of((await listed(home))["heating_schedule"]) | {"room": "cellar"}
    assert (
        await home.post("/recipes/heating_schedule", {"file": "cold", "name": "C", "values": stated})
    ).status == 200
    await home.post("/automations/reload")
    assert (await home.post("/automations/cold/execute")).status == 200
    [entry] = (await home.get("/automations/cold/history")).json["entries"]
    assert "the room has no thermostat" in str(entry), entry


async def test_the_format_of_a_text_is_kept() -> None:
    recipe: Recipe = read_recipe(Source(name="recipes/own.lua", text=OWN.encode()))
    with pytest.raises(Invalid, match=r"values\.lamp is missing"):
        fill(recipe, "own", "Own", {})
    assert fill(recipe, "own", "Own", {"lamp": "virtual:lamp"}) == OWN.replace("'b c'", '"b c"')


async def test_bundled_recipes_come_from_the_program(tmp_path: Path) -> None:
    write_config(tmp_path / "config", read_template(bundled_config()))
    assert not (tmp_path / "config" / "recipes").exists()
    assert not [*(tmp_path / "config" / "automations").iterdir()]
