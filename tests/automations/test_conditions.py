"""Conditions: their results, alone and in combinations, and the error messages with the compared values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.combine import check_conditions
from appliance.automations.conditions.device import DeviceState, PlaceState
from appliance.automations.conditions.kinds import parse_conditions
from appliance.automations.environment import Environment
from appliance.automations.requirement import Requirement, check_equal
from appliance.errors import Invalid
from appliance.home.values import describe, same
from appliance.tables.checks import LUA
from appliance.tables.fields import Findings, Table
from tests.automations.homes import BERLIN, LAMP, NOW, at, device, home, parse
from tests.fakes.registry import PromptRegistry
from tests.fakes.rows import each_row

CELSIUS = {"value": 21.5, "unit": "celsius"}


@each_row(
    ("one", "other", "equal"),
    [
        (5, 5.0, True),
        (5, 5.1, False),
        (0, -0.0, True),
        (True, True, True),
        (True, 1, False),
        (1.0, True, False),
        (False, 0, False),
        ("on", "on", True),
        ("5", 5, False),
        ("on", "On", False),
        ({"r": 1, "g": 2}, {"g": 2.0, "r": 1}, True),
        ({"r": 1}, {"r": 1, "g": 2}, False),
        ({"r": True}, {"r": 1}, False),
        ([1, 2], [1.0, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([], {}, False),
        (None, False, False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is same(other, one) is equal


@each_row(
    ("attribute", "value", "canonical"),
    [
        ("power", "on", "on"),
        ("brightness", 50.0, 50),
        ("muted", False, False),
        ("temperature", 21, 21),
        ("temperature", 21.5, 21.5),
        ("temperature", CELSIUS, CELSIUS),
        ("rainfall", 2, 2),
        ("color_temperature", 2900.0, 2900),
        ("color_temperature", 344, 344),
        ("color_temperature", {"value": 2900, "unit": "kelvin"}, {"value": 2900, "unit": "kelvin"}),
        ("color_hs", {"hue": 1.0, "saturation": 2}, {"hue": 1, "saturation": 2}),
        ("custom.desk.mode", ["anything"], ["anything"]),
        ("presence", True, True),
    ],
)
def test_a_valid_value_becomes_canonical(attribute: str, value: Any, canonical: Any) -> None:
    assert check_equal(attribute, value) == canonical


@each_row(
    ("attribute", "value", "sentence"),
    [
        ("power", True, "must be one of on, off, not true"),
        ("power", "On", "must be one of on, off, not 'On'"),
        ("brightness", 101, "must be an integer from 0 to 100, not 101"),
        ("brightness", 50.5, "must be an integer from 0 to 100, not 50.5"),
        ("muted", 1, "must be true or false, not 1"),
        ("presence", "home", "must be true or false, not 'home'"),
        ("temperature", "warm", "must be an object with value, unit, not 'warm'"),
        ("temperature", True, "must be an object with value, unit, not true"),
        ("color_temperature", 1000, "must be from 2200 to 7000 (kelvin) or 153 to 556 (mireds), not 1000"),
        ("color_temperature", 2900.5, "must be an integer, not 2900.5"),
    ],
)
def test_an_invalid_value_is_refused(attribute: str, value: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_equal(attribute, value)
    assert str(refused.value) == sentence


def test_the_sentence_has_the_expected_and_the_present_value() -> None:
    assert str(Requirement(above=20, below=30.5)) == "above 20 and below 30.5"
    assert [str(Requirement(above=1)), str(Requirement(below=2)), str(Requirement())] == [
        "above 1",
        "below 2",
        "any value",
    ]
    assert [str(Requirement(equals="on")), str(Requirement(equals=True)), str(Requirement(equals=CELSIUS))] == [
        "'on'",
        "true",
        "21.5 celsius",
    ]
    assert [describe(20), describe({"r": 1}), describe({"value": 3})] == ["20", "an object", "an object"]


def state(attribute: str, requirement: Requirement) -> DeviceState:
    return DeviceState(device_id=LAMP, attribute=attribute, requirement=requirement)


def reason(condition: Condition, attributes: dict[str, Any] | None, instant: datetime | None = NOW) -> str:
    """Return why the condition is false in a home with this lamp. If `attributes` is None, the home has no lamp.
    Return an empty string if the condition is true."""
    outcome = condition.evaluate(home() if attributes is None else home(device(attributes)), instant)
    assert bool(outcome.holds) is (outcome.refusal == "")
    return outcome.refusal


@each_row(
    ("requirement", "value", "why"),
    [
        (Requirement(above=50), 50, "brightness was 50, needs above 50"),
        (Requirement(above=50), 50.5, ""),
        (Requirement(below=50), 50.0, "brightness was 50.0, needs below 50"),
        (Requirement(above=20, below=30), 20, "brightness was 20, needs above 20 and below 30"),
        (Requirement(above=20, below=30), 21, ""),
        (Requirement(above=20, below=30), 30, "brightness was 30, needs above 20 and below 30"),
        (Requirement(above=20), {"value": 21, "unit": "celsius"}, ""),
        (Requirement(above=21), {"value": 21, "unit": "celsius"}, "brightness was 21 celsius, needs above 21"),
        (Requirement(above=20), "high", "brightness was 'high', needs a number above 20"),
        (Requirement(above=0), True, "brightness was true, needs a number above 0"),
        (Requirement(equals="on"), "off", "brightness was 'off', needs 'on'"),
        (Requirement(equals=True), 1, "brightness was 1, needs true"),
        (Requirement(equals=21), {"value": 21.0, "unit": "celsius"}, ""),
        (Requirement(), 0, ""),
    ],
)
def test_a_device_state_holds_or_reports_both_values(requirement: Requirement, value: Any, why: str) -> None:
    assert reason(state("brightness", requirement), {"brightness": value}) == why


def test_a_missing_device_or_attribute_is_reported() -> None:
    condition = state("brightness", Requirement(above=50))
    assert reason(condition, None) == "device 'desk:light:0' not found"
    assert reason(condition, {"power": "on"}) == "device 'desk:light:0' has no brightness, needs above 50"
    assert (
        reason(state("brightness", Requirement()), {}) == "device 'desk:light:0' has no brightness, needs any value"
    )


@each_row(
    ("least", "most", "why"),
    [
        (None, None, ""),
        (2, None, ""),
        (3, None, "room 'hall' had 2 devices, needs at least 3"),
        (None, 2, ""),
        (None, 1, "room 'hall' had 2 devices, needs at most 1"),
        (2, 2, ""),
        (3, 4, "room 'hall' had 2 devices, needs at least 3 and at most 4"),
        (0, 0, "room 'hall' had 2 devices, needs at least 0 and at most 0"),
    ],
)
def test_the_devices_of_a_room_are_counted(least: int | None, most: int | None, why: str) -> None:
    app = home(device({}), device({}, "desk:light:1"), device({}, "desk:light:2"))
    registry = cast("PromptRegistry", app.registry)
    registry.put_room("hall", "Hall")
    for device_id in (LAMP, "desk:light:1"):
        registry.assign_room(device_id, "hall")
    assert PlaceState(place_id="hall", min_devices=least, max_devices=most).evaluate(app, NOW).refusal == why
    registry.assign_room(LAMP, None)
    one = PlaceState(place_id="hall", min_devices=2).evaluate(app, NOW)
    assert one.refusal == "room 'hall' had 1 device, needs at least 2"


def test_an_unknown_room_is_reported() -> None:
    assert reason(PlaceState(place_id="attic", max_devices=5), None) == "room 'attic' not found"


ON = {"type": "device_state", "device_id": LAMP, "attribute": "power", "equals": "on"}
UNREAD = {"type": "device_state", "device_id": LAMP, "attribute": "contact", "equals": "open"}
BRIGHT = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 50}
BASE = {"id": "a", "name": "A", "trigger": {"type": "interval", "every_secs": 1}}


def parsed(*conditions: Any) -> Any:
    """Parse a definition with these conditions. Ignore that `execute` is missing."""
    return parse({**BASE, "conditions": list(conditions)})


def faults(*conditions: Any) -> list[str]:
    return [fault for fault in parsed(*conditions).faults if not fault.startswith("execute")]


def why_not(app: Environment, *conditions: Any, instant: datetime | None = NOW) -> str:
    """Return why the conditions are false, or an empty string."""
    findings = Findings(LUA)
    found = parse_conditions(Table({"conditions": list(conditions)}, findings), BERLIN)
    assert findings.faults == []
    refusal = check_conditions(found, app, instant)
    return "" if refusal is None else refusal.reason


HOME_DEVICES = home(device({"power": "on", "brightness": 20}))


@each_row(
    ("conditions", "why"),
    [
        ([ON, {"type": "all", "conditions": [ON, ON]}], ""),
        ([ON, {"type": "all", "conditions": [BRIGHT, ON]}], "condition 2.1: brightness was 20, needs above 50"),
        ([{"type": "any", "conditions": [BRIGHT, ON]}], ""),
        (
            [ON, {"type": "any", "conditions": [BRIGHT, BRIGHT]}],
            "condition 2: none of its conditions holds "
            "(1: brightness was 20, needs above 50; 2: brightness was 20, needs above 50)",
        ),
        ([{"type": "none", "conditions": [BRIGHT]}], ""),
        (
            [ON, {"type": "none", "conditions": [BRIGHT, ON]}],
            "condition 2.2: power was 'on' but must not be",
        ),
        (
            [{"type": "none", "conditions": [UNREAD, BRIGHT]}],
            f"condition 1.1: unknown, because device '{LAMP}' has no contact",
        ),
        (
            [{"type": "none", "conditions": [{"type": "none", "conditions": [UNREAD]}]}],
            f"condition 1.1: unknown, because device '{LAMP}' has no contact",
        ),
        ([{"type": "none", "conditions": [UNREAD, ON]}], "condition 1.2: power was 'on' but must not be"),
        (
            [{"type": "none", "conditions": [{"type": "any", "conditions": [UNREAD, BRIGHT]}]}],
            "condition 1.1: unknown, because none of its conditions holds "
            f"(1: device '{LAMP}' has no contact, needs 'open'; 2: brightness was 20, needs above 50)",
        ),
        ([{"type": "none", "conditions": [{"type": "all", "conditions": [UNREAD, BRIGHT]}]}], ""),
        ([{"type": "none", "conditions": [{"type": "variable", "name": "mode", "equals": "away"}]}], ""),
        (
            [{"type": "all", "conditions": [ON, {"type": "all", "conditions": [ON, BRIGHT]}]}],
            "condition 1.2.2: brightness was 20, needs above 50",
        ),
        (
            [{"type": "variable", "name": "mode", "equals": "away"}],
            "condition 1: variable 'mode' is not set, needs 'away'",
        ),
        ([{"type": "group_state", "group_id": "x", "min_devices": 1}], "condition 1: group 'x' not found"),
    ],
)
def test_the_reason_names_the_branch(conditions: list[Any], why: str) -> None:
    assert why_not(HOME_DEVICES, *conditions) == why


def test_a_variable_is_compared() -> None:
    app = home(variables={"n": 5})
    assert why_not(app, {"type": "variable", "name": "n", "equals": 5.0}) == ""
    assert (
        why_not(app, {"type": "variable", "name": "n", "above": 5})
        == "condition 1: variable 'n' was 5, needs above 5"
    )


@each_row(
    ("condition", "local", "why"),
    [
        ({"type": "weekday", "days": ["sat", "sun"]}, "2026-06-06T00:00:00+02:00", ""),
        (
            {"type": "weekday", "days": ["sun", "sat"]},
            "2026-06-05T23:59:59+02:00",
            "condition 1: day was fri, needs sat, sun",
        ),
        ({"type": "date_range", "from": "12-20", "to": "01-06"}, "2026-12-31T23:00:00+01:00", ""),
        ({"type": "date_range", "from": "12-20", "to": "01-06"}, "2026-01-06T23:59:59+01:00", ""),
        (
            {"type": "date_range", "from": "12-20", "to": "01-06"},
            "2026-01-07T00:00:00+01:00",
            "condition 1: date was 01-07, needs 12-20 to 01-06",
        ),
        ({"type": "date_range", "from": "02-29", "to": "02-29"}, "2028-02-29T12:00:00+01:00", ""),
        ({"type": "date_range", "from": "06-01", "to": "06-01"}, "2026-06-01T00:00:00+02:00", ""),
    ],
)
def test_days_use_the_time_zone_of_the_home(condition: Any, local: str, why: str) -> None:
    assert why_not(HOME_DEVICES, condition, instant=at(local)) == why
    assert "the clock is not trusted yet" in why_not(HOME_DEVICES, condition, instant=None)


def test_for_secs_counts_from_the_attributes_last_change() -> None:
    lasting = {**ON, "for_secs": 600}
    changed_at = NOW
    app = home(device({"power": "on", "brightness": 20}), changed={LAMP: {"power": changed_at}})
    for secs, why in (
        (0, "power changed 0 s ago, needs 'on' for 600 s"),
        (599, "power changed 599 s ago"),
        (600, ""),
    ):
        refusal = why_not(app, lasting, instant=changed_at + timedelta(seconds=secs))
        assert refusal == (why and f"condition 1: {why}") or (why and refusal.startswith(f"condition 1: {why}"))
    assert "the clock is not trusted yet" in why_not(app, lasting, instant=None)
    assert why_not(app, lasting, instant=changed_at - timedelta(days=1)).endswith(
        "changed 0 s ago, needs 'on' for 600 s"
    )


def test_conditions_nest_up_to_eight_levels() -> None:
    def nest(levels: int) -> Any:
        return ON if levels == 0 else {"type": "all", "conditions": [nest(levels - 1)]}

    assert faults(nest(8)) == []
    assert [each.split(" ", 1)[1] for each in faults(nest(9))] == ["is nested more than 8 levels deep"]


LEAVES: dict[str, Any] = {
    "on": ON,
    "bright": BRIGHT,
    "one": {"type": "variable", "name": "n", "equals": 1},
    "monday": {"type": "weekday", "days": ["mon"]},
    "june": {"type": "date_range", "from": "06-01", "to": "06-30"},
    "noon": {"type": "time_window", "start": "23:00", "end": "13:00"},
    "day": {"type": "sun_position", "after": "sunrise", "before": "sunset"},
    "lasting": {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "for_secs": 60},
    "sheltered": {"type": "room_state", "room_id": "nowhere", "min_devices": 0},
}
"""Maps a fact to a condition that it makes true. The condition about a room is always unknown, because the room
does not exist."""

TREES = st.recursive(
    st.sampled_from([*LEAVES]),
    lambda inner: st.tuples(st.sampled_from(["all", "any", "none"]), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=12,
)
FACTS = st.fixed_dictionaries({name: st.booleans() for name in LEAVES if name != "sheltered"})


def stated(tree: Any) -> Any:
    if isinstance(tree, str):
        return LEAVES[tree]
    return {"type": tree[0], "conditions": [stated(each) for each in tree[1]]}


def truth(tree: Any, facts: Mapping[str, bool]) -> bool | None:
    """Return the value of the tree in Kleene's logic of three values, evaluated directly."""
    if isinstance(tree, str):
        return facts.get(tree)
    inner = [truth(each, facts) for each in tree[1]]
    kind, decisive = tree[0], tree[0] != "all"
    found = decisive if decisive in inner else None if None in inner else not decisive
    return found if found is None or kind != "none" else not found


