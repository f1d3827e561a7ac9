"""Definitions: valid tables, and, for each fault, an error message that names the field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.automations.conditions.device import PlaceState
from appliance.automations.conditions.kinds import CONDITION_KINDS
from appliance.automations.definition import MAX_PARTS, AutomationDefinition, automation_parser
from appliance.automations.policy import Policy
from appliance.automations.triggers.kinds import TRIGGER_KINDS
from appliance.automations.triggers.time import Interval
from appliance.lua.running.modes import Mode, ModeType
from appliance.tables.checks import LUA, Function
from appliance.tables.fields import Findings, Table
from tests.automations.homes import BERLIN, LAMP, NOW, NOWHERE, Parsed, parse
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row

EVERY = {"type": "interval", "every_secs": 60}

POWER = {"type": "device_state_change", "device_id": LAMP, "attribute": "power"}
BRIGHTNESS = POWER | {"attribute": "brightness"}


def table(**fields: Any) -> dict[str, Any]:
    """Return an automation's table. Replace some fields."""
    return {"id": "a", "name": "A", "trigger": EVERY, "execute": Function(1), **fields}


def read(raw: Any, locale: Any = BERLIN) -> Parsed:
    parsed = parse(raw, locale)
    assert (parsed.definition is None) is (parsed.faults != ())
    return parsed


def definition(**fields: Any) -> AutomationDefinition:
    parsed = read(table(**fields))
    assert parsed.faults == ()
    assert parsed.definition is not None
    return parsed.definition


ONE = "one table (use triggers for a list)"


def faults(raw: Any, locale: Any = BERLIN) -> list[str]:
    return list(read(raw, locale).faults)


def test_the_loading_thread_computes_the_keys_and_comparisons() -> None:
    """Otherwise, the event loop would compute the values of thousands of files in one turn."""
    held = {"type": "device_state", "device_id": LAMP, "attribute": "power", "equals": "on", "for_secs": 5}
    read_table = automation_parser(BERLIN, VirtualClock(NOW), 8)
    found = read_table(Table(table(conditions=[held]), Findings(LUA)))
    assert found is not None and vars(found).keys() == {"trigger_keys", "comparisons"}
    assert len(found.trigger_keys) == 1 and [each for each, _ in found.comparisons] == [LAMP]


def test_the_smallest_and_the_largest_definition() -> None:
    assert definition() == AutomationDefinition(
        id="a",
        name="A",
        description="",
        triggers=(Interval(every_secs=60),),
        conditions=(),
        policy=Policy(),
        mode=Mode(type=ModeType.PARALLEL, max=8),
    )
    full = definition(
        id=" evening ",
        name="Evening",
        description="Lights\nup",
        conditions=[{"type": "room_state", "room_id": "hall", "min_devices": 1.0}],
        state={"cooldown_secs": 1.5, "dedupe_window_secs": 2, "resumable_schedule": True},
        mode={"type": "queued", "max": 2},
    )
    assert (full.id, full.name, full.description) == ("evening", "Evening", "Lights\nup")
    assert full.conditions == (PlaceState(place_id="hall", min_devices=1),)
    assert full.policy == Policy(cooldown_secs=1.5, dedupe_window_secs=2, resumable_schedule=True)
    assert full.mode == Mode(type=ModeType.QUEUED, max=2)


@each_row("empty", [{}, [], None])
def test_an_empty_table_means_no_conditions_and_no_state(empty: Any) -> None:
    assert definition(conditions=empty, state=empty) == definition()


