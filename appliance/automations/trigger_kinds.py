"""The kinds of trigger: how the fields of each become its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, time
from functools import partial

from appliance.automations import fields as check
from appliance.automations.cron import LAST_YEAR, Cron
from appliance.automations.device_triggers import DeviceEventTrigger, Devices, DeviceTrigger
from appliance.automations.fields import Fields
from appliance.automations.matcher_fields import take_attribute, take_matcher
from appliance.automations.sun import SunEvent
from appliance.automations.time_triggers import CronTrigger, DateTrigger, Interval, SunTrigger, WallClock
from appliance.automations.triggers import (
    AdapterLifecycle,
    SystemErrorTrigger,
    TimerTrigger,
    Trigger,
    VariableTrigger,
)
from appliance.automations.wall_clock import parse_time
from appliance.errors import Invalid
from appliance.home import values
from appliance.locale import Locale

_NEED_ATTRIBUTE = ("equals", "above", "below", "debounce_secs", "duration_secs")

_WHOSE = ("device_id", "room_id", "group_id")


def parse_trigger(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    """The trigger that a table states, for a home at this place; None where something is wrong, which is noted.

    What can never come after `now` is wrong, too.
    """
    kind = fields.need("type", check.one_of(TRIGGER_KINDS))
    if kind is None:
        return None
    id_ = fields.take("id", check.text)
    trigger = TRIGGER_KINDS[kind](fields, locale, now)
    fields.refuse_others(f"the trigger {kind}")
    return trigger if trigger is None or id_ is None else replace(trigger, id=id_)


def _device(kind: str, fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    devices = _devices(fields)
    attribute = take_attribute(fields)
    matcher = take_matcher(fields, attribute)
    debounce = fields.take("debounce_secs", check.seconds)
    duration = fields.take("duration_secs", check.seconds)
    if fields.has("debounce_secs") and fields.has("duration_secs"):
        fields.fault("duration_secs", "cannot stand beside debounce_secs; choose one wait")
    if not fields.has("attribute"):
        _demand_attribute(kind, fields)
    if devices is None:
        return None
    return DeviceTrigger(
        type=kind,
        devices=devices,
        attribute=attribute,
        matcher=matcher,
        debounce_secs=debounce or None,
        duration_secs=duration or None,
    )


def _devices(fields: Fields) -> Devices | None:
    """Whose event is meant: `device_id`, a text or a list, or `room_id`, or `group_id`."""
    ids = fields.take("device_id", check.texts)
    room_id, group_id = fields.take("room_id", check.text), fields.take("group_id", check.text)
    stated = [name for name in _WHOSE if fields.has(name)]
    if not stated:
        fields.fault("device_id", "is missing")
        return None
    if len(stated) > 1:
        fields.fault(stated[1], f"cannot stand beside {stated[0]}; choose one")
    if ids is None and room_id is None and group_id is None:
        return None
    return Devices(ids=ids or (), room_id=room_id, group_id=group_id)


def _demand_attribute(kind: str, fields: Fields) -> None:
    """Note that an attribute is missing, where the kind or another field needs one."""
    needing = [name for name in _NEED_ATTRIBUTE if fields.has(name)]
    if needing:
        fields.fault("attribute", f"is missing; {', '.join(needing)} must know which attribute is meant")
    elif kind == "weather_state":
        fields.fault("attribute", "is missing")


def _adapter_lifecycle(fields: Fields, locale: Locale, now: datetime) -> Trigger:
    fields.take("event", check.one_of(["started"]))
    return AdapterLifecycle(adapter=fields.take("adapter", check.text))


def _system_error(fields: Fields, locale: Locale, now: datetime) -> Trigger:
    return SystemErrorTrigger(contains=fields.take("contains", check.text))


def _device_event(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    devices, event = _devices(fields), fields.take("event", check.text)
    return None if devices is None else DeviceEventTrigger(devices=devices, event=event)


def _variable(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    name = fields.need("name", check.variable_name)
    matcher = take_matcher(fields, None)
    return None if name is None else VariableTrigger(name=name, matcher=matcher)


def _timer(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    name = fields.need("name", check.timer_name)
    return None if name is None else TimerTrigger(name=name)


def _wall_clock(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    weekdays = fields.take("weekdays", check.weekdays) or frozenset()
    at = fields.take("time", parse_time)
    if fields.has("time"):
        for name in ("hour", "minute"):
            if fields.raw(name) is not None:
                fields.fault(name, "cannot stand beside time; choose one")
    else:
        hour = fields.need("hour", check.whole(0, 23))
        minute = fields.need("minute", check.whole(0, 59))
        at = None if hour is None or minute is None else time(hour, minute)
    return None if at is None else WallClock(at=at, weekdays=weekdays, locale=locale)


def _cron(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    cron = fields.need("expression", _expression)
    zone = fields.take("timezone", check.one_of(["utc", "local"]))
    if cron is None:
        return None
    if cron.next_after(now) is None:
        fields.fault("expression", f"never comes again up to the year {LAST_YEAR}")
    if cron.warning is not None:
        fields.notes.warnings.append(f"{fields.name('expression')}: {cron.warning}")
    return CronTrigger(cron=cron, locale=locale if zone == "local" else None)


def _expression(value: values.Value) -> Cron:
    try:
        return Cron.parse(values.string(value))
    except Invalid as fault:
        raise Invalid(f"is no cron expression: {fault}") from None


def _date(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    on, at = fields.need("on", check.date_on), fields.need("time", parse_time)
    if on is None or at is None:
        return None
    trigger = DateTrigger(year=on[0], month=on[1], day=on[2], at=at, locale=locale)
    if trigger.next_after(now) is None:
        fields.notes.warnings.append(f"{fields.name('on')} {trigger.on} is past: it never comes again")
    return trigger


def _sun(event: SunEvent, fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    offset_mins = fields.take("offset_mins", check.offset) or 0
    weekdays = fields.take("weekdays", check.weekdays) or frozenset()
    if not locale.is_placed:
        fields.fault("type", f"{event} needs locale.latitude and locale.longitude in the configuration")
        return None
    return SunTrigger(sun_event=event, offset_mins=offset_mins, weekdays=weekdays, locale=locale)


def _interval(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    every_secs = fields.need("every_secs", check.period)
    return None if every_secs is None else Interval(every_secs=every_secs)


TRIGGER_KINDS: Mapping[str, Callable[[Fields, Locale, datetime], Trigger | None]] = {
    "device_state_change": partial(_device, "device_state_change"),
    "weather_state": partial(_device, "weather_state"),
    "device_event": _device_event,
    "variable_change": _variable,
    "timer": _timer,
    "adapter_lifecycle": _adapter_lifecycle,
    "system_error": _system_error,
    "wall_clock": _wall_clock,
    "date": _date,
    "cron": _cron,
    "sunrise": partial(_sun, SunEvent.SUNRISE),
    "sunset": partial(_sun, SunEvent.SUNSET),
    "interval": _interval,
}
"""Every `type` of a trigger: it takes its fields, notes what is wrong with them, and returns the value."""
