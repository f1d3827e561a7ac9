"""Conditions of conditions, days, variables and time that has passed: whether they hold, and which did not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from appliance.automations.condition_kinds import check_all, parse_conditions
from appliance.automations.environment import Environment
from appliance.tables.checks import LUA
from appliance.tables.fields import Findings, Table
from tests.automations.homes import BERLIN, LAMP, NOW, at, device, home, parse
from tests.fakes.rows import each_row

ON = {"type": "device_state", "device_id": LAMP, "attribute": "power", "equals": "on"}
BRIGHT = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "above": 50}
BASE = {"id": "a", "name": "A", "trigger": {"type": "interval", "every_secs": 1}}


def parsed(*conditions: Any) -> Any:
    """What a definition with these conditions comes to, without its missing `execute`."""
    return parse({**BASE, "conditions": list(conditions)})


def faults(*conditions: Any) -> list[str]:
    """What is wrong with the conditions."""
    return [fault for fault in parsed(*conditions).faults if not fault.startswith("execute")]


def reason(house: Environment, *conditions: Any, instant: datetime | None = NOW) -> str:
    """Why the conditions do not hold; empty if they do."""
    findings = Findings(LUA)
    found = parse_conditions(Table({"conditions": list(conditions)}, findings), BERLIN)
    assert findings.faults == []
    return check_all(found, house, instant).reason


HOUSE = home(device({"power": "on", "brightness": 20}))


@each_row(
    ("conditions", "why"),
    [
        ([ON, {"type": "all", "conditions": [ON, ON]}], ""),
        ([ON, {"type": "all", "conditions": [BRIGHT, ON]}], "condition 2.1: brightness was 20, needs above 50"),
        ([{"type": "any", "conditions": [BRIGHT, ON]}], ""),
        (
            [ON, {"type": "any", "conditions": [BRIGHT, BRIGHT]}],
            "condition 2: none of 2 holds "
            "(1: brightness was 20, needs above 50; 2: brightness was 20, needs above 50)",
        ),
        ([{"type": "none", "conditions": [BRIGHT]}], ""),
        (
            [ON, {"type": "none", "conditions": [BRIGHT, ON]}],
            "condition 2.2: device_state holds, and must not (power was 'on')",
        ),
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
    assert reason(HOUSE, *conditions) == why


def test_a_variable_is_compared() -> None:
    house = home(variables={"n": 5})
    assert reason(house, {"type": "variable", "name": "n", "equals": 5.0}) == ""
    assert (
        reason(house, {"type": "variable", "name": "n", "above": 5})
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
def test_days_are_those_of_the_homes_clocks(condition: Any, local: str, why: str) -> None:
    assert reason(HOUSE, condition, instant=at(local)) == why
    assert "the clock is not trusted yet" in reason(HOUSE, condition, instant=None)


def test_for_secs_counts_from_the_attributes_last_change() -> None:
    lasting = {**ON, "for_secs": 600}
    changed_at = NOW
    house = home(device({"power": "on", "brightness": 20}), changed={LAMP: {"power": changed_at}})
    for secs, why in (
        (0, "power changed 0 s ago, needs 'on' for 600 s"),
        (599, "power changed 599 s ago"),
        (600, ""),
    ):
        refusal = reason(house, lasting, instant=changed_at + timedelta(seconds=secs))
        assert refusal == (why and f"condition 1: {why}") or (why and refusal.startswith(f"condition 1: {why}"))
    assert "the clock is not trusted yet" in reason(house, lasting, instant=None)
    assert reason(house, lasting, instant=changed_at - timedelta(days=1)).endswith(
        "changed 0 s ago, needs 'on' for 600 s"
    )


@each_row(
    ("condition", "sentence"),
    [
        ({"type": "any"}, "conditions[1].conditions is missing; any needs at least one"),
        ({"type": "none", "conditions": []}, "conditions[1].conditions is missing; none needs at least one"),
        ({"type": "all", "conditions": [{"type": "weekday"}]}, "conditions[1].conditions[1].days is missing"),
        ({"type": "all", "conditions": {"type": "any"}}, "conditions[1].conditions must be a list of tables"),
        ({"type": "weekday", "days": ["mo"]}, "did you mean mon"),
        ({"type": "weekday", "days": []}, "days must be a list of days"),
        ({"type": "date_range", "from": "2026-01-01", "to": "02-30"}, "from must be a day of the year like 12-24"),
        ({"type": "date_range", "from": "01-01", "to": "02-30"}, "to must be a date like 12-24"),
        ({"type": "variable", "name": "A b"}, "name must be a name of a-z, 0-9, _ and dots"),
        (
            {"type": "device_state", "device_id": LAMP, "attribute": "power", "for_secs": -1},
            "for_secs must be from 0",
        ),
        ({"type": "group_state", "group_id": "g", "min_devices": 2, "max_devices": 1}, "must not be less than min"),
        (
            {"type": "weekday", "days": ["mon"], "day": 1},
            "day is not a field of the condition weekday; did you mean days",
        ),
    ],
)
def test_what_is_wrong_is_said(condition: Any, sentence: str) -> None:
    assert any(sentence in fault for fault in faults(condition)), faults(condition)


def test_eight_levels_are_enough() -> None:
    def nest(levels: int) -> Any:
        return ON if levels == 0 else {"type": "all", "conditions": [nest(levels - 1)]}

    assert faults(nest(8)) == []
    assert [each.split(" ", 1)[1] for each in faults(nest(9))] == ["nests conditions more than 8 deep"]


LEAVES: dict[str, Any] = {
    "on": ON,
    "bright": BRIGHT,
    "one": {"type": "variable", "name": "n", "equals": 1},
    "monday": {"type": "weekday", "days": ["mon"]},
    "june": {"type": "date_range", "from": "06-01", "to": "06-30"},
    "noon": {"type": "time_window", "start": "23:00", "end": "13:00"},
    "day": {"type": "sun_position", "after": "sunrise", "before": "sunset"},
    "lasting": {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "for_secs": 60},
    "housed": {"type": "room_state", "room_id": "nowhere", "min_devices": 0},
}
"""A condition of each sort, by what makes it true; there is no room, so that one never holds."""

TREES = st.recursive(
    st.sampled_from([*LEAVES]),
    lambda inner: st.tuples(st.sampled_from(["all", "any", "none"]), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=12,
)
FACTS = st.fixed_dictionaries({name: st.booleans() for name in LEAVES if name != "housed"})


def stated(tree: Any) -> Any:
    """The tree as a definition states it."""
    if isinstance(tree, str):
        return LEAVES[tree]
    return {"type": tree[0], "conditions": [stated(each) for each in tree[1]]}


def truth(tree: Any, facts: Mapping[str, bool]) -> bool:
    """What the tree comes to, evaluated directly."""
    if isinstance(tree, str):
        return facts.get(tree, False)
    inner = [truth(each, facts) for each in tree[1]]
    return {"all": all(inner), "any": any(inner), "none": not any(inner)}[tree[0]]


def blamed(trees: list[Any], facts: Mapping[str, bool]) -> str:
    """The way to the one that decides that not all hold: of `all` the first that does not, of `none` the first that
    does, of `any` itself."""
    number = next(n for n, tree in enumerate(trees, 1) if not truth(tree, facts))
    tree = trees[number - 1]
    if isinstance(tree, str) or tree[0] == "any":
        return str(number)
    if tree[0] == "all":
        return f"{number}.{blamed(tree[1], facts)}"
    return f"{number}.{next(n for n, each in enumerate(tree[1], 1) if truth(each, facts))}"


def instant_of(facts: Mapping[str, bool]) -> datetime:
    """An instant at which the facts about the time are so."""
    month = 6 if facts["june"] else 7
    day = next(day for day in range(1, 28) if (date(2026, month, day).weekday() == 0) is facts["monday"])
    hours = {(True, True): 12, (True, False): 0, (False, True): 18, (False, False): 22}
    return datetime(2026, month, day, hours[facts["noon"], facts["day"]], tzinfo=BERLIN.timezone).astimezone(UTC)


@given(trees=st.lists(TREES, max_size=3), facts=FACTS)
def test_conditions_agree_with_a_direct_evaluation_and_blame_the_same_branch(
    trees: list[Any], facts: dict[str, bool]
) -> None:
    conditions = [stated(tree) for tree in trees]
    if any("deep" in fault for fault in faults(*conditions)):
        return
    power, brightness = "on" if facts["on"] else "off", 60 if facts["bright"] else 20
    instant = instant_of(facts)
    changed_at = instant - timedelta(seconds=60 if facts["lasting"] else 59)
    shows = device({"power": power, "brightness": brightness})
    house = home(shows, variables={"n": 1 if facts["one"] else 2}, changed={LAMP: {"brightness": changed_at}})
    why = reason(house, *conditions, instant=instant)
    assert (why == "") is all(truth(tree, facts) for tree in trees)
    assert why == "" or why.startswith(f"condition {blamed(trees, facts)}: ")
