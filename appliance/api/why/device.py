"""Explains a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import orjson

from appliance.api.figures import started_at
from appliance.api.why.adapter import describe_adapter
from appliance.api.why.explanation import LATEST, ONE, Decision, Explanation
from appliance.automations.conditions.combine import list_nested
from appliance.automations.definition import AutomationDefinition
from appliance.clock import timestamp
from appliance.event_loop import in_steps
from appliance.history.device_history import Resolution
from appliance.home.model import OFFLINE, UNAVAILABLE, Device
from appliance.hub import Hub
from appliance.log_buffer import value_text
from appliance.store.record_keys import STATE_PREFIX
from appliance.tables.checks import rounded

WHY_AWAY: Mapping[Any, str] = {
    OFFLINE: ": it does not answer",
    UNAVAILABLE: ": its bridge or broker is up, but reports the device as unavailable",
}


async def explain_device(hub: Hub, id_: str) -> Explanation:
    """Raise `NotFound` for an unknown id."""
    device = hub.registry.get_device(id_)
    state = device.attributes.get("state")
    commands = await _list_commands(hub, id_)
    summary = [
        f"it has been {state} since {timestamp(state_since(hub, device))}" + WHY_AWAY.get(state, ""),
        *([_describe_last_seen(hub, device)] if state in WHY_AWAY else []),
        *describe_adapter(hub.health.get_adapter(device.metadata.source), id_),
        *(f"the last command came at {each.at}: {each.sentence}" for each in commands[:1]),
        *await _list_automations(hub, device),
    ]
    return Explanation(kind="device", id=id_, summary=summary, decisions=[*commands, *await _list_states(hub, id_)])


def state_since(hub: Hub, device: Device) -> datetime:
    """Return the time at which the device went online or offline, if it is known.

    If a device was online when the hub stopped and has been offline since then, return the start of the hub.
    """
    entries = hub.history.devices.list_values(device.id, "state", ONE)
    if entries:
        # the clock may have been wrong before the hub's last start
        return max(entries[0].observed_at, started_at(hub))
    stored = orjson.loads(hub.store.document.get(STATE_PREFIX + device.id) or b"{}")
    was_offline = stored.get("is", {}).get("state") == device.attributes.get("state")
    return device.updated_at if was_offline else started_at(hub)


def _describe_last_seen(hub: Hub, device: Device) -> str:
    """Return a sentence with the time of the device's last message since the hub's start, if any."""
    if device.last_seen < started_at(hub):
        return "no message has arrived since the hub started"
    return f"its last message arrived at {timestamp(device.last_seen)}"


async def _list_automations(hub: Hub, device: Device) -> list[str]:
    """Return a sentence for each automation that has a condition on the device, or a trigger for the device, the
    device's room, or one of the device's groups."""
    things: dict[tuple[str, str | None], str] = {
        ("device", device.id): "it",
        ("device", device.alias): "it",
        ("room", device.room_id): f"its room '{device.room_id}'",
    }
    groups = [group for group in hub.registry.layout.groups.values() if device.id in group.members]
    things |= {("group", group.id): f"its group '{group.id}'" for group in groups}
    found: list[str] = []
    definitions = hub.automations.catalog.list_definitions()
    await in_steps(hub.clock, map(found.extend, (_describe_uses(definition, things) for definition in definitions)))
    return found


def _describe_uses(definition: AutomationDefinition, things: Mapping[tuple[str, str | None], str]) -> Iterator[str]:
    named = [name for trigger in definition.triggers for name in trigger.names()]
    asked = [name for each in list_nested(definition.conditions) for name in each.names()]
    for verb, names in (("listens to", named), ("has a condition on", asked)):
        for thing in dict.fromkeys(things[each.subject] for each in names if each.subject in things):
            yield f"automation '{definition.id}' {verb} {thing}"


async def _list_commands(hub: Hub, device_id: str) -> list[Decision]:
    commands: list[Decision] = []

    def add(entry: dict[str, Any]) -> bool:
        command = entry["command"]
        value = f" {value_text(rounded(command['value']))}" if "value" in command else ""
        ended = entry["status"] if entry["message"] is None else f"{entry['status']}, {entry['message']}"
        asked = f"{entry['source']} sent {command['capability']} {command['action']}{value}"
        commands.append(Decision(entry["recorded_at"], f"{asked}: {ended}"))
        return True

    await hub.history.read_commands(LATEST, device_id, add)
    return commands


async def _list_states(hub: Hub, device_id: str) -> list[Decision]:
    found = await hub.history.attributes.list_values(device_id, "state", LATEST, Resolution.RAW)
    return [Decision(timestamp(entry.observed_at), f"it went {entry.value}") for entry in found.entries]
