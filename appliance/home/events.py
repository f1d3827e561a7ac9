"""Events of the home, named in the past tense and published after the change was applied.

The docstring of one that has no frame on the event stream says `Internal`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from appliance.errors import Fault
from appliance.home.commands import Command
from appliance.home.model import Device, Group, Room
from appliance.home.values import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all events. Frozen, so that every listener of the bus may keep it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStateChanged(Event):
    """A device appeared (`previous` is None) or its attributes changed."""

    device: Device
    previous: Device | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUpdated(Event):
    """A device has another name or other info."""

    device: Device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent(Event):
    """Something happened at a device that is no state: a button was pressed, a bell rang. Equal events are repeated.

    `event` is a short name (`single`, `double`, `ring`), `data` a JSON object, maybe empty.
    """

    device_id: str
    event: str
    data: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRemoved(Event):
    """A device is gone at its vendor and was removed from the registry."""

    device_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRoomChanged(Event):
    """A device was put into a room, or (None) out of its room."""

    device_id: str
    room_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomAdded(Event):
    """A room was created."""

    room: Room


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomUpdated(Event):
    """A room was renamed."""

    room: Room


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRemoved(Event):
    """A room was removed."""

    room_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdded(Event):
    """A group was created."""

    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUpdated(Event):
    """A group was renamed."""

    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRemoved(Event):
    """A group was removed."""

    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembersChanged(Event):
    """A group has other members, or the same in another order."""

    group_id: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterStarted(Event):
    """An adapter's first poll has ended, whether it was answered or not."""

    adapter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemErrorReported(Event):
    """Something failed at run time that the owner of the home should know."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevoked(Event):
    """A key was revoked. Internal: it closes the streams that were opened with the key."""

    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswered(Event):
    """A poll or command was answered well. Internal: it comes with every poll.

    `secs` is how long a poll took, in seconds; None where that is not known.
    """

    adapter: str
    at: datetime
    secs: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterErrored(Event):
    """A poll or command of an adapter failed. Internal: `SystemErrorReported` is published once for an outage."""

    adapter: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnded(Event):
    """A command to one device has ended. Internal: for the audit; the device's own event shows the effect.

    `source` is `device`, `room`, `group`, `scene:<id>` or `automation:<id>`; `room_id` is where the device was.
    """

    at: datetime
    source: str
    room_id: str | None
    device_id: str
    command: Command
    status: str
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationDropped(Event):
    """A value that an adapter reported is not allowed by the catalog and was dropped. Internal.

    It comes once for each device and attribute.
    """

    adapter: str
    device_id: str
    attribute: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableChanged(Event):
    """A variable of the automations has another value; None before it was set and after it was removed."""

    name: str
    value: Value
    previous: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired(Event):
    """A timer of the automations fell due. Internal: it fires triggers.

    `late_secs` is how late in seconds, where it fell due while the hub was stopped. `stored` is set once its end is
    stored: what it triggers must wait for that; None where there is nothing to wait for.
    """

    name: str
    payload: Value
    due_at: datetime
    late_secs: float | None
    stored: asyncio.Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogReloadStarted(Event):
    """The files of `scenes`, `automations` or `scripts` are being reloaded."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogReloaded(Event):
    """A reload succeeded, and what it read is in force; `faults` is empty."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogReloadFailed(Event):
    """A reload failed with these faults; what was in force before stays in force."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int
