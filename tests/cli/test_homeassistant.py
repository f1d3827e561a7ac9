"""`lares import homeassistant`: a Home Assistant folder becomes rooms, names, variables, and automations in Lua."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from appliance.cli import homeassistant
from appliance.cli.homeassistant import actions, automation, conditions, scripts, templates, triggers
from appliance.cli.homeassistant.conditions import Declared
from appliance.cli.homeassistant.entities import Entities, Script
from appliance.cli.homeassistant.installation import read_installation
from appliance.cli.homeassistant.not_translated import NotTranslated, TooLarge
from appliance.cli.homeassistant.scope import Scope
from appliance.cli.homeassistant.statements import as_yaml
from appliance.cli.homeassistant.times import seconds
from appliance.cli.homeassistant.values import object_id, title_of
from appliance.cli.homeassistant.yaml_parser import Tagged, YamlParser
from appliance.cli.record_checks import check_record
from appliance.errors import StartFailed
from appliance.home.texts import name as checked_name
from appliance.home_locale import Locale
from appliance.store.restore import read_document
from tests.cli.commands import Ended, ended
from tests.fakes.process import ROOT, running

ROWS: dict[str, list[Any]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "homeassistant_rows.yaml")
"""Parts of Home Assistant's configuration, and their translations."""

AUTOMATIONS = Path(__file__).parent / "homeassistant_automations.yaml"

DEVICES = {
    "motion": ("hall", "Hall motion"),
    "lamp": ("hall", "Hall lamp"),
    "window": ("kitchen", "Kitchen window"),
    "valve": ("kitchen", "Kitchen valve"),
    "sensor": ("kitchen", "Kitchen sensor"),
    "remote": ("hall", "Remote"),
    "plug": ("kitchen", "Washing machine"),
    "blind": ("kitchen", "Blind"),
    "door": ("hall", "Front door"),
    "leak": ("kitchen", "Leak"),
    "tv": (None, "TV"),
    "phone": (None, "Phone"),
}
"""For each id in the registry: the room and the name. The identifier over MQTT is `dev_<id>`."""

ENTITIES = {
    "binary_sensor.hall_motion": ("motion", "occupancy"),
    "light.hall": ("lamp", None),
    "binary_sensor.window": ("window", "window"),
    "climate.kitchen": ("valve", None),
    "sensor.kitchen_temperature": ("sensor", "temperature"),
    "sensor.kitchen_humidity": ("sensor", "humidity"),
    "sensor.washer_power": ("plug", "power"),
    "switch.washer": ("plug", None),
    "cover.blind": ("blind", "blind"),
    "cover.gate": ("door", "gate"),
    "lock.door": ("door", None),
    "binary_sensor.leak": ("leak", "moisture"),
    "binary_sensor.leak_tamper": ("leak", "tamper"),
    "media_player.tv": ("tv", None),
    "device_tracker.phone": ("phone", None),
    "number.valve_offset": ("valve", None),
    "switch.plug_second": ("plug", None),
}
"""For each entity: the registry id of the entity's device, and the entity's class."""


