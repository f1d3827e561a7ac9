"""Converts data of version 0.1 after each start. Only this module reads the old formats."""

from __future__ import annotations

from collections.abc import Iterable

from appliance.automations.automation_states import AutomationStates
from appliance.automations.definition import AutomationDefinition
from appliance.automations.stored_hashes import hash_text, key_of
from appliance.automations.triggers.device import DeviceTrigger


def convert_waits(states: AutomationStates, definitions: Iterable[AutomationDefinition]) -> None:
    """Store each wait under its new key. In version 0.1, the hash of the trigger's `repr` was the key."""
    for definition in definitions:
        if not (waits := states.of(definition.id).waits):
            continue
        triggers = [each for each in definition.triggers if isinstance(each, DeviceTrigger)]
        keys = {hash_text(_repr_of(each)): key_of(each) for each in triggers}
        for key, wait in list(waits.items()):
            old, _, device_id = key.partition(" ")
            if old in keys:
                states.store_wait(definition.id, key, None)
                states.store_wait(definition.id, f"{keys[old]} {device_id}", wait)


def _repr_of(trigger: DeviceTrigger) -> str:
    """Return the `repr` that the trigger had in version 0.1."""
    fields = trigger.requirement.fields()
    compared = ", ".join(f"{name}={value!r}" for name, value in fields.items()).replace("equals=", "value=", 1)
    requirement = f"{('Anything', 'Equal', 'Within')[len(fields)]}({compared})"
    whose = trigger.devices
    devices = f"ids={whose.ids!r}, room_id={whose.room_id!r}, group_id={whose.group_id!r}"
    waits = f"debounce_secs={trigger.debounce_secs!r}, duration_secs={trigger.duration_secs!r}"
    rest = f"devices=Devices({devices}), attribute={trigger.attribute!r}, matcher={requirement}, {waits}"
    return f"DeviceTrigger(type={trigger.type!r}, id={trigger.id!r}, {rest})"
