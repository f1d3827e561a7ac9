"""All triggers, conditions, and calls of `ctx`, in one table each.

The API returns all documented fields. If a condition is false, the API returns the reason. If a call is wrong, the
error contains its file and line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.automations.conditions.kinds import CONDITION_KINDS
from appliance.automations.triggers.kinds import TRIGGER_KINDS
from appliance.lua_worker.ctx_methods import CTX_METHODS
from tests.fakes.app import LIGHT, open_app
from tests.fakes.clock import VirtualClock
from tests.fakes.lua import automation, scene, write

pytestmark = pytest.mark.slow

PLACED = "[locale]\ntimezone = 'Europe/Berlin'\nlatitude = 52.52\nlongitude = 13.4\n"

TRIGGERS: dict[str, str] = {
    "device_state_change": f"device_id = '{LIGHT}', attribute = 'power', equals = 'on'",
    "weather_state": f"device_id = '{LIGHT}', attribute = 'brightness', above = 5",
    "device_event": "room_id = 'den'",
    "variable_change": "name = 'mode'",
    "timer": "name = 'off'",
    "webhook": "hook = 'bell'",
    "wall_clock": "time = '07:00', weekdays = { 'mon' }",
    "sunrise": "offset_mins = -15",
    "sunset": "weekdays = { 'sun' }",
    "date": "on = '12-24', time = '18:00'",
    "cron": "expression = '0 0 7 * * MON-FRI'",
    "interval": "every_secs = 60",
    "adapter_lifecycle": "adapter = 'roku_tv'",
    "system_error": "contains = 'tv'",
}
"""Valid fields of each trigger."""

CONDITIONS: dict[str, tuple[str, str]] = {
    "device_state": (
        f"device_id = '{LIGHT}', attribute = 'brightness', above = 90",
        "condition 1: brightness was 50, needs above 90",
    ),
    "presence": ("device_id = 'x:ann'", "condition 1: device 'x:ann' not found"),
    "time_window": ("start = '01:00', ['end'] = '02:00'", "condition 1: time was 13:00, needs 01:00 to 02:00"),
    "room_state": ("room_id = 'attic', min_devices = 1", "condition 1: room 'attic' not found"),
    "group_state": ("group_id = 'all', min_devices = 1", "condition 1: group 'all' not found"),
    "sun_position": ("after = 'sunset', before = 'sunrise'", "condition 1: time was 13:00, needs after sunset"),
    "weekday": ("days = { 'mon' }", "condition 1: day was thu, needs mon"),
    "date_range": ("from = '06-01', to = '06-30'", "condition 1: date was 01-01, needs 06-01 to 06-30"),
    "variable": ("name = 'mode', equals = 'away'", "condition 1: variable 'mode' is not set, needs 'away'"),
    "all": (
        "conditions = { { type = 'weekday', days = { 'thu' } }, { type = 'weekday', days = { 'fri' } } }",
        "condition 1.2: day was thu, needs fri",
    ),
    "any": (
        "conditions = { { type = 'weekday', days = { 'fri' } } }",
        "condition 1: none of its conditions holds (1: day was thu, needs fri)",
    ),
    "none": ("conditions = { { type = 'weekday', days = { 'thu' } } }", "condition 1.1: day was thu but must not be"),
}
"""For each condition, an example that is false, and the reason."""

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
    "set": ("'Mode', 1", "the variable's name must be 1 to 64 characters from a-z, 0-9, _, and dots"),
    "start_timer": ("'t', -1", "timer 't': the duration must be 0 to 34560000 seconds (400 days), not -1"),
    "cancel_timer": ("", "bad argument #1 to ctx:cancel_timer ("),
    "run_scene": ("'nobody'", "scene 'nobody' not found"),
    "wait_for": ("'x', { attribute = 'power' }", "ctx:wait_for: timeout_secs is missing"),
    "snapshot": ("{ 5 }", "ctx:snapshot takes a list of device ids"),
    "restore": ("{ 5 }", "ctx:restore takes the result of ctx:snapshot"),
    "notify": ("''", "ctx:notify: the message must have 1 to 4096 characters"),
}


def a_condition(kind: str, fields: str) -> str:
    """Return the text of an automation with this condition on its fifth line."""
    return automation(
        kind, "{ type = 'timer', name = 'x' }", more=f"conditions = {{ {{ type = '{kind}', {fields} }} }}"
    )


def test_the_tables_have_every_trigger_condition_and_call() -> None:
    assert TRIGGERS.keys() == TRIGGER_KINDS.keys()
    assert CONDITIONS.keys() == CONDITION_KINDS.keys()
    assert CALLS.keys() == CTX_METHODS.keys()


async def test_the_api_shows_each_word_and_a_condition_its_reason(tmp_path: Path) -> None:
    files = {
        f"automations/{kind}.lua": automation(kind, f"{{ type = '{kind}', id = 'it', {sound} }}")
        for kind, sound in TRIGGERS.items()
    }
    files |= {f"automations/{kind}.lua": a_condition(kind, fails) for kind, (fails, _) in CONDITIONS.items()}
    async with open_app(root=write(tmp_path, files), toml=PLACED, clock=VirtualClock(is_synchronised=True)) as app:
        shown = {each["id"]: each for each in (await app.get("/automations")).json}
        for kind in TRIGGERS:
            reported: Any = shown[kind]
            assert (reported["trigger_type"], reported["triggers"]) == (kind, [{"id": "it", "type": kind}]), reported
        for kind, (_, why) in CONDITIONS.items():
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
"""The fields that `GET /why` returns for these conditions, in addition to the type and the result."""


async def test_why_has_the_fields_of_each_for_programs(tmp_path: Path) -> None:
    files = {
        f"automations/{kind}.lua": automation(kind, f"{{ type = '{kind}', {sound} }}")
        for kind, sound in TRIGGERS.items()
    }
    files |= {f"automations/{kind}.lua": a_condition(kind, fails) for kind, (fails, _) in CONDITIONS.items()}
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


async def test_a_wrong_call_has_its_file_and_line(tmp_path: Path) -> None:
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