def registry(folder: Path, name: str, data: Any) -> None:
    (folder / ".storage").mkdir(parents=True, exist_ok=True)
    (folder / ".storage" / name).write_text(json.dumps({"version": 1, "key": name, "data": data}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_installation(tmp_path / "homeassistant")


def write_installation(root: Path) -> Path:
    """Write a Home Assistant folder with twelve devices."""
    root.mkdir()
    (root / "automations.yaml").write_text(AUTOMATIONS.read_text())
    (root / "configuration.yaml").write_text(
        "automation: !include automations.yaml\nhttp: {api_password: !secret key}\n"
        "input_boolean: {vacation: {name: Vacation}, washing: {}}\n"
        "timer: {laundry: {duration: '00:45:00'}}\n"
    )
    registry(root, "core.config", {"latitude": 52.5, "longitude": 13.4, "time_zone": "Europe/Berlin"})
    registry(
        root, "core.area_registry", {"areas": [{"id": "hall", "name": "Hall"}, {"id": "kitchen", "name": "Kitchen"}]}
    )
    devices = [
        {"id": id_, "identifiers": [["mqtt", f"dev_{id_}"]], "connections": [], "name": name, "area_id": area}
        for id_, (area, name) in DEVICES.items()
    ]
    registry(root, "core.device_registry", {"devices": devices})
    entities = [
        {
            "entity_id": entity_id,
            "id": f"reg_{entity_id.replace('.', '_')}",
            "unique_id": f"dev_{device}_{entity_id.partition('.')[2]}",
            "platform": "mqtt",
            "device_id": device,
            "original_name": "Second" if entity_id.endswith("second") else None,
            "original_device_class": device_class,
        }
        for entity_id, (device, device_class) in ENTITIES.items()
    ]
    registry(root, "core.entity_registry", {"entities": entities})
    registry(root, "person", {"items": [{"id": "anna", "name": "Anna", "device_trackers": ["device_tracker.phone"]}]})
    state = {"entity_id": "input_select.mode", "state": "day"}
    registry(root, "core.restore_state", [{"state": state}])
    return root


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Provide a new home of Lares."""
    root = tmp_path / "home"
    root.mkdir()
    assert ended(root, "init", ".").code == 0
    return root


@pytest.fixture(scope="module")
def entities(tmp_path_factory: pytest.TempPathFactory) -> Entities:
    root = write_installation(tmp_path_factory.mktemp("homes") / "homeassistant")
    return Entities(read_installation(root), "mqtt", {}, Locale(latitude=52.5, longitude=13.4))


def test_the_map_of_the_package_names_every_module() -> None:
    modules = {each.stem for each in Path(homeassistant.__path__[0]).glob("*.py")} - {"__init__"}
    assert modules - set(re.findall(r"`(\w+)`", homeassistant.__doc__ or "")) == set()


def bring(home: Path, folder: Path) -> Ended:
    return ended(home, "import", "homeassistant", str(folder))


def switch_on(home: Path) -> None:
    for file in (home / "config" / "automations").glob("*.lua"):
        if "Imported from Home Assistant" in file.read_text():
            file.write_text(re.sub("enabled = false.*", "enabled = true,", file.read_text()))
        else:
            file.unlink()


@pytest.mark.slow
def test_rooms_names_variables_and_the_locale_are_imported(home: Path, folder: Path) -> None:
    result = bring(home, folder)
    assert result.code == 0, result.err
    document = {key: json.loads(value) for key, value in read_document(home / "data").values.items()}
    assert document["room/hall"] == {"name": "Hall"}
    assert document["place/mqtt:dev_lamp"] == "hall"
    assert document["name/mqtt:dev_lamp"] == "Hall lamp"
    assert document["variable/vacation"] == {"value": False}
    assert document["variable/mode"] == {"value": "day"}
    text = (home / "config" / "default.toml").read_text()
    assert 'timezone = "Europe/Berlin"' in text
    assert "latitude = 52.5\n" in text


@pytest.mark.slow
def test_every_automation_is_one_sound_file_that_is_off(home: Path, folder: Path) -> None:
    result = bring(home, folder)
    files = [each for each in (home / "config" / "automations").glob("*.lua") if "Imported from" in each.read_text()]
    assert len(files) == 20, result.out
    assert all("enabled = false" in each.read_text() for each in files)
    checked = ended(home, "check")
    assert checked.code == 0, checked.out + checked.err


def test_parts_without_a_counterpart_are_comments_with_the_reason(home: Path, folder: Path) -> None:
    result = bring(home, folder)
    text = (home / "config" / "automations" / "things_without_a_counterpart.lua").read_text()
    for part in ("topic: a/b", "tag_id: door", "state_attr('sun.sun'", "event: my_event", "shell_command.reboot"):
        assert part in text
        assert all(line.lstrip().startswith("--") for line in text.splitlines() if part in line)
    assert 'ctx:command("mqtt:dev_lamp", { capability = "power", action = "off" })' in text
    assert "Lares has no trigger for a topic" in result.out


@pytest.mark.slow
def test_a_second_import_overwrites_nothing(home: Path, folder: Path) -> None:
    bring(home, folder)
    file = home / "config" / "automations" / "motion_light.lua"
    imported = home / "config" / "automations" / "leak.lua"
    before = {each: each.read_bytes() for each in (file, imported, home / "config" / "default.toml")}
    result = bring(home, folder)
    assert result.code == 0
    assert {each: each.read_bytes() for each in before} == before
    assert not re.search(r"^imported", result.out, re.MULTILINE), result.out
    assert "already set" in result.out


FAULTY = {
    "{triggers: [{trigger: time, at: '99:99:99'}, %s], actions: []}": "trigger 1: 99:99:99 is not a time of day",
    "{triggers: [{trigger: sun, event: sunset, offset: '-48:00:00'}, %s], actions: []}": "offset_mins must be an",
    "{triggers: [{trigger: sun, event: sunset, offset: x}, %s], actions: []}": "trigger 1: x is not a duration",
    "{triggers: [{trigger: time_pattern, minutes: 99}, %s], actions: []}": "trigger 1: expression",
    "{triggers: [{trigger: time, at: '7:00', weekday: [foo]}, %s], actions: []}": "these weekdays are unknown: foo",
    "{triggers: [{trigger: webhook, webhook_id: ''}, %s], actions: []}": "trigger 1: hook",
    "{triggers: [%s], conditions: [{condition: time, after: '25:00'}], actions: []}": "condition 1: 25:00 is not a",
    "{triggers: [%s], actions: [{if: [{condition: time, after: '25:00'}], then: []}]}": "condition: 25:00 is not a",
    "{triggers: [%s], actions: [{delay: .nan}]}": "nan is not a duration",
    "{triggers: [%s], actions: [{delay: .inf}]}": "inf is not a duration",
    f"{{triggers: [%s], actions: [{{delay: '{'9' * 400}:00'}}]}}": "9… is not a duration",
    f"{{triggers: [%s], actions: [{{delay: {'9' * 400}}}]}}": "9… is not a duration",
    "{triggers: [%s], actions: [{action: light.turn_on, entity_id: light.a, data: {brightness: .inf}}]}": "unk",
    "{triggers: [%s], actions: [{action: light.turn_on, entity_id: light.a, data: {rgb_color: [.inf, 1, 1]}}]}": "un",
    "{triggers: [%s], actions: [{action: light.turn_on, entity_id: light.a, data: {brightness_step: 1e999}}]}": "unk",
    "{triggers: [%s], actions: [{variables: 7}]}": "the variables are not a YAML mapping",
    "{triggers: [%s], actions: [{delay: -1}]}": "the delay is negative",
    "{triggers: [%s], actions: [{choose: [{sequence: []}]}]}": "an option has no conditions",
    "{triggers: [{trigger: time, at: true}, %s], actions: []}": "True is not a time of day",
    "{triggers: [{trigger: state, entity_id: light.a, to: '{{ x }}'}, %s], actions: []}": "the state is a template",
    "{triggers: [%s], actions: [{action: input_boolean.turn_on, entity_id: x}]}": "x is not an entity id",
    "{triggers: [%s], actions: [{action: light.turn_on, entity_id: light.a, data: {brightness: x}}]}": "x is not a",
    "{triggers: [%s], actions: [{action: light.turn_on, entity_id: light.a, data: {transition: x}}]}": "x is not a",
    "{triggers: [%s], actions: [{action: cover.set_cover_position, entity_id: cover.a, data: {position: a}}]}": "a i",
}
"""Automations with one fault each, and a part of the reported reason. `%s` is a valid trigger."""

REFUSED = {
    f"{{triggers: [{'%s, ' * 250}], actions: []}}": "triggers has 250 entries, but can have at most 200",
    "{triggers: [%s], actions: [], variables: {" + ", ".join(f"v{n}: 1" for n in range(250)) + "}}": "local",
    "{triggers: [%s], actions: [], mode: 7}": "the mode 7 is unknown",
    "{triggers: [%s], actions: [], mode: queued, max: x}": "max is not a whole number, but x",
    '{triggers: [%s], actions: [], description: "\\ud800"}': "a character that UTF-8 cannot encode",
}
"""Automations that cannot be imported, and a part of the reported reason."""


@pytest.mark.slow
def test_every_imported_file_is_valid_and_each_other_part_is_reported(home: Path, tmp_path: Path) -> None:
    valid = "{trigger: time, at: '07:00'}"
    rows = [*FAULTY, *REFUSED]
    (tmp_path / "ha").mkdir()
    text = "".join(
        f"- {each.replace('{', f'{{alias: A{n}, ', 1).replace('%s', valid)}\n" for n, each in enumerate(rows)
    )
    (tmp_path / "ha" / "automations.yaml").write_text(text)
    result = bring(home, tmp_path / "ha")
    assert result.code == 0, result.err
    for number, each in enumerate(rows):
        reason = re.escape({**FAULTY, **REFUSED}[each])
        line = rf"^skipped   automation A{number} \(automations\.yaml, number {number + 1}\): .*{reason}"
        shown = [each for each in result.out.splitlines() if f" A{number} " in each]
        assert re.search(line, "\n".join(shown), re.MULTILINE), (line, shown)
        assert (home / "config" / "automations" / f"a{number}.lua").exists() is (each in FAULTY)
    checked = ended(home, "check")
    assert checked.code == 0, checked.out


@pytest.mark.slow
def test_an_id_in_another_file_is_not_used_again(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "automations.yaml").write_text("- {alias: A, triggers: [], actions: []}")
    bring(home, tmp_path / "ha")
    folder = home / "config" / "automations"
    (folder / "a.lua").rename(folder / "renamed.lua")
    assert "config/automations/renamed.lua already has the id a" in bring(home, tmp_path / "ha").out
    assert not (folder / "a.lua").exists()


def test_files_are_written_where_the_hub_reads_them(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "automations.yaml").write_text("- {alias: A, triggers: [], actions: []}")
    file, old = home / "config" / "default.toml", home / "config" / "automations"
    before = {*old.glob("*")}
    text = file.read_text()
    for name in ("automations", "scripts"):
        text = text.replace(f'directory = "config/{name}"', f'directory = "own/{name}"')
    file.write_text(text)
    assert f"{home}/own/automations/a.lua" in bring(home, tmp_path / "ha").out
    assert (home / "own" / "scripts" / "homeassistant.lua").exists()
    assert {*old.glob("*")} == before
    (home / "own" / "automations" / "a.lua").rename(home / "own" / "automations" / "b.lua")
    assert "own/automations/b.lua already has the id a" in bring(home, tmp_path / "ha").out


def test_single_letters_are_texts_as_in_home_assistant(tmp_path: Path) -> None:
    (tmp_path / "configuration.yaml").write_text("input_text: {n: {initial: y}}\ninput_boolean: {Y: {initial: yes}}")
    assert read_installation(tmp_path).helpers == {"input_text.n": "y", "input_boolean.Y": True}


def test_an_older_common_module_is_kept_and_reported(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "automations.yaml").write_text("- {alias: A, triggers: [], actions: []}")
    module = home / "config" / "scripts" / "homeassistant.lua"
    module.write_text("return {}")
    result = bring(home, tmp_path / "ha")
    assert f"skipped   script homeassistant: {module} differs from this version's" in result.out
    assert module.read_text() == "return {}"


WRONG_TYPES = {
    "input_boolean: 7": "configuration.yaml: input_boolean is not a YAML mapping, but 7",
    "timer: x": "configuration.yaml: timer is not a YAML mapping, but x",
    "timer: {a: 5}": "configuration.yaml: timer.a is not a YAML mapping, but 5",
    "input_number: {a: {initial: [1]}}": "configuration.yaml: input_number.a.initial is not a number, but [1]",
    "input_number: {a: {min: x}}": "configuration.yaml: input_number.a.min is not a number, but x",
    "input_text: {a: {initial: !secret b}}": "input_text.a.initial is not a single value, but !secret b",
    "group: {a: 5}": "configuration.yaml: group.a is not a YAML mapping, but 5",
    "schedule: [1]": "configuration.yaml: schedule is not a YAML mapping, but [1]",
    "zone: 3": "configuration.yaml: zone is not a YAML mapping, but 3",
    "person: [4]": "configuration.yaml: person is not a YAML mapping, but 4",
    "person: [{name: A, device_trackers: b}]": "configuration.yaml: A: device_trackers is not a list, but b",
    "homeassistant: 7": "configuration.yaml: homeassistant is not a YAML mapping, but 7",
    "homeassistant: {time_zone: 5}": "configuration.yaml: time_zone is not a text, but 5",
    "homeassistant: {latitude: x, longitude: 1}": "configuration.yaml: latitude is not a number, but x",
    "homeassistant: {packages: 3}": "configuration.yaml: packages is not a YAML mapping, but 3",
    "homeassistant: {packages: {a: 3}}": "configuration.yaml: the package is not a YAML mapping, but 3",
    "[1]": "configuration.yaml: the file is not a YAML mapping, but [1]",
    "template: [{sensor: []}]\nhttp: {}": "configuration.yaml: the import does not translate template",
}


@pytest.mark.parametrize("text", WRONG_TYPES)
def test_parts_with_a_wrong_type_are_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "configuration.yaml").write_text(text)
    [problem] = read_installation(tmp_path).problems
    assert problem.endswith(WRONG_TYPES[text])


@pytest.mark.parametrize("content", ['{"data": {"areas": 7}}', "[]", '{"data": {"areas": [7]}}'])
def test_a_registry_with_a_wrong_type_is_reported(tmp_path: Path, content: str) -> None:
    (tmp_path / ".storage").mkdir()
    (tmp_path / ".storage" / "core.area_registry").write_text(content)
    [problem] = read_installation(tmp_path).problems
    assert problem.startswith(".storage/core.area_registry: ")


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("{time_zone: Asia/Tokyo}", "Asia/Tokyo"), ("{}", "Europe/Paris"), ("{time_zone: UTC}", "UTC")],
)
def test_a_new_configuration_gets_the_zone_of_home_assistant_or_the_machine(
    tmp_path: Path, zone: str, expected: str
) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "configuration.yaml").write_text(f"homeassistant: {zone}")
    ended(tmp_path, "import", "homeassistant", "ha", TZ="Europe/Paris")
    assert f'timezone = "{expected}"' in (tmp_path / "config" / "default.toml").read_text()


def test_another_time_zone_in_lares_is_kept_and_reported(home: Path, folder: Path) -> None:
    file = home / "config" / "default.toml"
    file.write_text(file.read_text().replace('timezone = "UTC"', 'timezone = "Asia/Tokyo"'))
    result = bring(home, folder)
    assert f'skipped   locale.timezone = "Europe/Berlin": {file} has Asia/Tokyo' in result.out
    assert 'timezone = "Asia/Tokyo"' in file.read_text()


def test_a_disabled_condition_is_ignored(entities: Entities) -> None:
    off = {"condition": "state", "entity_id": "light.hall", "state": "on", "enabled": False}
    made = automation.translate(
        {"alias": "A", "triggers": [], "conditions": [off], "actions": [{"if": [off], "then": [{"delay": 1}]}]},
        "here",
        entities,
        set(),
    )
    assert "if true then" in made.text and "do return end" not in made.text


def test_only_the_faulty_entry_of_a_trigger_is_left_out(entities: Entities) -> None:
    trigger = {"trigger": "time", "at": ["06:30", "sensor.alarm", "25:00"]}
    made = automation.translate({"alias": "A", "triggers": trigger, "actions": []}, "here", entities, set())
    assert 'time = "06:30"' in made.text and len(made.problems) == 2
    trigger = {"trigger": "state", "entity_id": "light.hall, light.x.y", "to": "on"}
    made = automation.translate({"alias": "A", "triggers": [trigger], "actions": []}, "here", entities, set())
    assert 'device_id = "mqtt:dev_lamp"' in made.text


@pytest.mark.parametrize(
    ("state", "needs_all", "kind"),
    [("on", True, "all"), ("off", True, "any"), ("on", False, "any"), ("off", False, "all")],
)
def test_a_group_can_need_all_members(tmp_path: Path, state: str, needs_all: bool, kind: str) -> None:
    root = write_installation(tmp_path / "ha")
    row = {"entities": ["binary_sensor.window", "binary_sensor.leak"], "all": needs_all}
    (root / "configuration.yaml").write_text(json.dumps({"group": {"g": row}}))
    scope = Scope(entities=Entities(read_installation(root), "mqtt", {}, Locale()))
    found = conditions.translate({"condition": "state", "entity_id": "group.g", "state": state}, scope)
    assert isinstance(found, Declared) and found.table["type"] == kind
    word = {"all": " and ", "any": " or "}[kind]
    assert word in templates.condition(f"{{{{ is_state('group.g', '{state}') }}}}", scope)


@pytest.mark.parametrize(
    "parts",
    [
        {"actions": [{"action": "light.turn_on", "target": {"entity_id": "group.g"}}] * 1000},
        {"actions": [], "conditions": [{"condition": "state", "entity_id": "group.g", "state": "on"}] * 1000},
        {"actions": [], "triggers": [{"trigger": "schedule.turned_on", "target": {"entity_id": "schedule.s"}}] * 20},
        {"actions": [], "conditions": [{"condition": "state", "entity_id": "schedule.s", "state": "on"}] * 1000},
        {
            "actions": [{"action": "light.turn_on", "target": {"area_id": "hall"}, "data": {"effect": "x" * 99_999}}]
            * 999
        },
        {"actions": [{"action": "light.turn_on", "target": {"entity_id": "group.many"}}]},
    ],
)
def test_long_groups_in_many_parts_are_rejected_early(tmp_path: Path, parts: Mapping[str, Any]) -> None:
    root = write_installation(tmp_path / "ha")
    groups = {"g": [f"light.x{at}" for at in range(1000)], **{f"n{at}": [f"group.n{at + 1}"] * 9 for at in range(9)}}
    block = {"from": "06:00:00", "to": "07:00:00"}
    settings = {"group": {**groups, "many": ["group.n0"]}, "schedule": {"s": {"monday": [block] * 1000}}}
    (root / "configuration.yaml").write_text(json.dumps(settings))
    entities = Entities(read_installation(root), "mqtt", {}, Locale())
    with pytest.raises(TooLarge, match="too long for a file of 1 MiB"):
        automation.translate({"alias": "A", **parts}, "here", entities, set())


def test_long_groups_in_many_files_are_rejected_early(tmp_path: Path) -> None:
    root = write_installation(tmp_path / "ha")
    (root / "configuration.yaml").write_text(json.dumps({"group": {"g": [f"light.x{at}" for at in range(10_000)]}}))
    entities = Entities(read_installation(root), "mqtt", {}, Locale())
    action = {"action": "light.turn_on", "target": {"entity_id": "group.g"}}
    ids = set[str]()
    with pytest.raises(TooLarge, match="in this many files"):
        while len(ids) < 100:
            entities.begin_file()
            automation.translate({"alias": "A", "actions": [action]}, "here", entities, ids)
    assert 5 < len(ids) < 20


def test_the_id_for_a_name_has_no_accents() -> None:
    names = ("Küche: große Lampe", "Anna’s Café", "LÅNG  x-1", "窓", "KJØKKEN Æ", "Łódź")
    ids = ["kuche_grosse_lampe", "anna_s_cafe", "lang_x_1", "", "kjokken_ae", "lodz"]
    assert [object_id(name) for name in names] == ids


def test_groups_of_a_platform_are_groups(tmp_path: Path) -> None:
    root = write_installation(tmp_path / "ha")
    (root / "configuration.yaml").write_text(
        "light: [{platform: group, name: All lights, entities: [light.hall]}, {platform: template}]\n"
        "binary_sensor: {platform: group, unique_id: u, entities: 'binary_sensor.window, binary_sensor.leak'}\n"
        "cover: [{platform: group, entities: cover.blind}]\nmqtt: {}\n"
    )
    entities = [{"entity_id": "binary_sensor.openings", "unique_id": "u", "platform": "group"}]
    registry(root, "core.entity_registry", {"entities": entities})
    found = read_installation(root)
    assert {name: each.members for name, each in found.groups.items()} == {
        "light.all_lights": ("light.hall",),
        "binary_sensor.openings": ("binary_sensor.window", "binary_sensor.leak"),
        "cover.cover_group": ("cover.blind",),
    }
    assert found.problems == ("configuration.yaml: the import does not translate light, mqtt",)


@pytest.mark.parametrize(
    ("text", "secs"),
    [("1:30", 90), ("'1:30'", 5400), ("-1:30", -90), ("0:30", 1800), ("1:30:00", 5400), ("00:01:30", 90), ("90", 90)],
)
def test_a_duration_without_quotes_can_be_a_number_in_base_60(text: str, secs: int) -> None:
    parsed = YamlParser().parse(f"delay: {text}".encode(), Path("a.yaml"))
    assert seconds(parsed["delay"]) == secs and as_yaml(parsed).startswith("delay: ")


def test_a_helper_changes_by_its_step_within_its_limits(tmp_path: Path) -> None:
    root = write_installation(tmp_path / "ha")
    rows = {
        "counter": {"c": {"step": 2, "maximum": 9, "initial": 3}},
        "input_number": {"n": {"min": 1, "max": 5, "step": 0.5}},
    }
    (root / "configuration.yaml").write_text(json.dumps(rows))
    entities = Entities(read_installation(root), "mqtt", {}, Locale())
    for action, line in (
        ({"action": "counter.increment", "target": {"entity_id": "counter.c"}}, 'ha.add(ctx, "c", 2, nil, 9)'),
        ({"action": "counter.reset", "target": {"entity_id": "counter.c"}}, 'ctx:set("c", 3)'),
        (
            {"action": "input_number.decrement", "target": {"entity_id": "input_number.n"}},
            'ha.add(ctx, "n", -0.5, 1, 5)',
        ),
    ):
        assert line in lua_of(entities, action)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            {"media_player.tv": {"state": "playing", "volume_level": 0.3, "source": "HDMI"}},
            {"volume", "media_source"},
        ),
        ({"climate.kitchen": {"state": "heat", "swing_mode": "on"}}, {"hvac_mode", "swing_mode"}),
        ({"cover.blind": {"state": "open", "current_tilt_position": 5}}, {"cover_tilt"}),
    ],
)
def test_a_scene_sets_every_attribute_of_its_entities(
    entities: Entities, state: Mapping[str, Any], expected: set[str]
) -> None:
    made = actions.Actions(entities, fields={})
    made.services.apply(state)
    assert expected <= set(re.findall(r'capability = "([a-z_]+)"', "\n".join(made.lines.lines)))
    assert not made.problems


def test_changes_of_meaning_are_reported(entities: Entities) -> None:
    made = actions.Actions(entities, ())
    lamp = {"action": "light.turn_on", "target": {"entity_id": "light.hall"}}
    made.sequence({"parallel": [{"sequence": [{"delay": 5}, lamp]}, lamp]})
    made.sequence({"action": "scene.turn_on", "target": {"entity_id": "scene.x"}, "data": {"transition": 3}})
    assert [each.split(" ")[0] for each in made.problems] == ["in", "scene.turn_on:"]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{% if is_state('light.hall', 'on') %}on{% else %}off{% endif %} {{ 5 }}", '.. " " ..'),
        ("Door is{% if is_state('light.hall', 'on') %} open{% endif %}", '" open", ""'),
        ("{{ 1 }} {{ 2 }}", '.. " " ..'),
    ],
)
def test_a_message_keeps_its_spaces(entities: Entities, template: str, expected: str) -> None:
    assert expected in templates.message(template, Scope(entities=entities))


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            {"wait_for_trigger": [{"trigger": "state", "entity_id": "light.hall", "to": "off"}], "timeout": 9},
            'ha.wait_for_trigger(ctx, "mqtt:dev_lamp", { attribute = "power", equals = "off" }, 9)',
        ),
        (
            {"wait_for_trigger": [{"trigger": "state", "entity_id": "light.hall", "to": "off"}]},
            'ha.wait_for_trigger(ctx, "mqtt:dev_lamp", { attribute = "power", equals = "off" }, math.huge)',
        ),
        (
            {"wait_template": "{{ is_state('light.hall', 'off') }}"},
            'ha.wait_for(ctx, "mqtt:dev_lamp", { attribute = "power", equals = "off" }, math.huge)',
        ),
        (
            {"wait_template": "{{ is_state('light.hall', 'off') }}", "timeout": 9},
            'ctx:wait_for("mqtt:dev_lamp", { attribute = "power", equals = "off", timeout_secs = 9 })',
        ),
    ],
)
def test_a_wait_for_a_trigger_waits_for_a_change_and_has_the_limit_of_home_assistant(
    entities: Entities, action: Mapping[str, Any], expected: str
) -> None:
    assert expected in lua_of(entities, action)


def test_an_unavailable_device_is_unavailable_or_offline_in_lares(entities: Entities) -> None:
    state = {"entity_id": "light.hall", "to": "unavailable", "state": "unavailable"}
    found = triggers.translate({"trigger": "state", **state}, entities)
    assert [each.table["equals"] for each in found] == ["unavailable", "offline"]
    made = conditions.translate({"condition": "state", **state}, Scope(entities=entities))
    assert isinstance(made, Declared) and made.table["type"] == "any"


@pytest.mark.parametrize(
    ("entity_id", "before", "after", "guards"),
    [
        ("cover.blind", "open", "closed", ["ha.is_above(event.previous_value, 0)"]),
        ("media_player.tv", "paused", "playing", ['event.previous_value == "paused"']),
        ("media_player.tv", None, None, ["", ""]),
        ("lock.door", ["locked", "jammed"], "unlocked", None),
    ],
)
def test_the_old_state_of_a_trigger_is_tested(
    entities: Entities, entity_id: str, before: Any, after: Any, guards: list[str] | None
) -> None:
    found = triggers.translate({"trigger": "state", "entity_id": entity_id, "from": before, "to": after}, entities)
    assert guards is None or [each.guard for each in found] == guards


def test_states_of_different_attributes_are_refused(entities: Entities) -> None:
    trigger = {"trigger": "state", "entity_id": "media_player.tv", "from": "off", "to": "playing"}
    with pytest.raises(NotTranslated, match="different attributes"):
        triggers.translate(trigger, entities)


def test_no_branch_runs_if_a_condition_cannot_be_translated(entities: Entities) -> None:
    off = {"action": "light.turn_off", "target": {"entity_id": "light.hall"}}
    held = {"condition": "state", "entity_id": "light.hall", "state": "on", "for": 60}
    text = lua_of(entities, {"if": [held], "then": [off], "else": [off]})
    assert 'if error("this condition is not translated; write it in Lua in this file") then' in text
    text = lua_of(entities, {"repeat": {"while": [held], "sequence": [off]}}, off)
    assert "do return end" in text


def test_a_default_is_in_the_scale_of_home_assistant(entities: Entities) -> None:
    found = templates.expression("{{ state_attr('light.hall', 'brightness') | float(5) }}", Scope(entities=entities))
    assert found == 'ha.number(ctx, "mqtt:dev_lamp", "brightness", 5, 0.392157)'


def test_a_template_for_an_unavailable_device_also_means_offline(entities: Entities) -> None:
    found = templates.condition("{{ states('light.hall') != 'unavailable' }}", Scope(entities=entities))
    assert '"unavailable"' in found and '"offline"' in found


def test_a_delay_that_cannot_be_translated_ends_the_run(entities: Entities) -> None:
    assert "do return end" in lua_of(entities, {"delay": "{{ unknown }}"})


@pytest.mark.slow
def test_new_mqtt_devices_beyond_the_limit_are_omitted(home: Path, tmp_path: Path) -> None:
    rows = [
        {"id": f"{number}", "identifiers": [["mqtt", f"d{number}"]], "name": f"D {number}"} for number in range(2_005)
    ]
    (tmp_path / "ha" / ".storage").mkdir(parents=True)
    registry = tmp_path / "ha" / ".storage" / "core.device_registry"
    registry.write_text(json.dumps({"data": {"devices": rows}}))
    result = bring(home, tmp_path / "ha")
    assert result.out.count("imported  mqtt:d") == 2_000
    assert "skipped   5 of 2005 new MQTT devices: Lares supports at most 2000 devices of a broker" in result.out


def test_helpers_with_the_same_variable_name_are_numbered(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "configuration.yaml").write_text("input_boolean: {ü: {initial: on}, ö: {initial: off}}")
    assert bring(home, tmp_path / "ha").code == 0
    names = [key for key in read_document(home / "data").values if key.startswith("variable/")]
    assert len(names) == 2, names


def test_scripts_that_are_not_a_mapping_are_reported(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "configuration.yaml").write_text("script: [1]")
    result = bring(home, tmp_path / "ha")
    assert "skipped   script (configuration.yaml): this part is not a YAML mapping" in result.out


UNSTORABLE = {
    "input_number: {a: {min: 0, max: 1, initial: .nan}}": "variable a = NaN: the value cannot be stored as JSON",
    "input_number: {a: {min: 0, max: 1, initial: .inf}}": "variable a = Infinity: the value cannot be stored as JSON",
    "counter: {a: {initial: 18446744073709551616}}": "= 18446744073709551616: the value cannot be stored as JSON",
    'input_text: {a: {initial: "\\ud800"}}': 'variable a = "\\ud800": the value cannot be stored as JSON',
    f"input_text: {{a: {{initial: {'x' * 100_000}}}}}": "at most 16384 are allowed",
    "input_text:\n" + "".join(f"  t{n}: {{initial: {'x' * 1000}}}\n" for n in range(300)): "all variables exceed",
}


@pytest.mark.parametrize("text", UNSTORABLE)
def test_a_helper_that_cannot_be_stored_is_skipped(home: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "ha").mkdir()
    (tmp_path / "ha" / "configuration.yaml").write_text(text)
    result = bring(home, tmp_path / "ha")
    assert result.code == 0, result.err
    assert re.search(f"^skipped .*{re.escape(UNSTORABLE[text])}", result.out, re.MULTILINE), result.out
    document = read_document(home / "data").values
    assert sum(len(value) for key, value in document.items() if key.startswith("variable/")) < 300_000
    for key, value in document.items():
        check_record(key, json.loads(value))


@pytest.mark.slow
async def test_a_running_hub_takes_rooms_and_variables_and_names_devices_it_knows(home: Path, folder: Path) -> None:
    file = home / "config" / "default.toml"
    file.write_text(file.read_text().replace("0.0.0.0:3000", "127.0.0.1:0"))
    async with running(home):
        result = await asyncio.to_thread(bring, home, folder)
    assert result.code == 0, result.err
    assert "imported  room hall (Hall)" in result.out
    assert "imported  variable vacation = false" in result.out
    assert "mqtt:dev_lamp in room hall: the hub does not know this device yet" in result.out


EVENTS = """
2026-12-23T05:00 mqtt:dev_motion occupancy unoccupied
05:00 mqtt:dev_window contact closed
05:00 mqtt:dev_lamp power off
05:00 mqtt:dev_door lock unlocked
05:00 mqtt:dev_leak water_leak false
05:00 mqtt:dev_phone presence true
05:00 mqtt:dev_plug power_consumption 100
05:00 mqtt:dev_sensor temperature 20
05:00 mqtt:dev_tv media_playback playing
05:10 mqtt:dev_motion occupancy occupied
05:11 mqtt:dev_motion occupancy unoccupied
08:00 mqtt:dev_window contact open
08:03 mqtt:dev_window contact closed
09:00 mqtt:dev_sensor temperature 26
09:02 mqtt:dev_sensor temperature 29
10:00 mqtt:dev_phone presence false
10:05 mqtt:dev_remote event double
10:10 mqtt:dev_leak water_leak true
10:20 mqtt:dev_tv media_playback paused
10:30 mqtt:dev_motion occupancy occupied
"""


@pytest.mark.slow
def test_the_imported_automations_have_the_same_effects(home: Path, folder: Path) -> None:
    """The expected effects are those on one day in December, according to Home Assistant's documentation."""
    bring(home, folder)
    switch_on(home)
    (home / "events.txt").write_text(EVENTS)
    result = ended(home, "simulate", "--events", "events.txt", "--run", "--hours", "24")
    assert result.code == 0, result.err
    found = [
        (line[15:20], name, act.split(", which")[0])
        for line in result.out.splitlines()
        for name, act in [line[29:].split("  ", 1)]
        if not act.startswith(("fires", "does not"))
    ]
    assert [" ".join(each) for each in found] == EXPECTED.strip().splitlines()


EXPECTED = """
05:00 every_quarter_of_an_hour commands mqtt:dev_valve: target_temperature set {"value": 18, "unit": "\\u00b0C"}
05:10 motion_light commands mqtt:dev_lamp: power on
05:10 motion_light commands mqtt:dev_lamp: brightness set 60
05:10 night_only commands mqtt:dev_lamp: power on
05:10 night_only commands mqtt:dev_lamp: brightness set 5
05:13 motion_light commands mqtt:dev_lamp: power off
06:30 wake_up commands mqtt:dev_lamp: power on
06:30 wake_up commands mqtt:dev_lamp: brightness set 30
06:31 wake_up commands mqtt:dev_lamp: power on
06:31 wake_up commands mqtt:dev_lamp: brightness set 60
06:32 wake_up commands mqtt:dev_lamp: power on
06:32 wake_up commands mqtt:dev_lamp: brightness set 90
08:00 things_without_a_counterpart logs warn: condition 1 is not translated; write it in Lua in this file
08:02 window_open_heating_off commands mqtt:dev_valve: hvac_mode set "off"
08:03 window_open_heating_off commands mqtt:dev_valve: hvac_mode set "heat"
09:01 warm_room notifies: It is 26 degrees
09:02 blind_by_day commands mqtt:dev_blind: cover_position set 20
10:00 everybody_left commands mqtt:dev_lamp: power off
10:05 remote commands mqtt:dev_lamp: power toggle
10:10 leak notifies: Water
10:20 tv_pauses commands mqtt:dev_lamp: power on
10:20 tv_pauses commands mqtt:dev_lamp: color_rgb set {"r": 255, "g": 10, "b": 0}
15:25 sunset_lights commands mqtt:dev_lamp: power on
15:25 sunset_lights commands mqtt:dev_lamp: brightness set 50
15:25 sunset_lights commands mqtt:dev_lamp: color_temperature set {"value": 370, "unit": "mireds"}
23:00 lock_at_night commands mqtt:dev_door: lock lock
"""
"""Minute, automation, and action."""


@pytest.mark.parametrize(("condition", "expected"), ROWS["conditions"])
def test_a_condition_is_declared(entities: Entities, condition: Any, expected: Mapping[str, Any]) -> None:
    found = conditions.translate(condition, Scope(entities=entities))
    assert isinstance(found, Declared)
    assert found.table == expected


@pytest.mark.parametrize(("template", "expected"), ROWS["templates"])
def test_a_common_template_becomes_lua(entities: Entities, template: str, expected: str) -> None:
    scope = Scope(entities=entities, trigger_entities=("binary_sensor.leak",))
    assert templates.condition(template, scope) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + "(" * 3000 + "1",
        "{{ " + "not " * 800 + "1 }}",
        "{{ 1" + " + 1" * 800 + " }}",
        "{% if x %}1" + "{% elif x %}1" * 300 + "{% endif %}",
    ],
)
def test_a_deep_template_is_refused_with_a_sentence(entities: Entities, template: str) -> None:
    for translate in (templates.condition, templates.expression, templates.message):
        with pytest.raises(NotTranslated, match="is nested too deeply"):
            translate(template, Scope(entities=entities))


