"""The kinds of condition: how the fields of each become its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from appliance.automations import automation_fields as check
from appliance.automations.automation_fields import PRESENCE_ATTRIBUTE, take_attribute, take_equal, take_matcher
from appliance.automations.conditions import (
    Combination,
    Condition,
    DateRange,
    DeviceState,
    PlaceState,
    TimeWindow,
    VariableState,
    Weekday,
)
from appliance.automations.sun import SunEvent
from appliance.automations.sun_position import Edge, SunCondition
from appliance.automations.wall_clock import parse_time
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table

MAX_DEVICE_COUNT = 1_000_000
MAX_CONDITION_DEPTH = 8
"""How deep `all`, `any` and `none` may be nested in each other."""


def parse_conditions(table: Table, locale: Locale, depth: int = 1) -> tuple[Condition, ...]:
    """The field `conditions`, a list of tables; what is wrong with one is noted, and it is left out."""
    tables = table.tables("conditions", "{ { type = … }, … }")
    found = [_condition(each, locale, depth) for each in tables]
    return tuple(condition for condition in found if condition is not None)


def _condition(table: Table, locale: Locale, depth: int) -> Condition | None:
    kind = table.need("type", one_of(*CONDITION_KINDS, *COMBINATIONS))
    if kind is None:
        return None
    condition = (
        _combination(kind, table, locale, depth) if kind in COMBINATIONS else CONDITION_KINDS[kind](table, locale)
    )
    table.refuse_others(f"a field of the condition {kind}")
    return condition


def _combination(kind: str, table: Table, locale: Locale, depth: int) -> Condition | None:
    if depth > MAX_CONDITION_DEPTH:
        table.raw("conditions")
        table.fault("type", f"nests conditions more than {MAX_CONDITION_DEPTH} deep")
        return None
    if not table.has("conditions") or table.raw("conditions") in ({}, []):
        table.raw("conditions")
        table.fault("conditions", f"is missing; {kind} needs at least one")
        return None
    return Combination(type=kind, conditions=parse_conditions(table, locale, depth + 1))


def _device_state(table: Table, locale: Locale) -> Condition | None:
    device_id = table.need("device_id", check.text)
    attribute = take_attribute(table)
    if not table.has("attribute"):
        table.fault("attribute", "is missing")
    matcher = take_matcher(table, attribute)
    for_secs = table.take("for_secs", check.seconds) or 0
    if attribute is not None and not table.has("for_secs"):
        _demand_comparison(table)
    if device_id is None or attribute is None:
        return None
    return DeviceState(device_id=device_id, attribute=attribute, matcher=matcher, for_secs=for_secs)


def _presence(table: Table, locale: Locale) -> Condition | None:
    device_id = table.need("device_id", check.text)
    attribute = take_attribute(table) if table.has("attribute") else PRESENCE_ATTRIBUTE
    table.raw("attribute")
    matcher = take_equal(table, attribute, default=True)
    if device_id is None or attribute is None:
        return None
    return DeviceState(type="presence", device_id=device_id, attribute=attribute, matcher=matcher)


def _time_window(table: Table, locale: Locale) -> Condition | None:
    start, end = table.need("start", parse_time), table.need("end", parse_time)
    if start is None or end is None:
        return None
    if start == end:
        table.fault("end", "must differ from start; a window that is always open needs no condition")
    return TimeWindow(start=start, end=end, locale=locale)


def _place_state(kind: str, table: Table, locale: Locale) -> Condition | None:
    place_id = table.need(f"{kind}_id", check.text)
    least = table.take("min_devices", check.integer_from(0, MAX_DEVICE_COUNT))
    most = table.take("max_devices", check.integer_from(0, MAX_DEVICE_COUNT))
    if least is not None and most is not None and least > most:
        table.fault("max_devices", f"must not be less than min_devices ({least})")
    if not table.has("min_devices") and not table.has("max_devices"):
        table.fault("min_devices", "and max_devices are both missing; give one or both")
    if place_id is None:
        return None
    return PlaceState(kind=kind, place_id=place_id, min_devices=least, max_devices=most)


def _sun_position(table: Table, locale: Locale) -> Condition | None:
    after, before = _edge(table, "after"), _edge(table, "before")
    if not table.has("after") and not table.has("before"):
        table.fault("after", "and before are both missing; give one or both")
    if after is not None and after == before:
        table.fault("before", "must differ from after, or there is no time between")
    if not locale.is_placed:
        table.fault("type", "sun_position needs locale.latitude and locale.longitude in the configuration")
        return None
    return SunCondition(after=after, before=before, locale=locale)


def _edge(table: Table, end: str) -> Edge | None:
    word = table.take(end, one_of(*SunEvent))
    offset = table.take(f"{end}_offset_mins", check.offset)
    if table.has(f"{end}_offset_mins") and not table.has(end):
        table.fault(f"{end}_offset_mins", f"does nothing without {end}")
    return None if word is None else Edge(event=SunEvent(word), offset_mins=offset or 0)


def _weekday(table: Table, locale: Locale) -> Condition | None:
    days = table.need("days", check.weekdays)
    return None if days is None else Weekday(days=days, locale=locale)


def _date_range(table: Table, locale: Locale) -> Condition | None:
    first, last = table.need("from", check.day_of_year), table.need("to", check.day_of_year)
    return None if first is None or last is None else DateRange(first=first, last=last, locale=locale)


def _variable(table: Table, locale: Locale) -> Condition | None:
    name = table.need("name", check.variable_name)
    matcher = take_matcher(table, None)
    _demand_comparison(table)
    return None if name is None else VariableState(name=name, matcher=matcher)


def _demand_comparison(table: Table) -> None:
    """Note that nothing is compared; take the fields first."""
    if not any(map(table.has, ("equals", "above", "below"))):
        table.fault("equals", "is missing; give equals, above or below, or nothing is compared")


CONDITION_KINDS: Mapping[str, Callable[[Table, Locale], Condition | None]] = {
    "device_state": _device_state,
    "presence": _presence,
    "time_window": _time_window,
    "room_state": partial(_place_state, "room"),
    "group_state": partial(_place_state, "group"),
    "sun_position": _sun_position,
    "weekday": _weekday,
    "date_range": _date_range,
    "variable": _variable,
}
"""Every `type` of a condition: it takes its fields, notes what is wrong with them, and returns the value."""

COMBINATIONS = ("all", "any", "none")
"""The types of conditions that hold others."""
