"""Payloads: what the home's things look like as JSON, and what a request's JSON must look like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import is_
from typing import Any

import orjson

from appliance.adapters.dispatch import Outcome
from appliance.api.auth import Role
from appliance.api.shapes import (
    Field,
    Shape,
    body,
    boolean,
    identifier,
    list_of,
    member_of,
    name,
    nullable,
    table,
    text,
)
from appliance.automations.automations import View
from appliance.clock import timestamp
from appliance.errors import ConfigFailed, Fault
from appliance.health import AdapterHealth
from appliance.history import RunEntry
from appliance.home import events, plain
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP
from appliance.home.model import Device
from appliance.lua.executions import Ending
from appliance.lua.reload import Reload
from appliance.scenes import Scene
from appliance.store.keys import Key

LONGEST_LABEL = 100

_ROOM: Shape = {"id": Field(check=identifier), "name": Field(check=name)}

ROOM = body("RoomRequest", _ROOM)
GROUP = body("GroupRequest", {**_ROOM, "members": Field(check=list_of(identifier), required=False)})
MEMBERS = body("MembersRequest", {"members": Field(check=list_of(identifier))})
SWITCH = body("SwitchRequest", {"enabled": Field(check=boolean)})
BY_HAND = body("ByHandRequest", {"trigger_payload": Field(check=nullable(table), required=False)})
ASSIGNMENT = body("AssignmentRequest", {"room_id": Field(check=nullable(identifier))})
KEY = body("KeyRequest", {"label": Field(check=text(LONGEST_LABEL)), "role": Field(check=member_of(Role))})


def key(thing: Key) -> dict[str, Any]:
    """A key as JSON, without its secret, which nobody has."""
    return {
        "id": thing.id,
        "label": thing.label,
        "role": thing.role,
        "created_at": timestamp(thing.created_at),
    }


def outcome(thing: Outcome) -> dict[str, Any]:
    """The result of a command to one device as JSON."""
    return {"device_id": thing.device_id, "status": thing.status, "message": thing.message}


def adapter(health: AdapterHealth) -> dict[str, Any]:
    """An adapter in full as JSON. `health.status` is `unknown` until a poll has ended, then `ok` or `error`."""
    judged = {None: "unknown", True: "ok", False: "error"}[health.is_well]
    return {
        "name": health.name,
        "runtime_status": health.status,
        "health": {"status": judged, "message": health.message, "last_updated": _moment(health.last_updated)},
        "last_success": _moment(health.last_success),
        "last_error": health.last_error,
    }


def catalog() -> dict[str, Any]:
    """The capability catalog as JSON."""
    entries = [
        {
            "domain": entry.domain,
            "key": entry.key,
            "schema": {"type": entry.type, "values": entry.values},
            "read_only": entry.read_only,
            "actions": entry.actions,
            "description": entry.description,
        }
        for entry in CAPABILITIES.values()
    ]
    return {"capabilities": entries, "ownership": OWNERSHIP}


def scene(thing: Scene) -> dict[str, Any]:
    """A scene as JSON."""
    return {"id": thing.id, "name": thing.name, "description": thing.description}


def scene_run(entry: RunEntry) -> dict[str, Any]:
    """What became of one execution of a scene as JSON."""
    return {
        "executed_at": timestamp(entry.executed_at),
        "scene_id": entry.subject,
        "status": entry.status,
        "error": entry.error,
        "results": entry.results,
    }


def automation(thing: View) -> dict[str, Any]:
    """An automation as JSON."""
    return {
        "id": thing.definition.id,
        "name": thing.definition.name,
        "description": thing.definition.description,
        "trigger_type": thing.definition.trigger.type,
        "condition_count": len(thing.definition.conditions),
        "status": "enabled" if thing.is_enabled else "disabled",
        "last_run": _moment(thing.last_run),
        "last_error": thing.last_error,
    }


def automation_result(ending: Ending) -> dict[str, Any]:
    """How a run by hand ended as JSON."""
    return {
        "status": ending.status,
        "error": ending.error,
        "duration_ms": ending.duration_ms,
        "results": ending.results,
    }


def automation_run(entry: RunEntry) -> dict[str, Any]:
    """What became of one trigger of an automation as JSON."""
    return {
        "executed_at": timestamp(entry.executed_at),
        "automation_id": entry.subject,
        "trigger_payload": entry.trigger_payload,
        "status": entry.status,
        "duration_ms": entry.duration_ms,
        "error": entry.error,
        "results": entry.results,
    }


def refusal(failed: ConfigFailed) -> dict[str, Any]:
    """What is wrong with files as JSON."""
    return {"error": str(failed), "errors": [fault(each) for each in failed.faults]}


def fault(thing: Fault) -> dict[str, Any]:
    """What is wrong with a file as JSON; `line` is 0 where it is the whole file."""
    return {"file": thing.file, "line": thing.line, "message": thing.message}


def reload(done: Reload) -> dict[str, Any]:
    """The result of a reload as JSON."""
    return {"status": "ok" if done.is_ok else "error", **_reloaded(done)}


def _reloaded(done: Reload | events.CatalogReloaded | events.CatalogReloadFailed) -> dict[str, Any]:
    return {
        "target": done.target,
        "loaded_count": done.loaded_count,
        "errors": [fault(each) for each in done.faults],
        "duration_ms": done.duration_ms,
    }


class DeviceEncoder:
    """Encodes devices, each once per change: what a mere sighting moves is put behind the bytes that are kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Device, bytes, bytes]] = {}
        self._last: tuple[Sequence[Device], bytes] = ((), b"[]")

    def encode(self, device: Device) -> bytes:
        """The device as JSON."""
        kept = self._kept.get(device.id)
        if kept is not None and kept[0] is device:
            return kept[2]
        head = kept[1] if kept is not None and _differ_in_sighting(kept[0], device) else _encode_head(device)
        whole = b'%b,"last_seen":"%b"}' % (head, timestamp(device.last_seen).encode())
        self._kept[device.id] = (device, head, whole)
        return whole

    def encode_list(self, devices: list[Device]) -> bytes:
        """The devices as a JSON array; asked for the same ones again, it gives the same bytes."""
        if not _are_same(self._last[0], devices):
            self._last = (tuple(devices), b"[%b]" % b",".join([self.encode(device) for device in devices]))
        return self._last[1]