@pytest.mark.parametrize("template", [*ROWS["refused_templates"], "{{ " + "(" * 3000 + "1", "x" * 9000 + "{{ 1 }}"])
def test_another_template_is_refused_with_a_reason(entities: Entities, template: str) -> None:
    with pytest.raises(NotTranslated) as refused:
        templates.condition(template, Scope(entities=entities))
    assert str(refused.value)


@pytest.mark.parametrize(("trigger", "expected"), ROWS["triggers"])
def test_a_trigger_is_translated(entities: Entities, trigger: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    [found] = triggers.translate(trigger, entities)
    assert found.table == expected


@pytest.mark.parametrize(("action", "expected"), ROWS["actions"])
def test_an_action_is_translated(entities: Entities, action: Any, expected: list[str]) -> None:
    made = actions.Actions(entities, ())
    made.sequence([action])
    lines = [line.strip() for line in made.lines.lines]
    assert lines[: len(expected)] == expected


@pytest.mark.parametrize(
    ("name", "text", "code", "sentence"),
    [
        ("automations.yaml", "- a: [", 65, "not valid YAML"),
        ("automations.yaml", "\x00\x01", 65, "not valid YAML"),
        (".storage/core.area_registry", "{", 65, "not valid JSON"),
        (
            "automations.yaml",
            "- 5\n- [1]\n- {alias: 7, trigger: 9, action: {a: {b: c}}}\n- {use_blueprint: {path: x}}\n",
            0,
            "",
        ),
        (
            "automations.yaml",
            "- alias: ']] return os.exit() --\\nx'\n  trigger: [{platform: state, entity_id: [{a: 1}]}, 5]\n"
            "  condition: [{condition: state, state: []}]\n  action: ['{{ 1 ', {choose: 5}, {repeat: 1}]\n",
            0,
            "",
        ),
    ],
)
@pytest.mark.slow
def test_a_broken_file_is_an_error(home: Path, folder: Path, name: str, text: str, code: int, sentence: str) -> None:
    (folder / name).write_text(text)
    result = bring(home, folder)
    assert (result.code, "Traceback" in result.err) == (code, False), result.err
    assert sentence in result.err
    if code == 0:
        assert ended(home, "check").code == 0


@pytest.mark.slow
def test_the_automations_of_the_page_load(home: Path) -> None:
    text = (ROOT / "docs" / "from-home-assistant.md").read_text()
    blocks = re.findall(r"^```lua\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 10
    for number, block in enumerate(blocks):
        (home / "config" / "automations" / f"page_{number}.lua").write_text(block)
    file = home / "config" / "default.toml"
    file.write_text(file.read_text().replace("# latitude", "latitude").replace("# longitude", "longitude"))
    checked = ended(home, "check")
    assert checked.code == 0, checked.err


HOUSE = Path(__file__).parent / "homeassistant_house"

HOUSE_EVENTS = """
2026-12-21T05:00 mqtt:dev_motion occupancy unoccupied
05:00 mqtt:dev_window contact closed
05:00 mqtt:dev_lamp power off
05:00 mqtt:dev_plug power off
05:00 mqtt:dev_sensor temperature 20
05:00 mqtt:dev_sensor humidity 60
10:00 mqtt:dev_sensor temperature 25
15:00 mqtt:dev_window contact open
17:30 mqtt:dev_window contact closed
17:31 mqtt:dev_window contact open
18:00 mqtt:dev_motion occupancy occupied
18:01 mqtt:dev_motion occupancy unoccupied
"""

HOUSE_EXPECTED = """
10:00 temp commands mqtt:dev_lamp: power on
10:00 temp commands mqtt:dev_plug: power on
10:00 temp commands mqtt:dev_lamp: power on
10:00 temp commands mqtt:dev_lamp: brightness set 20
10:00 temp commands mqtt:dev_lamp: color_temperature set {"value": 2700, "unit": "kelvin"}
10:00 shared_ids notifies: up
10:10 lights_off_after_a_while commands mqtt:dev_lamp: power off
10:10 shared_ids notifies: down
15:54 sun_down commands mqtt:dev_lamp: power off
15:54 sun_down commands mqtt:dev_plug: power off
15:54 shared_ids notifies: down
17:31 door_opened commands mqtt:dev_lamp: power on
17:31 shared_ids notifies: up
17:41 lights_off_after_a_while commands mqtt:dev_lamp: power off
17:41 shared_ids notifies: down
18:08 wait_for_quiet notifies: hall
22:30 scene chime runs
22:30 scene chime commands mqtt:dev_lamp: power on
22:30 shared_ids notifies: up
22:30 scene chime commands mqtt:dev_lamp: power off
22:30 shared_ids notifies: down
"""
"""The effects of the day, from ten in the morning."""


def write_house(root: Path) -> Path:
    """Write a folder with scripts, scenes, helpers, schedules, floors, labels, groups, and unusual YAML."""
    write_installation(root)
    for file in HOUSE.iterdir():
        (root / file.name).write_text(file.read_text())
    registry(
        root,
        "core.area_registry",
        {
            "areas": [
                {"id": "hall", "name": "Hall", "floor_id": "ground", "labels": ["night"]},
                {"id": "kitchen", "name": "Kitchen", "floor_id": "ground"},
            ]
        },
    )
    blocks = {"monday": [{"from": "08:00:00", "to": "17:00:00"}], "friday": [{"from": "09:00:00", "to": "24:00:00"}]}
    registry(root, "schedule", {"items": [{"id": "work", "name": "Work", **blocks}]})
    registry(root, "input_number", {"items": [{"id": "level", "name": "Level", "min": 5, "max": 50}]})
    (root / "themes").mkdir()
    (root / "themes" / "unread.yaml").write_text("a:\n\t- b")
    (root / "packages").mkdir()
    (root / "packages" / "empty.yaml").write_text("")
    return root


def play(home: Path, events: str, hours: int) -> list[str]:
    """Simulate these events. Return minute, automation, and action of each effect."""
    (home / "events.txt").write_text(events)
    result = ended(home, "simulate", "--events", "events.txt", "--run", "--hours", str(hours))
    assert result.code == 0, result.err
    lines = [line for line in result.out.splitlines() if line[3:4] == " "]
    acts = [(line[15:20], *line[29:].split("  ", 1)) for line in lines]
    return [
        f"{at} {name} {act.split(', which')[0]}" for at, name, act in acts if not act.startswith(("fires", "does"))
    ]


@pytest.fixture
def house(tmp_path: Path, home: Path) -> Ended:
    """Import the house, and return the output of the command."""
    result = bring(home, write_house(tmp_path / "house"))
    assert result.code == 0, result.err
    return result


@pytest.mark.slow
def test_scripts_scenes_and_helpers_run_as_before(home: Path, house: Ended) -> None:
    switch_on(home)
    found = play(home, HOUSE_EVENTS, 19)
    assert found[found.index("10:00 temp commands mqtt:dev_lamp: power on") :] == HOUSE_EXPECTED.strip().splitlines()
    checked = ended(home, "check")
    assert checked.code == 0, checked.err


@pytest.mark.slow
def test_an_automation_fires_at_the_time_of_its_helper(home: Path, house: Ended) -> None:
    switch_on(home)
    found = play(home, "2026-12-20T23:00 mqtt:dev_lamp power off\n", 19)
    rings = [each for each in found if "scene movie_night_2 runs" in each]
    assert [each[:5] for each in rings] == ["07:15", "07:15", "08:00", "08:00"]
    party = [each.strip() for each in found if "party" in each]
    assert party == ["17:30 party notifies: Loud: Party", "17:30 party notifies: 5"]


def test_timers_of_helpers_start_while_their_automations_are_off(home: Path, house: Ended) -> None:
    folder = home / "config" / "automations"
    times, alarm = (folder / "helper_times.lua").read_text(), (folder / "alarm_clock.lua").read_text()
    assert "enabled" not in times and "enabled = false" in alarm
    assert 'ha.start_timer(ctx, "alarm", ctx:get("alarm"), 0)\n    ha.start_timer(ctx, "party_before_1800"' in times
    for trigger in ('"variable_change", name = "alarm"', '"timer", name = "alarm"', '"adapter_lifecycle"'):
        assert trigger in times
    assert 'id = "trigger_1"' in alarm and "variable_change" not in alarm
    assert "not ha.is_on_time(event)" in alarm
    assert "each automation, except times of helpers, is off until you switch it on" in house.out
    assert "restart the hub" in house.out and "run this automation once" in house.out


def test_each_helper_is_a_variable_and_each_script_and_scene_a_file(home: Path, house: Ended) -> None:
    for line in ('bell = ""', 'alarm = "07:15:30"', "level = 5", 'mode = "day"', "loads = 2", "vacation = false"):
        assert f"imported  variable {line}" in house.out
    scene = (home / "config" / "scenes" / "movie_night_2.lua").read_text()
    for part in (
        'capability = "brightness", action = "set", value = 20',
        'value = { value = 2700, unit = "kelvin" }',
        'ctx:command("mqtt:dev_plug", { capability = "power", action = "off" })',
        'capability = "cover_position", action = "set", value = 30',
        'ctx:set("vacation", true)',
        "-- omitted: Lares has no command that sets sun.sun to x",
    ):
        assert part in scene
    function = (home / "config" / "scripts" / "notify_all.lua").read_text()
    assert "return function(ctx, fields)" in function and "if fields.level == nil then" in function
    party = (home / "config" / "automations" / "party.lua").read_text()
    assert 'require("notify_all")(ctx, { message = "Party " .. ha.text(ctx:get("note")), level = 70 })' in party
    assert 'local got = require("answer")(ctx, {})' in party and 'ha.text(got["value"])' in party
    assert (
        "the automation has neither triggers nor actions" in house.out
        and "!secret is not supported; instead, write the value" in house.out
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- {alias: A, alias: B, trigger: [], action: []}", ["B"]),
        ("", []),
        ("# only a comment\n", []),
        ("- &a {alias: A, trigger: [], action: []}\n- {<<: *a, alias: Ü}", ["A", "Ü"]),
        ("{alias: A, trigger: [], action: []}", ["A"]),
        ("\ufeff- {alias: A, trigger: []}\r\n", ["A"]),
    ],
)
def test_odd_yaml_is_read_as_home_assistant_reads_it(tmp_path: Path, text: str, expected: list[str]) -> None:
    (tmp_path / "automations.yaml").write_text(text)
    assert [each["alias"] for _, each in read_installation(tmp_path).automations] == expected


@pytest.mark.parametrize(
    "text",
    [
        *(f"0x{'f' * 4000}", f"-0b{'1' * 64}", "0" + "7" * 6000, "9" * 5000, "9223372036854775808"),
        *("1e999", "-1.0e+999", "9" * 400 + ".0", "9:" * 999 + "9.5"),
        *("0x", "+_", "0b_", "._"),
    ],
)
def test_a_number_that_does_not_fit_64_bits_is_a_text(text: str) -> None:
    parser = YamlParser()
    assert parser.parse(f"- {text}\n- {text[:500]}: b\n".encode(), Path("a.yaml"))[0] == text
    for tag in ("!!int", "!!float", "!!bool"):
        assert isinstance(parser.parse(f"{tag} {text}".encode(), Path("a.yaml")), str | float)


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1, 0x1F, 1.5e308, -float("inf")])
def test_a_number_of_64_bits_stays_a_number(number: float) -> None:
    text = {"-inf": "-.inf"}.get(str(number), str(number))
    assert YamlParser().parse(text.encode(), Path("a.yaml")) == number


