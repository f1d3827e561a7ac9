"""Every trigger, condition and call of `ctx` has what a new one must have, in one table each.

A mistake is named with file, line and a sentence; the API shows what was stated; the documents explain it, and the
editor knows it; a condition that does not hold says why, and a call that is wrong says where.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from appliance.automations.condition_kinds import CONDITION_KINDS
from appliance.automations.definition import TRIGGER_KINDS
from appliance.lua_worker.ctx_methods import CTX_METHODS
from tests.fakes.app import LIGHT, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import automation, scene, write

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/lua.md").read_text()
STUBS = (ROOT / "config/library/lares.lua").read_text()

PLACED = "[locale]\ntimezone = 'Europe/Berlin'\nlatitude = 52.52\nlongitude = 13.4\n"

TRIGGERS: dict[str, tuple[str, str, str]] = {
    "device_state_change": (
        f"device_id = '{LIGHT}', attribute = 'power', equals = 'on'",
        f"device_id = '{LIGHT}', attribute = 'power', equals = true",
        "trigger.equals must be one of on, off, not true, for power",
    ),
    "weather_state": (
        f"device_id = '{LIGHT}', attribute = 'brightness', above = 5",
        f"device_id = '{LIGHT}', above = 5",
        "trigger.attribute is missing; above must know which attribute is meant",
    ),
    "device_event": ("room_id = 'den'", "event = 'double'", "trigger.device_id is missing"),
    "variable_change": ("name = 'mode'", "name = 'Mode'", "trigger.name must be a name of a-z, 0-9, _ and dots"),
    "timer": ("name = 'off'", "name = 5", "trigger.name must be a string, not 5"),
    "webhook": ("hook = 'bell'", "hook = ''", "trigger.hook must have 1 to 263 characters, not 0"),
    "wall_clock": (
        "time = '07:00', weekdays = { 'mon' }",
        "time = '24:00'",
        "trigger.time must be a time like 07:30, not '24:00'; midnight is 00:00",
    ),
    "sunrise": ("offset_mins = -15", "offset_mins = 0.5", "trigger.offset_mins must be an integer"),
    "sunset": ("weekdays = { 'sun' }", "weekdays = { 'son' }", "trigger.weekdays must be one of mon"),
    "date": ("on = '12-24', time = '18:00'", "on = '02-30', time = '18:00'", "trigger.on must be a date like 12-24"),
    "cron": (
        "expression = '0 0 7 * * MON-FRI'",
        "expression = '0 7 * * *'",
        "trigger.expression is no cron expression: ",
    ),
    "interval": ("every_secs = 60", "every_secs = 0", "trigger.every_secs must be greater than 0, not 0"),
    "adapter_lifecycle": ("adapter = 'roku_tv'", "event = 'stopped'", "trigger.event must be one of started"),
    "system_error": ("contains = 'tv'", "contain = 'tv'", "trigger.contain is not a field of the trigger"),
}
"""Of each trigger: fields that are sound, fields that are wrong, and what is said of these."""

CONDITIONS: dict[str, tuple[str, str, str, str]] = {
    "device_state": (
        f"device_id = '{LIGHT}', attribute = 'brightness', above = 90",
        "condition 1: brightness was 50, needs above 90",
        f"device_id = '{LIGHT}', attribute = 'power', above = 5",
        "conditions[1].above needs an attribute that is a number",
    ),
    "presence": (
        "device_id = 'x:ann'",
        "condition 1: device 'x:ann' not found",
        "equals = true",
        "conditions[1].device_id is missing",
    ),
    "time_window": (
        "start = '01:00', ['end'] = '02:00'",
        "condition 1: time was 13:00, needs 01:00 to 02:00",
        "start = '01:00', ['end'] = '01:00'",
        "conditions[1].end must differ from start",
    ),
    "room_state": (
        "room_id = 'attic', min_devices = 1",
        "condition 1: room 'attic' not found",
        "room_id = 'attic', min_devices = -1",
        "conditions[1].min_devices must be an integer",
    ),
    "group_state": (
        "group_id = 'all', min_devices = 1",
        "condition 1: group 'all' not found",
        "group_id = 'all', min_devices = 2, max_devices = 1",
        "conditions[1].max_devices must not be less than min_devices (2)",
    ),
    "sun_position": (
        "after = 'sunset', before = 'sunrise'",
        "condition 1: time was 13:00, needs after sunset",
        "after_offset_mins = 5, before = 'sunset'",
        "conditions[1].after_offset_mins does nothing without after",
    ),
    "weekday": (
        "days = { 'mon' }",
        "condition 1: day was thu, needs mon",
        "days = {}",
        "conditions[1].days must be a list of days",
    ),
    "date_range": (
        "from = '06-01', to = '06-30'",
        "condition 1: date was 01-01, needs 06-01 to 06-30",
        "from = '06-01'",
        "conditions[1].to is missing",
    ),
    "variable": (
        "name = 'mode', equals = 'away'",
        "condition 1: variable 'mode' is not set, needs 'away'",
        "name = 'mode', equals = 'away', equal = 'away'",
        "conditions[1].equal is not a field of the condition variable; did you mean equals",
    ),
    "all": (
        "conditions = { { type = 'weekday', days = { 'thu' } }, { type = 'weekday', days = { 'fri' } } }",
        "condition 1.2: day was thu, needs fri",
        "conditions = { { type = 'weekdays' } }",
        "conditions[1].conditions[1].type must be one of ",
    ),
    "any": (
        "conditions = { { type = 'weekday', days = { 'fri' } } }",
        "condition 1: none of 1 holds (1: day was thu, needs fri)",
        "conditions = {}",
        "conditions[1].conditions is missing; any needs at least one",
    ),
    "none": (
        "conditions = { { type = 'weekday', days = { 'thu' } } }",
        "condition 1.1: weekday holds, and must not",
        "conditions = { {} }",
        "conditions[1].conditions[1].type is missing",
    ),
}
"""Of each condition: one that does not hold, why not, one that is wrong, and what is said of that."""

CALLS: dict[str, tuple[str, str]] = {
    "command": ("'x', { capability = 'power', action = 'of' }", "power has no action 'of'"),
    "command_group": ("'x', { capability = 'power', action = 'on' }", "group 'x' not found"),
    "command_room": ("'x', { capability = 'power', action = 'on' }", "room 'x' not found"),
    "invoke": ("'x:y', 5", "bad argument #2 to ctx:invoke ("),
    "sleep": ("-1", "ctx:sleep takes 0 to 3600 seconds, not -1"),
    "get_device": ("5", "bad argument #1 to ctx:get_device ("),
    "list_devices": ("", ""),
    "get_room": ("nil", "bad argument #1 to ctx:get_room ("),
    "list_rooms": ("", ""),
    "list_room_devices": ("'x'", "room 'x' not found"),
    "get_group": ("{}", "bad argument #1 to ctx:get_group ("),
    "list_groups": ("", ""),
    "list_group_devices": ("'x'", "group 'x' not found"),
    "get": ("nil", "bad argument #1 to ctx:get ("),
    "set": ("'Mode', 1", "the variable's name must be a name of a-z, 0-9, _ and dots"),
    "start_timer": ("'t', -1", "timer 't': must take 0 to 34560000 seconds (400 days), not -1"),
    "cancel_timer": ("", "bad argument #1 to ctx:cancel_timer ("),
    "run_scene": ("'nobody'", "scene 'nobody' not found"),
    "wait_for": ("'x', { attribute = 'power' }", "ctx:wait_for: timeout_secs is missing"),
    "snapshot": ("{ 5 }", "ctx:snapshot takes a list of device ids"),
    "restore": ("{ 5 }", "ctx:restore takes what ctx:snapshot gave"),
    "notify": ("''", "ctx:notify: the message must have 1 to 4096 characters"),
}
"""Of each call: arguments that are wrong, and what is said of them; those that take none cannot be wrong."""


def a_condition(kind: str, fields: str) -> str:
    """The text of an automation with this condition on its fifth line."""
    return automation(
        kind, "{ type = 'timer', name = 'x' }", more=f"conditions = {{ {{ type = '{kind}', {fields} }} }}"
    )


def test_the_tables_know_every_trigger_condition_and_call() -> None:
    assert TRIGGERS.keys() == TRIGGER_KINDS.keys()
    assert CONDITIONS.keys() == CONDITION_KINDS.keys()
    assert CALLS.keys() == CTX_METHODS.keys()


def test_the_documents_have_a_row_and_the_editor_a_class_for_each() -> None:
    section = DOCS.partition("## An automation")[2].partition("## ctx")[0]
    cells = " ".join(re.findall(r"(?m)^\| (`.*?) \|", section))
    calls = " ".join(re.findall(r"(?m)^\| (`ctx:.*?) \|", DOCS))
    missing = [kind for kind in (*TRIGGERS, *CONDITIONS) if f"`{kind}`" not in cells]
    missing += [call for call in CALLS if f"`ctx:{call}(" not in calls]
    missing += [kind for kind in (*TRIGGERS, *CONDITIONS) if f'---@field type "{kind}"' not in STUBS]
    missing += [call for call in CALLS if not re.search(rf"(?m)^function \w+:{call}\(", STUBS)]
    assert missing == []


async def test_a_mistake_in_each_is_named_with_file_line_and_sentence(tmp_path: Path) -> None:
    files = {
        f"automations/{kind}.lua": automation(kind, f"{{ type = '{kind}', {wrong} }}")
        for kind, (_, wrong, _) in TRIGGERS.items()
    }
    files |= {f"automations/{kind}.lua": a_condition(kind, wrong) for kind, (_, _, wrong, _) in CONDITIONS.items()}
    said = {kind: (4, sentence) for kind, (_, _, sentence) in TRIGGERS.items()}
    said |= {kind: (5, sentence) for kind, (*_, sentence) in CONDITIONS.items()}
    async with open_app(root=write(tmp_path, files), toml=PLACED, adapters={}) as app:
        errors = (await app.post("/automations/reload")).json["errors"]
    found = {Path(each["file"]).stem: (each["line"], each["message"]) for each in errors}
    assert found.keys() == said.keys() and len(errors) == len(said)
    for kind, (line, sentence) in said.items():
        assert (found[kind][0], sentence in found[kind][1]) == (line, True), (kind, found[kind], sentence)


async def test_the_api_shows_each_and_a_condition_says_why_not(tmp_path: Path) -> None:
    files = {
        f"automations/{kind}.lua": automation(kind, f"{{ type = '{kind}', id = 'it', {sound} }}")
        for kind, (sound, *_) in TRIGGERS.items()
    }
    files |= {f"automations/{kind}.lua": a_condition(kind, fails) for kind, (fails, *_) in CONDITIONS.items()}
    async with open_app(root=write(tmp_path, files), toml=PLACED, clock=VirtualClock(is_synchronised=True)) as app:
        shown = {each["id"]: each for each in (await app.get("/automations")).json}
        for kind in TRIGGERS:
            reported: Any = shown[kind]
            assert (reported["trigger_type"], reported["triggers"]) == (kind, [{"id": "it", "type": kind}]), reported
        for kind, (_, why, *_) in CONDITIONS.items():
            assert shown[kind]["condition_count"] == 1
            ran = (await app.post(f"/automations/{kind}/execute")).json
            assert (ran["status"], ran["error"].startswith(why)) == ("skipped", True), (kind, ran, why)
            [entry] = (await app.get(f"/automations/{kind}/history")).json["entries"]
            assert entry["error"] == ran["error"] and entry["trace"][-1]["step"] == "condition"


STATED: dict[str, dict[str, Any]] = {
    "device_state_change": {"device_id": [LIGHT], "attribute": "power", "equals": "on"},
    "weather_state": {"device_id": [LIGHT], "attribute": "brightness", "above": 5},
    "device_event": {"room_id": "den"},
    "wall_clock": {"time": "07:00", "weekdays": ["mon"], "timezone": "Europe/Berlin"},
    "sunrise": {"offset_mins": -15, "timezone": "Europe/Berlin"},
    "date": {"month": 12, "day": 24, "time": "18:00", "timezone": "Europe/Berlin"},
    "cron": {"expression": "0 0 7 * * MON-FRI"},
    "presence": {"device_id": "x:ann", "attribute": "presence", "equals": True, "for_secs": 0},
    "time_window": {"start": "01:00", "end": "02:00", "timezone": "Europe/Berlin"},
    "group_state": {"group_id": "all", "min_devices": 1},
    "sun_position": {
        "after": "sunset",
        "after_offset_mins": 0,
        "before": "sunrise",
        "before_offset_mins": 0,
        "timezone": "Europe/Berlin",
    },
    "weekday": {"days": ["mon"], "timezone": "Europe/Berlin"},
    "date_range": {"from": "06-01", "to": "06-30", "timezone": "Europe/Berlin"},
    "variable": {"name": "mode", "equals": "away"},
}
"""What `GET /why` states of these, beside the type and whether it holds."""


async def test_why_states_the_fields_of_each_for_programs_that_say_them_in_other_words(tmp_path: Path) -> None:
    files = {
        f"automations/{kind}.lua": automation(kind, f"{{ type = '{kind}', {sound} }}")
        for kind, (sound, *_) in TRIGGERS.items()
    }
    files |= {f"automations/{kind}.lua": a_condition(kind, fails) for kind, (fails, *_) in CONDITIONS.items()}
    async with open_app(root=write(tmp_path, files), toml=PLACED, clock=VirtualClock(is_synchronised=True)) as app:
        for kind in (*TRIGGERS, *CONDITIONS):
            stated = (await app.get(f"/why?id={kind}")).json["automation"]
            if kind in TRIGGERS:
                [found] = stated["triggers"]
                assert stated["conditions"] == []
            else:
                [found] = stated["conditions"]
                assert found.pop("holds") is False, kind
            assert found.pop("type") == kind
            assert found == STATED.get(kind, found), kind
        nested = (await app.get("/why?id=all")).json["automation"]["conditions"][0]["conditions"]
        assert [(each["days"], each["holds"]) for each in nested] == [(["thu"], True), (["fri"], False)]
        assert (await app.get(f"/why?id={LIGHT}")).json["automation"] is None


async def test_a_call_that_is_wrong_says_where(tmp_path: Path) -> None:
    files = {f"scenes/{call}.lua": scene(call, f"ctx:{call}({wrong})") for call, (wrong, _) in CALLS.items()}
    async with open_app(root=write(tmp_path, files), adapters={}) as app:
        for call, (_, sentence) in CALLS.items():
            answer = await app.post(f"/scenes/{call}/execute")
            if not sentence:
                assert answer.status == 200
                continue
            place = f"scene '{call}' failed: config/scenes/{call}.lua:5: "
            error = answer.json["error"]
            assert answer.status == 400 and error.startswith(place) and sentence in error, (call, error)