@each_row(
    ("fields", "sentences"),
    [
        ({"id": None}, ["id is missing"]),
        ({"id": "reload"}, ["id must not be 'reload', which is a path of the API; choose another id"]),
        ({"name": None, "description": 1}, ["name is missing", "description must be a string, not 1"]),
        (
            {"cooldown_secs": 30},
            ["cooldown_secs is not a field of an automation; did you mean state = { cooldown_secs = … }?"],
        ),
        ({"triger": {}}, ["triger is not a field of an automation; did you mean trigger?"]),
        (
            {"xyz": 1},
            [
                "xyz is not a field of an automation; use one of "
                "id, name, description, trigger, triggers, conditions, state, mode, enabled, execute"
            ],
        ),
        ({"trigger": None}, ["trigger is missing"]),
        ({"trigger": []}, ["trigger.type is missing"]),
        ({"trigger": "cron"}, [f"trigger must be {ONE}, not 'cron'"]),
        ({"trigger": [{"type": "sunset"}]}, [f"trigger must be {ONE}, not a list"]),
        ({"conditions": "x"}, ["conditions must be a list of tables, not 'x'"]),
        ({"conditions": {"type": "presence"}}, ["conditions must be a list of tables: { { type = … }, … }"]),
        ({"conditions": [1]}, ["conditions[1] must be a table, not 1"]),
        ({"conditions": [{}]}, ["conditions[1].type is missing"]),
        ({"state": 1}, ["state must be a table, not 1"]),
        ({"state": {"cooldown": 5}}, ["state.cooldown is not a field of state; did you mean cooldown_secs?"]),
        (
            {"state": {"cooldown_secs": -1, "dedupe_window_secs": "5", "resumable_schedule": 1}},
            [
                "state.cooldown_secs must be from 0 to 31622400 seconds (a year), not -1",
                "state.dedupe_window_secs must be a number, not '5'",
                "state.resumable_schedule must be true or false, not 1",
            ],
        ),
    ],
)
def test_errors_of_the_outer_table(fields: dict[str, Any], sentences: list[str]) -> None:
    assert faults(table(**fields)) == sentences


KINDS = (
    "device_state_change, weather_state, device_event, variable_change, timer, webhook, adapter_lifecycle, "
    "system_error, wall_clock, date, cron, sunrise, sunset, interval"
)


@each_row(
    ("raw", "sentences"),
    [
        ({"type": "sunrize"}, [f"type must be one of {KINDS}, not 'sunrize'; did you mean sunrise?"]),
        ({"type": 5}, [f"type must be one of {KINDS}, not 5"]),
        (
            {"type": "wall_clock", "time": "07:00", "weekdays": ["Monday"]},
            ["weekdays must be one of mon, tue, wed, thu, fri, sat, sun, not 'Monday'; did you mean mon?"],
        ),
        (POWER | {"device_id": ""}, ["device_id must not be empty"]),
        (
            POWER | {"attribute": "powr"},
            ["attribute 'powr' is neither a capability nor custom.<adapter>.<field>; did you mean power?"],
        ),
        (
            POWER | {"attribute": "xyzzy"},
            [
                "attribute 'xyzzy' is neither a capability nor custom.<adapter>.<field>; "
                "GET /capabilities lists all capabilities"
            ],
        ),
        (
            POWER | {"equal": "on"},
            ["equal is not a field of the trigger 'device_state_change'; did you mean equals?"],
        ),
        (BRIGHTNESS | {"equals": 101}, ["equals for brightness must be an integer from 0 to 100, not 101"]),
        (POWER | {"above": 5}, ["above needs a numeric attribute, but power is not numeric"]),
        (BRIGHTNESS | {"above": True}, ["above must be a number, not true"]),
        (
            BRIGHTNESS | {"above": 30, "below": 30},
            ["below must be greater than 30, the value of above"],
        ),
        (BRIGHTNESS | {"equals": 5, "above": 3}, ["equals cannot be used together with above or below; choose one"]),
        (
            BRIGHTNESS | {"debounce_secs": 1, "duration_secs": 1},
            ["duration_secs cannot be used together with debounce_secs; choose one"],
        ),
        (
            {"type": "device_state_change", "device_id": LAMP, "equals": "on"},
            ["attribute is missing; these fields need it: equals"],
        ),
        (
            {"type": "device_state_change", "device_id": LAMP, "above": 5, "duration_secs": 1},
            ["attribute is missing; these fields need it: above, duration_secs"],
        ),
        ({"type": "weather_state", "device_id": "w:1"}, ["attribute is missing"]),
        (
            {"type": "device_state_change", "attribute": "battery", "below": 9},
            ['device_id is missing; for every device with the attribute, set it to "*"'],
        ),
        *(
            (trigger, ['device_id "*" is allowed only alone, in a trigger device_state_change with an attribute'])
            for trigger in (
                {"type": "device_state_change", "device_id": "*"},
                {"type": "device_state_change", "device_id": ["*", LAMP], "attribute": "battery"},
                {"type": "weather_state", "device_id": "*", "attribute": "wind_speed"},
                {"type": "device_event", "device_id": "*"},
            )
        ),
        ({"type": "weather_state", "attribute": "wind_speed", "above": 9}, ["device_id is missing"]),
        ({"type": "adapter_lifecycle", "adapter": 5}, ["adapter must be a string, not 5"]),
        ({"type": "system_error", "contains": ""}, ["contains must not be empty"]),
        ({"type": "time"}, [f"type must be one of {', '.join(TRIGGER_KINDS)}, not 'time'; did you mean wall_clock?"]),
        (
            {"type": "webhok"},
            [f"type must be one of {', '.join(TRIGGER_KINDS)}, not 'webhok'; did you mean webhook?"],
        ),
        ({"type": "wall_clock"}, ['time is missing; write time = "HH:MM"']),
        ({"type": "wall_clock", "hour": 7}, ["minute is missing"]),
        (
            {"type": "wall_clock", "hour": 24, "minute": 60},
            ["hour must be an integer from 0 to 23, not 24", "minute must be an integer from 0 to 59, not 60"],
        ),
        (
            {"type": "wall_clock", "time": "07:00", "hour": 7, "minute": 0},
            [
                "hour cannot be used together with time; choose one",
                "minute cannot be used together with time; choose one",
            ],
        ),
        (POWER | {"room_id": "r"}, ["room_id cannot be used together with device_id; choose one"]),
        (
            {"type": "device_event", "device_id": []},
            ["device_id must be a string or a list of at most 1000 strings, not a list"],
        ),
        ({"type": "cron", "expression": 5}, ["expression is not a cron expression: must be a string, not 5"]),
        (
            {"type": "cron", "expression": "0 0 30 * * *"},
            ["expression is not a cron expression: hour must be from 0 to 23, not 30"],
        ),
        ({"type": "cron", "expression": "0 0 0 30 2 *"}, ["expression never occurs again up to the year 2099"]),
        ({"type": "cron", "expression": "* * * * * * 2025"}, ["expression never occurs again up to the year 2099"]),
        ({"type": "sunset", "offset_mins": -1441}, ["offset_mins must be an integer from -1440 to 1440, not -1441"]),
        ({"type": "interval", "every_secs": -5}, ["every_secs must be greater than 0, not -5"]),
        ({"type": "interval", "every_secs": 1e-9}, ["every_secs must be at least 0.001, not 1e-09"]),
        (
            {"type": "interval", "every_secs": 1e9},
            ["every_secs must be from 0 to 31622400 seconds (a year), not 1000000000.0"],
        ),
    ],
)
def test_errors_of_triggers(raw: dict[str, Any], sentences: list[str]) -> None:
    assert faults(table(trigger=raw)) == [f"trigger.{sentence}" for sentence in sentences]