TEN = ", ".join(["{0}"] * 10)
AUTOMATION = "- alias: A\n  trigger: []\n  action:\n"


DEEP_ALIASES = "- &a0 x\n" + "".join(f"- &a{n} [[[[[*a{n - 1}]]]]]\n" for n in range(1, 14))


def bomb(first: str, use: str, levels: int = 9) -> str:
    """Return YAML lines in which each alias repeats the previous alias ten times."""
    return first + "".join(f"a{n}: &a{n} {use.format(TEN.format(f'*a{n - 1}'))}\n" for n in range(1, levels))


@pytest.mark.parametrize(
    ("files", "place", "sentence"),
    [
        ({"automations.yaml": bomb("a0: &a0 [x]\n", "[{}]")}, "automations.yaml:", "more than 200000 values"),
        ({"automations.yaml": bomb("a0: &a0 {x: 1}\n", "{{<<: [{}]}}")}, "automations.yaml:", "200000 values"),
        ({"automations.yaml": bomb("a0: &a0 !x [x]\n", "!x [{}]")}, "automations.yaml:", "200000 values"),
        ({"automations.yaml": f"a: &a {'x' * 9999}\nb: [{'*a, ' * 6000}]"}, "automations.yaml:2", "200000 values"),
        pytest.param(
            {"automations.yaml": "- x\n" * 110_000, "scripts.yaml": "- x\n" * 110_000},
            "scripts.yaml:",
            "200000 values",
            marks=pytest.mark.slow,
        ),
        ({"automations.yaml": "&a [*a]"}, "automations.yaml:1", "the alias *a contains itself"),
        ({"automations.yaml": f"{AUTOMATION}  - &a\n    then: *a\n"}, "automations.yaml:5", "*a contains itself"),
        ({"automations.yaml": "- &x {a: *x}"}, "automations.yaml:1", "the alias *x contains itself"),
        ({"automations.yaml": "[" * 100}, "automations.yaml:1", "more than 64 levels"),
        ({"automations.yaml": DEEP_ALIASES}, "automations.yaml:", "more than 64 levels"),
        ({"automations.yaml": "!include automations.yaml"}, "automations.yaml", "check that no file includes itself"),
        (
            {
                "configuration.yaml": "automation: !include configuration.yaml\n"
                "homeassistant: {packages: !include_dir_named .}"
            },
            "configuration.yaml",
            "check that no file includes itself",
        ),
        (
            {
                "automations.yaml": "!include i0.yaml",
                **{f"i{n}.yaml": f"- !include i{n + 1}.yaml\n" * 12 for n in range(9)},
                "i9.yaml": "x",
            },
            "i9.yaml",
            "more than 200000 values",
        ),
        (
            {
                "automations.yaml": "- {use_blueprint: {path: b.yaml, input: {x: [" + "y, " * 1000 + "]}}}",
                "blueprints/automation/b.yaml": "a:\n" + "- !input x\n" * 1000,
            },
            "b.yaml",
            "more than 200000 values",
        ),
        *(
            ({"configuration.yaml": f"automation: {include}"}, "configuration.yaml:1", f"{include} is outside the")
            for include in (
                "!include ../out.yaml",
                "!include /etc/passwd",
                "!include_dir_list /proc",
                "!include_dir_named ..",
            )
        ),
    ],
)
def test_a_configuration_that_expands_too_far_is_refused(
    tmp_path: Path, files: Mapping[str, str], place: str, sentence: str
) -> None:
    (tmp_path / "automations.yaml").write_text("[]")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(StartFailed) as refused:
        read_installation(tmp_path)
    assert refused.value.exit_code == 65
    assert f"{tmp_path}/{place}" in str(refused.value) or place == "b.yaml"
    assert sentence in str(refused.value)


