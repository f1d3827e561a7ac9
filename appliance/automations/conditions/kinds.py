"""All kinds of conditions, and the parser that chooses the kind."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.combine import Combination
from appliance.automations.conditions.device import HOME_CONDITIONS
from appliance.automations.conditions.sun import SunCondition
from appliance.automations.conditions.time import DateRange, TimeWindow, Weekday
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table

CONDITION_KINDS: Mapping[str, type[Condition]] = {
    **HOME_CONDITIONS,
    "time_window": TimeWindow,
    "sun_position": SunCondition,
    "weekday": Weekday,
    "date_range": DateRange,
    **dict.fromkeys(("all", "any", "none"), Combination),
}

_OTHER_NAMES = {"time": "time_window", "state": "device_state", "sun": "sun_position"}
"""Names of conditions in other home automation systems, for hints."""

MAX_CONDITION_DEPTH = 8
"""The maximum nesting of `all`, `any`, and `none`."""


def parse_conditions(table: Table, locale: Locale, depth: int = 1) -> tuple[Condition, ...]:
    """Read the field `conditions`, a list of tables. If a condition has faults, record them and omit the condition.
    `depth` is the nesting level."""
    tables = table.tables("conditions", "{ { type = … }, … }")
    found = [_parse(each, locale, depth) for each in tables]
    return tuple(condition for condition in found if condition is not None)


def _parse(table: Table, locale: Locale, depth: int) -> Condition | None:
    kind = table.need("type", one_of(*CONDITION_KINDS, meant=_OTHER_NAMES))
    if kind is None:
        return None
    condition: Condition | None
    if (parser := CONDITION_KINDS[kind]) is Combination:
        condition = _parse_combination(kind, table, locale, depth)
    else:
        condition = parser.parse(kind, table, locale)
    table.refuse_others(f"a field of the condition {kind!r}")
    return condition


def _parse_combination(kind: str, table: Table, locale: Locale, depth: int) -> Combination | None:
    if depth > MAX_CONDITION_DEPTH:
        table.raw("conditions")
        table.fault("type", f"is nested more than {MAX_CONDITION_DEPTH} levels deep")
        return None
    if not table.has("conditions") or table.raw("conditions") in ({}, []):
        table.raw("conditions")
        table.fault("conditions", "is missing; add at least one condition")
        return None
    return Combination(type=kind, conditions=parse_conditions(table, locale, depth + 1))
