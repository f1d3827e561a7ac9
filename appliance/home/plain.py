"""Plain: the home's things as plain data, the same for the API and for Lua."""

from __future__ import annotations

from typing import Any

from appliance.clock import timestamp
from appliance.home.commands import Command
from appliance.home.model import Device, Group, Info, Room


def device(thing: Device) -> dict[str, Any]:
    """A device, with what it can be commanded."""
    return {**device_head(thing), "commands": commands(thing), "last_seen": timestamp(thing.last_seen)}


def device_head(thing: Device) -> dict[str, Any]:
    """A device without `last_seen`, the last of its fields and the one that moves with every sighting."""
    return {
        "id": thing.id,
        "name": thing.name,
        "room_id": thing.room_id,
        "kind": thing.kind,
        "info": info(thing.info),
        "attributes": thing.attributes,
        "metadata": thing.metadata,
        "updated_at": timestamp(thing.updated_at),
    }


def command(thing: Command) -> dict[str, Any]:
    """A command, without the fields that it does not state."""
    stated = {"value": thing.value, "transition_secs": thing.transition_secs}
    fields = {name: value for name, value in stated.items() if value is not None}
    return {"capability": thing.capability, "action": thing.action, **fields}


def info(thing: Info) -> dict[str, str]:
    """What the vendor says of a device; what it does not say is absent."""
    named = {
        "manufacturer": thing.manufacturer,
        "model": thing.model,
        "firmware": thing.firmware,
        "serial": thing.serial,
        "parent_id": thing.parent_id,
        "area": thing.area,
        "class": thing.device_class,
    }
    return {key: value for key, value in named.items() if value is not None}


def commands(thing: Device) -> list[dict[str, Any]]:
    """What a device can be commanded, sorted by capability."""
    return [
        {"capability": spec.capability, "actions": spec.actions, "schema": spec.schema()}
        for spec in thing.commands or ()
    ]


def room(thing: Room) -> dict[str, Any]:
    """A room."""
    return {"id": thing.id, "name": thing.name}


def group(thing: Group) -> dict[str, Any]:
    """A group."""
    return {"id": thing.id, "name": thing.name, "members": thing.members}