def test_an_include_that_cannot_be_read_is_reported_and_the_rest_is_imported(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "plain.yaml").write_text("[]")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "automations.yaml").write_text("- {alias: Kept, triggers: []}")
    (tmp_path / "configuration.yaml").write_text(
        "automation: !include nope.yaml\n"
        "automation a: !include folder.yaml\n"
        "automation b: !include pipe.yaml\n"
        "scene: !include_dir_list nowhere\n"
        "script:\n"
        "  one: !include_dir_named plain.yaml\n"
        "input_boolean: !include plain.yaml/x.yaml\n"
        "homeassistant: {packages: {a: !include packages/none.yaml}}\n"
    )
    found = read_installation(tmp_path)
    assert [each["alias"] for _, each in found.automations] == ["Kept"]
    file, folder = f"put a YAML file at {tmp_path}", f"put a folder with YAML files at {tmp_path}"
    assert sorted(found.problems) == [
        f"configuration.yaml:{line}, then import again"
        for line in (
            f"1: !include nope.yaml cannot be read: the file is missing; {file}/nope.yaml",
            f"2: !include folder.yaml cannot be read: it is not a regular file; {file}/folder.yaml",
            f"3: !include pipe.yaml cannot be read: it is not a regular file; {file}/pipe.yaml",
            f"4: !include_dir_list nowhere cannot be read: the folder is missing; {folder}/nowhere",
            f"6: !include_dir_named plain.yaml cannot be read: it is not a folder; {folder}/plain.yaml",
            f"7: !include plain.yaml/x.yaml cannot be read: Not a directory; {file}/plain.yaml/x.yaml",
            f"8: !include packages/none.yaml cannot be read: the file is missing; {file}/packages/none.yaml",
        )
    ]