@each_row(
    ("stated", "sentence"),
    [
        ({"trigger": EVERY, "triggers": [EVERY]}, "triggers cannot be used together with trigger; choose one"),
        ({"trigger": None}, "trigger is missing"),
        ({"trigger": None, "triggers": []}, "triggers must contain at least one trigger"),
        (
            {"trigger": None, "triggers": [EVERY | {"id": "x"}, POWER | {"id": "x"}]},
            "triggers contain the id 'x' twice; give each trigger a different id",
        ),
    ],
)
def test_errors_of_the_list_of_triggers(stated: dict[str, Any], sentence: str) -> None:
    assert faults(table(**stated)) == [sentence]


STATE = {"type": "device_state", "device_id": LAMP, "attribute": "power"}
DAYS = "mon, tue, wed, thu, fri, sat, sun"


@each_row(
    ("raw", "sentences"),
    [
        (
            {"type": "devicestate"},
            [
                "type must be one of device_state, presence, room_state, group_state, variable, time_window, "
                "sun_position, weekday, date_range, all, any, none, "
                "not 'devicestate'; did you mean device_state?"
            ],
        ),
        ({"type": "device_state"}, ["device_id is missing", "attribute is missing"]),
        (
            STATE | {"equals": "on", "below": 5},
            [
                "below needs a numeric attribute, but power is not numeric",
                "equals cannot be used together with above or below; choose one",
            ],
        ),
        (STATE | {"equals": "dim"}, ["equals for power must be one of on, off, not 'dim'"]),
        (
            STATE | {"equals": "on", "debounce_secs": 1},
            [
                "debounce_secs is not a field of the condition 'device_state'; "
                "use one of type, device_id, attribute, above, below, equals, for_secs"
            ],
        ),
        (
            {"type": "presence", "device_id": LAMP, "attribute": "occupancy"},
            ["equals is missing; it must be one of occupied, unoccupied, not true"],
        ),
        (
            {"type": "device_state", "device_id": LAMP, "attribute": "presence", "above": 1},
            ["above needs a numeric attribute, but presence is not numeric"],
        ),
        (
            {"type": "presence", "device_id": LAMP, "equals": "home"},
            ["equals for presence must be true or false, not 'home'"],
        ),
        (
            {"type": "presence", "device_id": LAMP, "attribute": "presense"},
            ["attribute 'presense' is neither a capability nor custom.<adapter>.<field>; did you mean presence?"],
        ),
        (
            {"type": "time_window", "start": "7:00", "end": "24:00"},
            [
                "start must be a time like 07:30, not '7:00'",
                "end must be a time like 07:30, not '24:00'; midnight is 00:00",
            ],
        ),
        (
            {"type": "room_state", "min_devices": -1},
            [
                "room_id is missing",
                "min_devices must be an integer from 0 to 1000000, not -1",
            ],
        ),
        (
            {"type": "room_state", "room_id": "hall", "min_devices": 3, "max_devices": 2},
            ["max_devices must not be less than 3, the value of min_devices"],
        ),
        ({"type": "sun_position"}, ["after and before are both missing; set one or both"]),
        (
            {"type": "sun_position", "after": "sunset", "before_offset_mins": 5},
            ["before_offset_mins has no effect without the field before"],
        ),
        (
            {"type": "sun_position", "after": "sunset", "before": "sunset"},
            ["before and after have the same event and offset; change one of them"],
        ),
        (
            {"type": "variable", "name": "n"},
            ["equals is missing; set equals, above, or below"],
        ),
        (
            {"type": "group_state", "group_id": "g"},
            ["min_devices and max_devices are both missing; set one or both"],
        ),
        (
            {"type": "all", "conditions": {"type": "any"}},
            ["conditions must be a list of tables: { { type = … }, … }"],
        ),
        ({"type": "weekday", "days": ["mo"]}, [f"days must be one of {DAYS}, not 'mo'; did you mean mon?"]),
        (
            {"type": "date_range", "from": "2026-01-01", "to": "02-30"},
            [
                "from must be a day of the year like 12-24, not '2026-01-01'",
                "to must be a date like 12-24 or 2026-12-24, not '02-30'",
            ],
        ),
        (
            {"type": "device_state", "device_id": LAMP, "attribute": "power", "for_secs": -1},
            ["for_secs must be from 0 to 31622400 seconds (a year), not -1"],
        ),
        (
            {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 100},
            ["above excludes every possible value of brightness"],
        ),
        (
            {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 3, "below": 4},
            ["above excludes every possible value of brightness"],
        ),
    ],
)
def test_errors_of_conditions(raw: dict[str, Any], sentences: list[str]) -> None:
    fine = {"type": "room_state", "room_id": "hall", "min_devices": 1}
    assert faults(table(conditions=[fine, raw])) == [f"conditions[2].{sentence}" for sentence in sentences]