def blamed(trees: list[Any], facts: Mapping[str, bool]) -> str:
    """Return the path to the deciding condition. In `all`, the deciding condition is the first one that is not
    true. In `none`, the deciding condition is the first true one or, if no condition is true, the first unknown
    one."""
    number = next(n for n, tree in enumerate(trees, 1) if not truth(tree, facts))
    tree = trees[number - 1]
    if isinstance(tree, str) or tree[0] == "any":
        return str(number)
    if tree[0] == "all":
        return f"{number}.{blamed(tree[1], facts)}"
    inner = [truth(each, facts) for each in tree[1]]
    return f"{number}.{inner.index(True if True in inner else None) + 1}"


def instant_of(facts: Mapping[str, bool]) -> datetime:
    month = 6 if facts["june"] else 7
    day = next(day for day in range(1, 28) if (date(2026, month, day).weekday() == 0) is facts["monday"])
    hours = {(True, True): 12, (True, False): 0, (False, True): 18, (False, False): 22}
    return datetime(2026, month, day, hours[facts["noon"], facts["day"]], tzinfo=BERLIN.timezone).astimezone(UTC)


@given(trees=st.lists(TREES, max_size=3), facts=FACTS)
def test_conditions_agree_with_a_direct_evaluation(trees: list[Any], facts: dict[str, bool]) -> None:
    conditions = [stated(tree) for tree in trees]
    if any("deep" in fault for fault in faults(*conditions)):
        return
    power, brightness = "on" if facts["on"] else "off", 60 if facts["bright"] else 20
    instant = instant_of(facts)
    changed_at = instant - timedelta(seconds=60 if facts["lasting"] else 59)
    shows = device({"power": power, "brightness": brightness})
    app = home(shows, variables={"n": 1 if facts["one"] else 2}, changed={LAMP: {"brightness": changed_at}})
    why = why_not(app, *conditions, instant=instant)
    assert (why == "") is all(truth(tree, facts) for tree in trees)
    assert why == "" or why.startswith(f"condition {blamed(trees, facts)}: ")