def test_an_include_in_an_included_file_is_relative_to_that_file(tmp_path: Path) -> None:
    for name, text in {
        "configuration.yaml": "homeassistant: !include sub/core.yaml",
        "sub/core.yaml": "packages: !include packages.yaml\ntime_zone: !include zone.yaml",
        "sub/zone.yaml": "Europe/Berlin",
        "sub/packages.yaml": "{laundry: !include packages/laundry.yaml}",
        "sub/packages/laundry.yaml": "automation: !include ../automations.yaml",
        "sub/automations.yaml": "- {alias: Kept, triggers: []}",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = read_installation(tmp_path)
    assert [each["alias"] for _, each in found.automations] == ["Kept"]
    assert found.locale == {"timezone": "Europe/Berlin"}
    assert not found.problems


def test_a_link_may_lead_to_another_file_in_the_folder_but_not_outside(tmp_path: Path) -> None:
    (tmp_path / "ha" / "shared").mkdir(parents=True)
    (tmp_path / "ha" / "shared" / "mine.yaml").write_text("- {alias: A, trigger: []}")
    (tmp_path / "ha" / "automations.yaml").symlink_to("shared/mine.yaml")
    assert [each["alias"] for _, each in read_installation(tmp_path / "ha").automations] == ["A"]
    (tmp_path / "out.yaml").write_text("[]")
    (tmp_path / "ha" / "automations.yaml").unlink()
    (tmp_path / "ha" / "automations.yaml").symlink_to("../out.yaml")
    with pytest.raises(StartFailed, match="is a link to a file outside the configuration folder"):
        read_installation(tmp_path / "ha")


@pytest.mark.parametrize(
    ("alias", "expected"),
    [("a\nb\t c", "a b c"), ("n" * 5000, "n" * 200), ("\x1b\u202e", "7"), (None, "7"), ("  x ", "x")],
)
def test_the_name_of_an_imported_file_is_valid(entities: Entities, alias: Any, expected: str) -> None:
    made = automation.translate({"id": 7, "alias": alias, "trigger": []}, "here", entities, set())
    assert made.name == checked_name(made.name) == expected


def test_reasons_show_no_values_of_python(entities: Entities, tmp_path: Path) -> None:
    odd = {"a": ["b", True, None]}
    for definition in ({"triggers": [{"trigger": odd}]}, {"triggers": [], "conditions": [{"condition": odd}]}):
        [problem] = automation.translate({"alias": odd, **definition}, "here", entities, set()).problems
        assert '{"a": ["b", true, null]}; instead' in problem
    with pytest.raises(NotTranslated, match=r'the mode \["x"\] is unknown'):
        automation.translate({"alias": odd, "triggers": [], "mode": ["x"]}, "here", entities, set())
    assert title_of(["x"]) == '["x"]'
    (tmp_path / "automations.yaml").touch()
    (tmp_path / "scripts.yaml").write_text("? [a]\n: {sequence: []}\n")
    [(origin, *_)] = read_installation(tmp_path).scripts
    assert origin == 'scripts.yaml, ["a"]'


@pytest.mark.parametrize("key", ["", " ", "\u202e"])
def test_a_script_without_a_name_gets_one(entities: Entities, key: str) -> None:
    entities.scripts[key] = Script(id="unnamed")
    assert scripts.translate_script("here", key, {"alias": "", "sequence": []}, entities).name == "script"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"a": [1, {"b": None, "c": ["x"]}], "d": {}}, ["a:", "- 1", "- b: null", "  c:", "  - x", "d: {}"]),
        ({"z": "x: y", "a": "12:00:00", "n": "5"}, ["z: 'x: y'", "a: 12:00:00", "n: '5'"]),
        (["{it's}", 'it\'s "x"'], ['- "{it\'s}"', '- it\'s "x"']),
        ({"a": "one\n two\n"}, ["a: |", "  one", "   two"]),
        ([[1, 2], []], ["- - 1", "  - 2", "- []"]),
    ],
)
def test_a_part_becomes_yaml_in_comments(part: Any, expected: list[str]) -> None:
    assert as_yaml(part).split("\n") == expected


