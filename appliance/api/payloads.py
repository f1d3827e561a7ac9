"""Payloads: what the home's things look like as JSON, and what a request's JSON must look like."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import is_
from typing import Any

import orjson

from appliance.adapters.dispatch import Outcome
from appliance.clock import timestamp
from appliance.errors import Invalid
from appliance.health import AdapterHealth
from appliance.home import events
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP
from appliance.home.model import Device, Group, Room
from appliance.home.values import shown

LONGEST_ID = 256
LONGEST_NAME = 1000

_BLANKS = "\t\n\v\f\r " + "".join(each for each in map(chr, range(0xA0, 0x3001)) if each.isspace())
"""White space that may stand around a text. Python also counts some control characters as such."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a request: how its value is checked, and whether it may be missing."""

    check: Callable[[Any], Any]
    required: bool = True


Shape = Mapping[str, Field]
"""The fields of a request's object. Others that it may hold are ignored."""


def parse(shape: Shape, raw: Any) -> dict[str, Any]:
    """The fields of the object, checked; one that is missing and may be is None. `Invalid` names the first fault."""
    if not isinstance(raw, dict):
        raise Invalid(f"the body must be a JSON object, not {shown(raw)}")
    return {name: _parse_field(name, field, raw) for name, field in shape.items()}


def _parse_field(name: str, field: Field, raw: dict[str, Any]) -> Any:
    if name not in raw:
        if field.required:
            raise Invalid(f"{name} is missing")
        return None
    try:
        return field.check(raw[name])
    except Invalid as fault:
        raise Invalid(f"{name} {fault}") from None


def text(longest: int) -> Callable[[Any], str]:
    """A check for a non-empty string of at most so many characters, without control characters."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise Invalid(f"must be a string, not {shown(value)}")
        if _CONTROL.search(stripped := value.strip(_BLANKS)) is not None:
            raise Invalid("must not contain control characters")
        if not 1 <= len(stripped) <= longest:
            raise Invalid(f"must have 1 to {longest} characters, not {len(stripped)}")
        return stripped

    return check


def nullable(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same check, for a value that may also be null."""
    return lambda value: None if value is None else check(value)


def list_of(check: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A check for an array whose items all pass the given one."""

    def check_item(index: int, item: Any) -> Any:
        try:
            return check(item)
        except Invalid as fault:
            raise Invalid(f"at index {index} {fault}") from None

    def check_all(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Invalid(f"must be an array, not {shown(value)}")
        return tuple(check_item(index, item) for index, item in enumerate(value))

    return check_all


identifier = text(LONGEST_ID)

ROOM: Shape = {"id": Field(check=identifier), "name": Field(check=text(LONGEST_NAME))}
GROUP: Shape = {**ROOM, "members": Field(check=list_of(identifier), required=False)}
MEMBERS: Shape = {"members": Field(check=list_of(identifier))}
ASSIGNMENT: Shape = {"room_id": Field(check=nullable(identifier))}


def room(thing: Room) -> dict[str, Any]:
    """A room as JSON."""
    return {"id": thing.id, "name": thing.name}


def group(thing: Group) -> dict[str, Any]:
    """A group as JSON."""
    return {"id": thing.id, "name": thing.name, "members": thing.members}


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
    fields = {
        "id": device.id,
        "room_id": device.room_id,
        "kind": device.kind,
        "attributes": device.attributes,
        "metadata": device.metadata,
        "updated_at": timestamp(device.updated_at),
    }
    return orjson.dumps(fields)[:-1]


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
    events.RoomAdded: lambda e: {"type": "room.added", "room": room(e.room)},
    events.RoomUpdated: lambda e: {"type": "room.updated", "room": room(e.room)},
    events.RoomRemoved: lambda e: {"type": "room.removed", "id": e.room_id},
    events.GroupAdded: lambda e: {"type": "group.added", "group": group(e.group)},
    events.GroupUpdated: lambda e: {"type": "group.updated", "group": group(e.group)},
    events.GroupRemoved: lambda e: {"type": "group.removed", "id": e.group_id},
    events.GroupMembersChanged: lambda e: {
        "type": "group.members_changed",
        "id": e.group_id,
        "members": e.members,
    },
    events.AdapterStarted: lambda e: {"type": "adapter.started", "adapter": e.adapter},
    events.SystemError: lambda e: {"type": "system.error", "message": e.message},
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
