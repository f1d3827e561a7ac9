"""Converts data of earlier versions at the start. Only this module writes it in the present form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from appliance.automations.automation_states import AutomationStates, wait_record_key
from appliance.automations.definition import AutomationDefinition
from appliance.automations.stored_hashes import hash_text, key_of
from appliance.automations.triggers.device import DeviceTrigger
from appliance.errors import StoreFailed
from appliance.store.record_keys import AUTOMATION_PREFIX
from appliance.store.storage import Storage


async def convert_waits(
    states: AutomationStates, storage: Storage, definitions: Iterable[AutomationDefinition]
) -> None:
    """Store each wait from the record of an automation in the record of its device. In version 0.1, the hash of the
    trigger's `repr` was the key."""
    outdated = {
        id_ for id_, value in storage.items(AUTOMATION_PREFIX) if isinstance(value, dict) and "waits" in value
    }
    changes: dict[str, Any] = {}
    for definition in definitions:
        if definition.id not in outdated:
            continue
        state = states.of(definition.id)
        triggers = [each for each in definition.triggers if isinstance(each, DeviceTrigger)]
        keys = {hash_text(_repr_of(each)): key_of(each) for each in triggers}
        for device_id, waits in state.waits.items():
            state.waits[device_id] = {keys.get(key, key): wait for key, wait in waits.items()}
            changes[wait_record_key(definition.id, device_id)] = {**state.waits[device_id]}
        changes[AUTOMATION_PREFIX + definition.id] = state.encode() or None
    if not changes:
        return
    try:
        await storage.put_many(changes)
    except StoreFailed:  # the next flush tries again
        for key, value in changes.items():
            storage.put_later(key, value)


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