def _are_same(some: Sequence[Device], others: Sequence[Device]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _differ_in_sighting(one: Device, other: Device) -> bool:
    """Whether at most `last_seen` differs. The registry keeps unchanged parts as the same objects."""
    return (
        one.attributes is other.attributes
        and one.metadata is other.metadata
        and one.room_id == other.room_id
        and one.updated_at == other.updated_at
    )


def _encode_head(device: Device) -> bytes:
    """The object without its last field and without its closing brace."""
    return orjson.dumps(plain.device_head(device))[:-1]


RELOADS: Mapping[str, str] = {
    "scenes": "scene.catalog_reload",
    "automations": "automation.catalog_reload",
    "scripts": "scripts.reload",
}
"""How the types of the frames of each target's reloads begin."""

FRAMES: Mapping[type[events.Event], Callable[[Any], dict[str, Any]] | None] = {
    events.DeviceStateChanged: lambda e: {
        "type": "device.state_changed",
        "id": e.device.id,
        "state": e.device.attributes,
    },
    events.DeviceRemoved: lambda e: {"type": "device.removed", "id": e.device_id},
    events.DeviceRoomChanged: lambda e: {
        "type": "device.room_changed",
        "id": e.device_id,
        "room_id": e.room_id,
    },
    events.RoomAdded: lambda e: {"type": "room.added", "room": plain.room(e.room)},
    events.RoomUpdated: lambda e: {"type": "room.updated", "room": plain.room(e.room)},
    events.RoomRemoved: lambda e: {"type": "room.removed", "id": e.room_id},
    events.GroupAdded: lambda e: {"type": "group.added", "group": plain.group(e.group)},
    events.GroupUpdated: lambda e: {"type": "group.updated", "group": plain.group(e.group)},
    events.GroupRemoved: lambda e: {"type": "group.removed", "id": e.group_id},
    events.GroupMembersChanged: lambda e: {
        "type": "group.members_changed",
        "id": e.group_id,
        "members": e.members,
    },
    events.AdapterStarted: lambda e: {"type": "adapter.started", "adapter": e.adapter},
    events.SystemError: lambda e: {"type": "system.error", "message": e.message},
    events.CatalogReloadStarted: lambda e: {"type": f"{RELOADS[e.target]}_started", "target": e.target},
    events.CatalogReloaded: lambda e: {"type": f"{RELOADS[e.target]}ed", **_reloaded(e)},
    events.CatalogReloadFailed: lambda e: {"type": f"{RELOADS[e.target]}_failed", **_reloaded(e)},
    events.KeyRevoked: None,
    events.AdapterAnswered: None,
    events.AdapterFaltered: None,
}
"""The frame of each event on the wire; None for those that stay inside."""


def frame(event: events.Event) -> bytes | None:
    """The event's frame as JSON, or None when it has none."""
    build = FRAMES[type(event)]
    return None if build is None else orjson.dumps(build(event))


def lag_frame(missed: int) -> bytes:
    """The frame that tells a reader how many it lost."""
    message = f"subscriber lagged: {missed} events dropped"
    return orjson.dumps({"type": "system.error", "message": message, "dropped": missed})


def _moment(instant: datetime | None) -> str | None:
    return None if instant is None else timestamp(instant)