@each_row("kind", ["sunrise", "sunset"])
def test_the_sun_needs_coordinates(kind: str) -> None:
    needs = "needs locale.latitude and locale.longitude in the configuration"
    raw = table(trigger={"type": kind}, conditions=[{"type": "sun_position", "after": "sunset"}])
    assert faults(raw, NOWHERE) == [f"trigger.type {kind} {needs}", f"conditions[1].type sun_position {needs}"]


def test_all_errors_are_reported_at_once() -> None:
    raw = table(id="", trigger=POWER | {"equals": 1, "typo": 2}, conditions=[1, {"type": "presence"}], state=[1])
    assert len(faults(raw)) == 6


def test_a_weekday_by_number_and_an_impossible_schedule_cause_warnings() -> None:
    cron = read(table(trigger={"type": "cron", "expression": "0 0 9 * * 2-6", "timezone": "utc"}))
    assert cron.definition is not None
    assert cron.warnings == (
        "trigger.expression uses numbers for weekdays: 2-6 means MON-FRI, because 1 is SUN; "
        "write MON-FRI, or TUE-SAT if you count weekdays as Unix does",
    )
    minutes, hours = "trigger.expression has an uneven step: minute", "trigger.expression has an uneven step: hour"
    pauses = "; for equal intervals, use a trigger of the type interval"
    for expression, zone, warnings in (
        (
            "0 */90 * * * *",
            "local",
            (f"{minutes} */90 means 0, and starts again at 0, because 90 does not divide 60{pauses}",),
        ),
        (
            "0 */7 * * * *",
            "local",
            (f"{minutes} */7 means 0, 7 … 56, and starts again at 0, because 7 does not divide 60{pauses}",),
        ),
        (
            "0 0 0/9 * * *",
            None,
            (f"{hours} 0/9 means 0, 9, 18, and starts again at 0, because 9 does not divide 24{pauses}",),
        ),
        (
            "0 5/90 * * * *",
            "local",
            (f"{minutes} 5/90 means 5, and starts again at 5, because 90 does not divide 60{pauses}",),
        ),
        ("0 */15 */2 * * *", None, ()),
        ("0 5/15 0-8/3 * * *", "local", ()),
        ("0 30 7 * * MON-FRI", "utc", ()),
        ("0 30 7 * * MON-FRI", "local", ()),
        (
            "0 30 7 * * MON-FRI",
            None,
            (
                "trigger.expression uses UTC: 07:30 is 09:30 in Europe/Berlin; "
                'write timezone = "local", or "utc" if you mean UTC',
            ),
        ),
    ):
        trigger = {"type": "cron", "expression": expression, **({} if zone is None else {"timezone": zone})}
        assert read(table(trigger=trigger)).warnings == warnings, expression
    resumed = read(table(trigger=POWER, state={"resumable_schedule": True}))
    assert resumed.definition is not None
    assert resumed.warnings == ("state.resumable_schedule has no effect, because no trigger has a schedule",)
    assert read(table(state={"resumable_schedule": True})).warnings == ()
    for mode, has_effect in (("queued", False), ({"type": "restart"}, False), ("single", True), ("parallel", True)):
        expected = "mode has no effect, because state.cooldown_secs ignores every trigger during a run"
        found = read(table(mode=mode, state={"cooldown_secs": 5})).warnings
        assert found == (() if has_effect else (expected,)), mode
        assert read(table(mode=mode, state={"dedupe_window_secs": 5})).warnings == ()


