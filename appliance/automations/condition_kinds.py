"""The kinds of condition: how the fields of each become its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from appliance.automations import fields as check
from appliance.automations.conditions import (
    Combination,
    Condition,
    DateRange,
    DeviceState,
    PlaceState,
    SunCondition,
    TimeWindow,
    VariableState,
    Weekday,
)
from appliance.automations.fields import Fields
from appliance.automations.matcher_fields import PRESENCE, take_attribute, take_equal, take_matcher
from appliance.automations.sun import SunEvent
from appliance.automations.sun_position import Edge, SunPosition
from appliance.automations.wall_clock import Window, parse_time
from appliance.locale import Locale

MAX_DEVICES = 1_000_000
MAX_DEPTH = 8
"""How deep `all`, `any` and `none` may be nested in each other."""


def parse_conditions(fields: Fields, locale: Locale, depth: int = 1) -> tuple[Condition, ...]:
    """The field `conditions`, a list of tables; what is wrong with one is noted, and it is left out."""
    tables = fields.tables("conditions", "{ { type = … }, … }")
    found = [_condition(each, locale, depth) for each in tables]
    return tuple(condition for condition in found if condition is not None)


def _condition(fields: Fields, locale: Locale, depth: int) -> Condition | None:
    kind = fields.need("type", check.one_of([*CONDITION_KINDS, *COMBINATIONS]))
    if kind is None:
        return None
    condition = (
        _combination(kind, fields, locale, depth) if kind in COMBINATIONS else CONDITION_KINDS[kind](fields, locale)
    )
    fields.refuse_others(f"the condition {kind}")
    return condition


def _combination(kind: str, fields: Fields, locale: Locale, depth: int) -> Condition | None:
    if depth > MAX_DEPTH:
        fields.raw("conditions")
        fields.fault("type", f"nests conditions more than {MAX_DEPTH} deep")
        return None
    if not fields.has("conditions") or fields.raw("conditions") in ({}, []):
        fields.raw("conditions")
        fields.fault("conditions", f"is missing; {kind} needs at least one")
        return None
    return Combination(type=kind, conditions=parse_conditions(fields, locale, depth + 1))


def _device_state(fields: Fields, locale: Locale) -> Condition | None:
    device_id = fields.need("device_id", check.text)
    attribute = take_attribute(fields)
    if not fields.has("attribute"):
        fields.fault("attribute", "is missing")
    matcher = take_matcher(fields, attribute)
    for_secs = fields.take("for_secs", check.seconds) or 0
    if device_id is None or attribute is None:
        return None
    return DeviceState(device_id=device_id, attribute=attribute, matcher=matcher, for_secs=for_secs)


def _presence(fields: Fields, locale: Locale) -> Condition | None:
    device_id = fields.need("device_id", check.text)
    attribute = take_attribute(fields) if fields.has("attribute") else PRESENCE
    fields.raw("attribute")
    matcher = take_equal(fields, attribute, default=True)
    if device_id is None or attribute is None:
        return None
    return DeviceState(type="presence", device_id=device_id, attribute=attribute, matcher=matcher)


def _time_window(fields: Fields, locale: Locale) -> Condition | None:
    start, end = fields.need("start", parse_time), fields.need("end", parse_time)
    if start is None or end is None:
        return None
    if start == end:
        fields.fault("end", "must differ from start; a window that is always open needs no condition")
    return TimeWindow(window=Window(start=start, end=end), locale=locale)


def _place_state(kind: str, fields: Fields, locale: Locale) -> Condition | None:
    place_id = fields.need(f"{kind}_id", check.text)
    least = fields.take("min_devices", check.whole(0, MAX_DEVICES))
    most = fields.take("max_devices", check.whole(0, MAX_DEVICES))
    if least is not None and most is not None and least > most:
        fields.fault("max_devices", f"must not be less than min_devices ({least})")
    if place_id is None:
        return None
    return PlaceState(kind=kind, place_id=place_id, min_devices=least, max_devices=most)


def _sun_position(fields: Fields, locale: Locale) -> Condition | None:
    after, before = _edge(fields, "after"), _edge(fields, "before")
    if not fields.has("after") and not fields.has("before"):
        fields.fault("after", "and before are both missing; give one or both")
    if after is not None and after == before:
        fields.fault("before", "must differ from after, or there is no time between")
    if not locale.is_placed:
        fields.fault("type", "sun_position needs locale.latitude and locale.longitude in the configuration")
        return None
    return SunCondition(position=SunPosition(after=after, before=before), locale=locale)


def _edge(fields: Fields, end: str) -> Edge | None:
    word = fields.take(end, check.one_of([*SunEvent]))
    offset = fields.take(f"{end}_offset_mins", check.offset)
    if fields.has(f"{end}_offset_mins") and not fields.has(end):
        fields.fault(f"{end}_offset_mins", f"does nothing without {end}")
    return None if word is None else Edge(event=SunEvent(word), offset_mins=offset or 0)


def _weekday(fields: Fields, locale: Locale) -> Condition | None:
    days = fields.need("days", check.weekdays)
    return None if days is None else Weekday(days=days, locale=locale)


def _date_range(fields: Fields, locale: Locale) -> Condition | None:
    first, last = fields.need("from", check.day_of_year), fields.need("to", check.day_of_year)
    return None if first is None or last is None else DateRange(first=first, last=last, locale=locale)


def _variable(fields: Fields, locale: Locale) -> Condition | None:
    name = fields.need("name", check.variable_name)
    matcher = take_matcher(fields, None)
    return None if name is None else VariableState(name=name, matcher=matcher)


CONDITION_KINDS: Mapping[str, Callable[[Fields, Locale], Condition | None]] = {
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