@pytest.mark.parametrize(
    "part", [["x"] * 9999, {n: n for n in range(9999)}, [[[["x"] * 100] * 100] * 100], "x\n" * 9999]
)
def test_a_long_part_is_shortened_in_comments(part: Any) -> None:
    *lines, last = as_yaml(part).split("\n")
    assert 190 < len(lines) <= 200
    assert last == "… (shortened; see the file in Home Assistant)"


def test_nested_lists_of_targets_are_not_unrolled_without_a_limit(entities: Entities) -> None:
    action: dict[str, Any] = {"action": "light.turn_on", "target": {"entity_id": "{{ repeat.item }}"}}
    for _ in range(6):
        action = {"repeat": {"for_each": ["light.hall"] * 10, "sequence": [action]}}
    made = actions.Actions(entities, ())
    made.sequence([action])
    assert len(made.lines.lines) < 200


def test_another_folder_is_refused(home: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    result = bring(home, tmp_path / "other")
    assert result.code == 66
    assert "neither automations.yaml nor .storage" in result.err
    assert bring(home, tmp_path / "nowhere").code == 66


PACKAGE = """
timer: {laundry: {duration: "00:00:40"}}
input_boolean: {washing: {}}
automation night:
  alias: In a package
  triggers: [{trigger: event, event_type: timer.finished, event_data: {entity_id: timer.laundry}}]
  actions: [{action: timer.start, target: {entity_id: timer.laundry}}]
"""

BLUEPRINT = """
blueprint:
  name: Motion
  input: {sensor: {}, wait: {default: 90}, more: {input: {level: {default: 40}}}}
mode: restart
triggers: {trigger: state, entity_id: !input sensor, to: "on"}
actions:
  - {action: light.turn_on, target: {entity_id: light.hall}, data: {brightness_pct: !input level}}
  - {delay: !input wait}
"""


@pytest.mark.slow
def test_packages_includes_and_blueprints_are_read(home: Path, folder: Path) -> None:
    for name, text in {
        "configuration.yaml": """
homeassistant: {packages: !include_dir_named packages}
automation ui: !include automations.yaml
automation more: !include_dir_merge_list more/
""",
        "automations.yaml": """
- alias: From a blueprint
  use_blueprint: {path: mine/motion.yaml, input: {sensor: binary_sensor.hall_motion, wait: 30}}
- {alias: Without its blueprint, use_blueprint: {path: ../../../etc/passwd}}
""",
        "packages/laundry.yaml": PACKAGE,
        "more/one.yaml": "- {alias: One, triggers: [{trigger: time, at: '07:00'}], actions: !include actions.yaml}",
        "more/actions.yaml": "- {action: light.turn_on, target: {entity_id: light.hall}}",
        "blueprints/automation/mine/motion.yaml": BLUEPRINT,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    result = bring(home, folder)
    assert "the blueprint is not in this folder" in result.out, result.out
    written = home / "config" / "automations"
    assert 'ctx:start_timer("laundry", 40)' in (written / "in_a_package.lua").read_text()
    assert "packages/laundry.yaml, number 1" in (written / "in_a_package.lua").read_text()
    assert 'action = "on"' in (written / "one.lua").read_text()
    made = (written / "from_a_blueprint.lua").read_text()
    assert all(each in made for each in ('equals = "occupied"', "value = 40", "ctx:sleep(30)", 'mode = "restart"'))
    assert "imported  variable washing = false" in result.out


def lua_of(entities: Entities, *sequence: Any) -> str:
    made = actions.Actions(entities, (), reads_waits=True)
    made.sequence([*sequence])
    return "\n".join(each.strip() for each in made.lines.lines)


@pytest.mark.parametrize(("action", "part"), ROWS["more_actions"])
def test_every_action_is_translated_or_named(entities: Entities, action: Mapping[str, Any], part: str) -> None:
    assert part in lua_of(entities, action)


def test_the_result_of_a_wait_can_be_used(entities: Entities) -> None:
    wait = {"wait_template": "{{ is_state('light.hall', 'on') }}", "timeout": 5}
    assert "local completed = ctx:wait_for(" in lua_of(entities, wait, "{{ wait.completed }}")
    assert "if not ((completed or nil) == nil) then" in lua_of(entities, wait, "{{ wait.trigger is none }}")


@pytest.mark.parametrize(("trigger", "expected"), ROWS["more_triggers"])
def test_rare_triggers_are_translated(
    entities: Entities, trigger: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    [found] = triggers.translate(trigger, entities)
    assert expected.items() <= found.table.items() and not found.guard


@pytest.mark.parametrize("trigger", ROWS["refused_triggers"])
def test_another_trigger_is_named(entities: Entities, trigger: Mapping[str, Any]) -> None:
    with pytest.raises(NotTranslated):
        triggers.translate(trigger, entities)


@pytest.mark.parametrize(("condition", "expected"), ROWS["computed_conditions"])
def test_a_condition_that_only_lua_computes(entities: Entities, condition: Any, expected: str) -> None:
    found = conditions.translate(condition, Scope(entities=entities))
    assert found.lua is not None and expected in found.lua


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"condition": "calendar.is_event_active", "target": {}}, "no calendars"),
        ({"condition": "todo.is_incomplete"}, "no to-do lists"),
        ({"condition": "state", "entity_id": "light.hall", "state": "on", "enabled": "no"}, "disabled"),
        (
            {"condition": "state", "entity_id": "light.hall", "state": Tagged("!secret", "x")},
            "!secret is not supported",
        ),
        ({"condition": "vacuum.is_docked"}, "vacuum.is_docked; instead, compare an attribute"),
    ],
)
def test_another_condition_is_named(entities: Entities, condition: Any, reason: str) -> None:
    with pytest.raises(NotTranslated, match=reason):
        conditions.translate(condition, Scope(entities=entities))


def test_a_condition_can_be_named_after_its_state(entities: Entities) -> None:
    made = conditions.translate(
        {"condition": "light.is_on", "target": {"entity_id": "light.hall"}}, Scope(entities=entities)
    )
    assert isinstance(made, Declared) and made.table["equals"] == "on"
