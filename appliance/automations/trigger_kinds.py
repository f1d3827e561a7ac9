"""The kinds of trigger: how the fields of each become its value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, time
from functools import partial

from appliance.automations import fields as check
from appliance.automations.cron import LAST_YEAR, Cron
from appliance.automations.fields import Fields
from appliance.automations.sun import SunEvent
from appliance.automations.triggers import (
    AdapterLifecycle,
    CronTrigger,
    DeviceTrigger,
    Interval,
    SunTrigger,
    SystemErrorTrigger,
    Trigger,
    WallClock,
)
from appliance.automations.wanted_fields import take_attribute, take_wanted
from appliance.errors import Invalid
from appliance.home import values
from appliance.locale import Locale

_NEED_ATTRIBUTE = ("equals", "above", "below", "debounce_secs", "duration_secs")


def _device(kind: str, fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    device_id = fields.need("device_id", check.text)
    attribute = take_attribute(fields)
    wanted = take_wanted(fields, attribute)
    debounce = fields.take("debounce_secs", check.seconds)
    duration = fields.take("duration_secs", check.seconds)
    if fields.has("debounce_secs") and fields.has("duration_secs"):
        fields.fault("duration_secs", "cannot stand beside debounce_secs; choose one wait")
    if not fields.has("attribute"):
        _demand_attribute(kind, fields)
    if device_id is None:
        return None
    return DeviceTrigger(
        type=kind,
        device_id=device_id,
        attribute=attribute,
        wanted=wanted,
        debounce_secs=debounce or None,
        duration_secs=duration or None,
    )


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


def _wall_clock(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    hour = fields.need("hour", check.whole(0, 23))
    minute = fields.need("minute", check.whole(0, 59))
    return None if hour is None or minute is None else WallClock(at=time(hour, minute), locale=locale)


def _cron(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    cron = fields.need("expression", _expression)
    if cron is None:
        return None
    if cron.next_after(now) is None:
        fields.fault("expression", f"never comes again up to the year {LAST_YEAR}")
    if cron.warning is not None:
        fields.notes.warnings.append(f"{fields.name('expression')}: {cron.warning}")
    return CronTrigger(cron=cron)


def _expression(value: values.Value) -> Cron:
    try:
        return Cron.parse(values.string(value))
    except Invalid as fault:
        raise Invalid(f"is no cron expression: {fault}") from None


def _sun(event: SunEvent, fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    offset_mins = fields.take("offset_mins", check.offset) or 0
    if not locale.is_placed:
        fields.fault("type", f"{event} needs locale.latitude and locale.longitude in the configuration")
        return None
    return SunTrigger(sun_event=event, offset_mins=offset_mins, locale=locale)


def _interval(fields: Fields, locale: Locale, now: datetime) -> Trigger | None:
    every_secs = fields.need("every_secs", check.period)
    return None if every_secs is None else Interval(every_secs=every_secs)


TRIGGER_KINDS: Mapping[str, Callable[[Fields, Locale, datetime], Trigger | None]] = {
    "device_state_change": partial(_device, "device_state_change"),
    "weather_state": partial(_device, "weather_state"),
    "adapter_lifecycle": _adapter_lifecycle,
    "system_error": _system_error,
    "wall_clock": _wall_clock,
    "cron": _cron,
    "sunrise": partial(_sun, SunEvent.SUNRISE),
    "sunset": partial(_sun, SunEvent.SUNSET),
    "interval": _interval,
}
"""Every `type` of a trigger: it takes its fields, notes what is wrong with them, and returns the value."""
