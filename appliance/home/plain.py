"""Plain: the home's things as plain data, the same for the API and for Lua."""

from __future__ import annotations

from typing import Any

from appliance.clock import timestamp
from appliance.home.model import Device, Group, Room


def device(thing: Device) -> dict[str, Any]:
    """A device."""
    return {**device_head(thing), "last_seen": timestamp(thing.last_seen)}


def device_head(thing: Device) -> dict[str, Any]:
    """A device without `last_seen`, the last of its fields and the one that moves with every sighting."""
    return {
        "id": thing.id,
        "room_id": thing.room_id,
        "kind": thing.kind,
        "attributes": thing.attributes,
        "metadata": thing.metadata,
        "updated_at": timestamp(thing.updated_at),
    }


def room(thing: Room) -> dict[str, Any]:
    """A room."""
    return {"id": thing.id, "name": thing.name}


def group(thing: Group) -> dict[str, Any]:
    """A group."""
    return {"id": thing.id, "name": thing.name, "members": thing.members}
