"""The kinds of trigger: how the fields of each become its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, time
from functools import partial

from msgspec.structs import replace

from appliance.automations import automation_fields as check
from appliance.automations.automation_fields import take_attribute, take_matcher
from appliance.automations.cron import LAST_YEAR, Cron
from appliance.automations.device_triggers import DeviceEventTrigger, Devices, DeviceTrigger
from appliance.automations.sun import SunEvent
from appliance.automations.time_triggers import CronTrigger, DateTrigger, Interval, SunTrigger, WallClock
from appliance.automations.triggers import (
    AdapterLifecycle,
    SystemErrorTrigger,
    TimerTrigger,
    Trigger,
    VariableTrigger,
    WebhookTrigger,
)
from appliance.automations.wall_clock import parse_time
from appliance.errors import Invalid
from appliance.home import values
from appliance.home.texts import hook_id
from appliance.home_locale import Locale
from appliance.tables.checks import one_of, string
from appliance.tables.fields import Table

_NEED_ATTRIBUTE = ("equals", "above", "below", "debounce_secs", "duration_secs")

_WHOSE = ("device_id", "room_id", "group_id")


def parse_trigger(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    """The trigger that a table states, for a home at this place; None where something is wrong, which is noted.

    What can never come after `now` is wrong, too.
    """
    kind = table.need("type", one_of(*TRIGGER_KINDS))
    if kind is None:
        return None
    id_ = table.take("id", check.text)
    trigger = TRIGGER_KINDS[kind](table, locale, now)
    table.refuse_others(f"a field of the trigger {kind}")
    return trigger if trigger is None or id_ is None else replace(trigger, id=id_)


def _device(kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
    devices = _devices(table)
    attribute = take_attribute(table)
    matcher = take_matcher(table, attribute)
    debounce = table.take("debounce_secs", check.seconds)
    duration = table.take("duration_secs", check.seconds)
    if table.has("debounce_secs") and table.has("duration_secs"):
        table.fault("duration_secs", "cannot stand beside debounce_secs; choose one wait")
    if not table.has("attribute"):
        _demand_attribute(kind, table)
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


def _devices(table: Table) -> Devices | None:
    """Whose event is meant: `device_id`, a text or a list, or `room_id`, or `group_id`."""
    ids = table.take("device_id", check.texts)
    room_id, group_id = table.take("room_id", check.text), table.take("group_id", check.text)
    stated = [name for name in _WHOSE if table.has(name)]
    if not stated:
        table.fault("device_id", "is missing")
        return None
    if len(stated) > 1:
        table.fault(stated[1], f"cannot stand beside {stated[0]}; choose one")
    if ids is None and room_id is None and group_id is None:
        return None
    return Devices(ids=ids or (), room_id=room_id, group_id=group_id)


def _demand_attribute(kind: str, table: Table) -> None:
    """Note that an attribute is missing, where the kind or another field needs one."""
    needing = [name for name in _NEED_ATTRIBUTE if table.has(name)]
    if needing:
        table.fault("attribute", f"is missing; {', '.join(needing)} must know which attribute is meant")
    elif kind == "weather_state":
        table.fault("attribute", "is missing")


def _adapter_lifecycle(table: Table, locale: Locale, now: datetime) -> Trigger:
    table.take("event", one_of("started"))
    return AdapterLifecycle(adapter=table.take("adapter", check.text))


def _system_error(table: Table, locale: Locale, now: datetime) -> Trigger:
    return SystemErrorTrigger(contains=table.take("contains", check.text))


def _device_event(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    devices, event = _devices(table), table.take("event", check.text)
    return None if devices is None else DeviceEventTrigger(devices=devices, event=event)


def _variable(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    name = table.need("name", check.variable_name)
    matcher = take_matcher(table, None)
    return None if name is None else VariableTrigger(name=name, matcher=matcher)


def _timer(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    name = table.need("name", check.timer_name)
    return None if name is None else TimerTrigger(name=name)


def _webhook(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    hook = table.need("hook", hook_id)
    return None if hook is None else WebhookTrigger(hook=hook)


def _wall_clock(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    weekdays = table.take("weekdays", check.weekdays) or frozenset()
    at = table.take("time", parse_time)
    if table.has("time"):
        for name in ("hour", "minute"):
            if table.raw(name) is not None:
                table.fault(name, "cannot stand beside time; choose one")
    else:
        hour = table.need("hour", check.integer_from(0, 23))
        minute = table.need("minute", check.integer_from(0, 59))
        at = None if hour is None or minute is None else time(hour, minute)
    return None if at is None else WallClock(at=at, weekdays=weekdays, locale=locale)


def _cron(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    cron = table.need("expression", _expression)
    zone = table.take("timezone", one_of("utc", "local"))
    if cron is None:
        return None
    if cron.next_after(now) is None:
        table.fault("expression", f"never comes again up to the year {LAST_YEAR}")
    if cron.warning is not None:
        table.warn("expression", f"counts days from 1: {cron.warning}")
    return CronTrigger(cron=cron, locale=locale if zone == "local" else None)


def _expression(value: values.Value) -> Cron:
    try:
        return Cron.parse(string(value))
    except Invalid as fault:
        raise Invalid(f"is no cron expression: {fault}") from None


def _date(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    on, at = table.need("on", check.date_on), table.need("time", parse_time)
    if on is None or at is None:
        return None
    trigger = DateTrigger(year=on[0], month=on[1], day=on[2], at=at, locale=locale)
    if trigger.next_after(now) is None:
        table.warn("on", f"{trigger.on} is past: it never comes again")
    return trigger


def _sun(event: SunEvent, table: Table, locale: Locale, now: datetime) -> Trigger | None:
    offset_mins = table.take("offset_mins", check.offset) or 0
    weekdays = table.take("weekdays", check.weekdays) or frozenset()
    if not locale.is_placed:
        table.fault("type", f"{event} needs locale.latitude and locale.longitude in the configuration")
        return None
    return SunTrigger(sun_event=event, offset_mins=offset_mins, weekdays=weekdays, locale=locale)


def _interval(table: Table, locale: Locale, now: datetime) -> Trigger | None:
    every_secs = table.need("every_secs", check.period)
    return None if every_secs is None else Interval(every_secs=every_secs)


TRIGGER_KINDS: Mapping[str, Callable[[Table, Locale, datetime], Trigger | None]] = {
    "device_state_change": partial(_device, "device_state_change"),
    "weather_state": partial(_device, "weather_state"),
    "device_event": _device_event,
    "variable_change": _variable,
    "timer": _timer,
    "webhook": _webhook,
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
