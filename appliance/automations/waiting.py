"""Waiting: what each trigger and condition of an automation waits for, in words and with the values of now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from appliance.automations.conditions import Combination, Condition, DeviceState, VariableState
from appliance.automations.definition import AutomationDefinition
from appliance.automations.device_triggers import DeviceEventTrigger, Devices, DeviceTrigger
from appliance.automations.matchers import Anything, Matcher, describe
from appliance.automations.triggers import TimerTrigger, Trigger, VariableTrigger
from appliance.home.registry import Registry
from appliance.home.values import Value

FindVariable = Callable[[str], Value]


def explain_waiting(definition: AutomationDefinition, registry: Registry, find: FindVariable) -> Iterator[str]:
    """A sentence for each trigger and condition about a device or a variable; `find` gives a variable's value."""
    for trigger in definition.triggers:
        if (sentence := _of_trigger(trigger, registry)) is not None:
            yield sentence
    yield from _of_conditions(definition.conditions, registry, find, "")


def _of_trigger(trigger: Trigger, registry: Registry) -> str | None:
    if isinstance(trigger, DeviceEventTrigger):
        return f"waits until {_whose(trigger.devices)} sends {trigger.event or 'any event'}"
    if isinstance(trigger, TimerTrigger):
        return f"waits until the timer '{trigger.name}' is over"
    if isinstance(trigger, VariableTrigger):
        return f"waits until variable {_wanted(trigger.name, trigger.matcher)}"
    if not isinstance(trigger, DeviceTrigger):
        return None
    if trigger.attribute is None:
        return f"waits until {_whose(trigger.devices)} changes"
    wanted = _wanted(trigger.attribute, trigger.matcher)
    secs = "" if trigger.wait_secs is None else f" for {trigger.wait_secs:g} s"
    shown = [_shown(registry, id_, trigger.attribute) for id_ in trigger.devices.ids]
    return f"waits until {_whose(trigger.devices)} shows {wanted}{secs}" + (
        f"; {' and '.join(shown)}" if shown else ""
    )


def _of_conditions(
    conditions: Sequence[Condition], registry: Registry, find: FindVariable, prefix: str
) -> Iterator[str]:
    for number, condition in enumerate(conditions, 1):
        place = f"{prefix}{number}"
        if isinstance(condition, Combination):
            yield from _of_conditions(condition.conditions, registry, find, f"{place}.")
        elif isinstance(condition, DeviceState):
            wanted = _wanted(condition.attribute, condition.matcher)
            shown = _shown(registry, condition.device_id, condition.attribute)
            yield f"condition {place} needs that '{condition.device_id}' shows {wanted}; {shown}"
        elif isinstance(condition, VariableState):
            value = find(condition.name)
            is_now = "is not set" if value is None else f"is {describe(value)}"
            yield f"condition {place} needs variable {_wanted(condition.name, condition.matcher)}; it {is_now}"


def _whose(devices: Devices) -> str:
    if devices.room_id is not None:
        return f"a device in room '{devices.room_id}'"
    if devices.group_id is not None:
        return f"a device of group '{devices.group_id}'"
    return " or ".join(f"'{id_}'" for id_ in devices.ids)


def _wanted(attribute: str, matcher: Matcher) -> str:
    if isinstance(matcher, Anything):
        return f"{attribute} = any value"
    return f"{attribute} {'=' if 'equals' in matcher.fields() else ''} {matcher}".replace("  ", " ")


def _shown(registry: Registry, device_id: str, attribute: str) -> str:
    found = registry.find_devices([device_id])
    if not found:
        return f"there is no device '{device_id}'"
    value = found[0].attributes.get(attribute)
    return f"it shows no {attribute}" if value is None else f"it shows {attribute} = {describe(value)}"
