"""Waiting: what each trigger and condition of an automation waits for, in words and with the values of now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from appliance.automations.automation_fields import WEEKDAYS
from appliance.automations.conditions import (
    Combination,
    Condition,
    DateRange,
    DeviceState,
    PlaceState,
    TimeWindow,
    VariableState,
    Weekday,
    describe_seen,
)
from appliance.automations.definition import AutomationDefinition
from appliance.automations.device_triggers import DeviceEventTrigger, Devices, DeviceTrigger
from appliance.automations.home_view import HomeView
from appliance.automations.matchers import Anything, Matcher, describe
from appliance.automations.time_triggers import (
    CronTrigger,
    DateTrigger,
    Interval,
    SunTrigger,
    TimedTrigger,
    WallClock,
)
from appliance.automations.triggers import (
    AdapterLifecycle,
    SystemErrorTrigger,
    TimerTrigger,
    Trigger,
    VariableTrigger,
    WebhookTrigger,
)
from appliance.clock import timestamp


def explain_waiting(definition: AutomationDefinition, home: HomeView, instant: datetime | None) -> Iterator[str]:
    """A sentence for each trigger and condition; `instant` is None while the clock is not trusted."""
    for trigger in definition.triggers:
        yield _of_trigger(trigger, home, instant)
    yield from _of_conditions(definition.conditions, home, instant, "")


def _of_trigger(trigger: Trigger, home: HomeView, instant: datetime | None) -> str:
    match trigger:
        case DeviceTrigger():
            return f"waits until {_change(trigger)}{_shown(trigger, home)}"
        case DeviceEventTrigger(devices=devices, event=event):
            return f"waits until {_whose(devices)} sends {event or 'any event'}"
        case VariableTrigger(name=name, matcher=matcher):
            value = home.get_variable(name)
            shown = "is not set" if value is None else f"is {describe(value)}"
            return f"waits until variable {_wanted(name, matcher)}; it {shown}"
        case TimerTrigger(name=name):
            return f"waits until the timer '{name}' is over"
        case WebhookTrigger(hook=hook):
            return f"waits until somebody calls the hook '{hook}'"
        case AdapterLifecycle(adapter=adapter):
            return f"waits until {'an adapter' if adapter is None else f'the adapter {adapter!r}'} starts"
        case SystemErrorTrigger(contains=contains):
            return "waits until something fails" + ("" if contains is None else f" with {contains!r} in its message")
        case Interval(every_secs=secs):
            return f"waits for its interval, every {secs:g} s"
    return f"waits for {_schedule(trigger)}; {_next(trigger, instant)}"


def _schedule(trigger: TimedTrigger) -> str:
    match trigger:
        case WallClock(at=at, weekdays=days):
            return f"{at:%H:%M}{_days(days)}"
        case SunTrigger(offset_mins=mins, weekdays=days):
            offset = f" {mins:+d} min" if mins else ""
            return f"{trigger.type}{offset}{_days(days)}"
        case CronTrigger(cron=cron, locale=locale):
            return f"the cron expression '{cron.expression}' ({'UTC' if locale is None else locale.timezone.key})"
        case DateTrigger(at=at):
            return f"{trigger.on} at {at:%H:%M}"
    return trigger.type


def _days(days: frozenset[int]) -> str:
    return f" on {', '.join(WEEKDAYS[day] for day in sorted(days))}" if days else ""


def _next(trigger: TimedTrigger, instant: datetime | None) -> str:
    if instant is None:
        return "the clock is not trusted yet"
    due = trigger.next_after(instant)
    return "it never comes again" if due is None else f"next {timestamp(due)}"


def _of_conditions(
    conditions: Sequence[Condition], home: HomeView, instant: datetime | None, prefix: str
) -> Iterator[str]:
    for number, condition in enumerate(conditions, 1):
        outcome = condition.holds(home, instant)
        if outcome.holds:
            now = f"it holds{describe_seen(condition, home, instant)}"
        elif isinstance(condition, Combination):
            now = "it does not hold"
        else:
            now = f"it does not hold: {outcome.reason.partition(', needs ')[0]}"
        yield f"condition {prefix}{number} needs {_needs(condition)}; {now}"
        if isinstance(condition, Combination):
            yield from _of_conditions(condition.conditions, home, instant, f"{prefix}{number}.")


def _needs(condition: Condition) -> str:
    match condition:
        case DeviceState(device_id=device_id, attribute=attribute, matcher=matcher, for_secs=secs):
            return f"that '{device_id}' shows {_wanted(attribute, matcher)}{f' for {secs:g} s' if secs else ''}"
        case PlaceState(kind=kind, place_id=place_id):
            return f"{condition.bounds} devices in {kind} '{place_id}'"
        case VariableState(name=name, matcher=matcher):
            return f"variable {_wanted(name, matcher)}"
        case Weekday(days=days):
            return f"a {', '.join(WEEKDAYS[day] for day in sorted(days))}"
        case DateRange():
            return f"a date from {condition}"
        case Combination(type=kind, conditions=conditions):
            return f"{kind} of its {len(conditions)}"
        case TimeWindow():
            return f"a time from {condition}"
    return f"a time {condition}"


def _change(trigger: DeviceTrigger) -> str:
    whose = _whose(trigger.devices)
    if trigger.attribute is None:
        return f"{whose} changes"
    secs = "" if trigger.wait_secs is None else f" for {trigger.wait_secs:g} s"
    return f"{whose} shows {_wanted(trigger.attribute, trigger.matcher)}{secs}"


def _whose(devices: Devices) -> str:
    if devices.room_id is not None:
        return f"a device in room '{devices.room_id}'"
    if devices.group_id is not None:
        return f"a device of group '{devices.group_id}'"
    return " or ".join(f"'{id_}'" for id_ in devices.ids)


def _wanted(attribute: str, matcher: Matcher) -> str:
    if isinstance(matcher, Anything):
        return f"{attribute} = any value"
    return f"{attribute} {'= ' if 'equals' in matcher.fields() else ''}{matcher}"


def _shown(trigger: DeviceTrigger, home: HomeView) -> str:
    """What those of the trigger's devices show now that it names by their ids."""
    attribute, sentences = trigger.attribute, []
    for device_id in trigger.devices.ids:
        whose = "it" if len(trigger.devices.ids) == 1 else f"'{device_id}'"
        found = home.registry.find_devices([device_id])
        if not found:
            sentences.append(f"there is no device '{device_id}'")
        elif attribute is not None:
            value = found[0].attributes.get(attribute)
            names = ", ".join(sorted(each for each in found[0].attributes if each != "state")) or "nothing"
            shown = f"no {attribute}, but {names}" if value is None else f"{attribute} = {describe(value)}"
            sentences.append(f"{whose} shows {shown}")
    return "".join(f"; {each}" for each in sentences)
