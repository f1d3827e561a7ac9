"""The kinds of condition: how the fields of each become its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.automations import fields as check
from appliance.automations.conditions import Condition, DeviceState, RoomState, SunCondition, TimeWindow
from appliance.automations.fields import Fields
from appliance.automations.sun import SunEvent
from appliance.automations.sun_position import Edge, SunPosition
from appliance.automations.wall_clock import Window, parse_time
from appliance.automations.wanted_fields import PRESENCE, take_attribute, take_equal, take_wanted
from appliance.locale import Locale

_MOST_DEVICES = 1_000_000


def _device_state(fields: Fields, locale: Locale) -> Condition | None:
    device_id = fields.need("device_id", check.text)
    attribute = take_attribute(fields)
    if not fields.has("attribute"):
        fields.fault("attribute", "is missing")
    wanted = take_wanted(fields, attribute)
    if device_id is None or attribute is None:
        return None
    return DeviceState(device_id=device_id, attribute=attribute, wanted=wanted)


def _presence(fields: Fields, locale: Locale) -> Condition | None:
    device_id = fields.need("device_id", check.text)
    attribute = take_attribute(fields) if fields.has("attribute") else PRESENCE
    fields.raw("attribute")
    wanted = take_equal(fields, attribute, default=True)
    if device_id is None or attribute is None:
        return None
    return DeviceState(type="presence", device_id=device_id, attribute=attribute, wanted=wanted)


def _time_window(fields: Fields, locale: Locale) -> Condition | None:
    start, end = fields.need("start", parse_time), fields.need("end", parse_time)
    if start is None or end is None:
        return None
    if start == end:
        fields.fault("end", "must differ from start; a window that is always open needs no condition")
    return TimeWindow(window=Window(start=start, end=end), locale=locale)


def _room_state(fields: Fields, locale: Locale) -> Condition | None:
    room_id = fields.need("room_id", check.text)
    least = fields.take("min_devices", check.whole(0, _MOST_DEVICES))
    most = fields.take("max_devices", check.whole(0, _MOST_DEVICES))
    if least is not None and most is not None and least > most:
        fields.fault("max_devices", f"must not be less than min_devices ({least})")
    return None if room_id is None else RoomState(room_id=room_id, min_devices=least, max_devices=most)


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


CONDITION_KINDS: Mapping[str, Callable[[Fields, Locale], Condition | None]] = {
    "device_state": _device_state,
    "presence": _presence,
    "time_window": _time_window,
    "room_state": _room_state,
    "sun_position": _sun_position,
}
"""Every `type` of a condition: it takes its fields, notes what is wrong with them, and returns the value."""