NAMES = (
    *("type", "device_id", "attribute", "equals", "above", "below", "debounce_secs", "duration_secs", "adapter"),
    *("event", "contains", "hour", "minute", "expression", "offset_mins", "every_secs", "start", "end", "room_id"),
    *("min_devices", "max_devices", "after", "before", "after_offset_mins", "before_offset_mins", "typo"),
)
WORDS = (
    *TRIGGER_KINDS,
    *CONDITION_KINDS,
    *("power", "brightness", "temperature", "presence", "on", "07:30", "* * * * * *"),
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(WORDS)
    | st.just({"value": 1, "unit": "kelvin"})
)
TABLES = st.dictionaries(
    st.sampled_from(NAMES) | st.integers(0, 3), SCALARS | st.lists(SCALARS, max_size=2), max_size=8
)
KINDLY = st.builds(
    lambda kind, fields: {**fields, "type": kind}, st.sampled_from([*TRIGGER_KINDS, *CONDITION_KINDS]), TABLES
)


@given(
    trigger=SCALARS | TABLES | KINDLY,
    conditions=SCALARS | st.lists(SCALARS | TABLES | KINDLY, max_size=3),
    state=SCALARS | TABLES,
)
def test_no_table_raises_and_every_error_names_its_field(trigger: Any, conditions: Any, state: Any) -> None:
    parsed = read(table(trigger=trigger, conditions=conditions, state=state))
    for sentence in parsed.faults:
        assert sentence.startswith(("trigger", "conditions", "state")) and "\n" not in sentence


@given(expression=st.text(max_size=30) | st.lists(st.text("0123456789*?/,-LW#SUNMO", max_size=5)).map(" ".join))
def test_no_expression_raises(expression: str) -> None:
    read(table(trigger={"type": "cron", "expression": expression}))


@pytest.mark.parametrize("field", ["triggers", "conditions"])
def test_the_number_of_triggers_and_conditions_is_limited(field: str) -> None:
    hall = {"type": "room_state", "room_id": "hall", "min_devices": 1}
    inner = [EVERY if field == "triggers" else hall] * (MAX_PARTS - 1)
    nested = inner if field == "triggers" else [{"type": "any", "conditions": inner}]
    fields: dict[str, Any] = {"trigger": None} if field == "triggers" else {}
    assert definition(**fields, **{field: nested}) is not None
    found = faults(table(**fields, **{field: [*nested, inner[0], inner[0]]}))
    count = MAX_PARTS + (1 if field == "triggers" else 2)
    assert found == [f"{field} has {count} entries, but can have at most {MAX_PARTS}; split it into several files"]
