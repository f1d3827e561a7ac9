"""What can happen in the home: facts in the past tense, published on the bus after they became true."""

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
    """Something that happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStateChanged(Event):
    """A device appeared (`previous` is None) or its attributes changed."""

    device: Device
    previous: Device | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUpdated(Event):
    """A device bears another name, or its vendor says something else of it."""

    device: Device


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent(Event):
    """Something happened at a device that is no state: a button was pressed, a bell rang. Two alike are two.

    `event` is a short name (`single`, `double`, `ring`), `data` a JSON object, maybe empty.
    """

    device_id: str
    event: str
    data: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRemoved(Event):
    """A device vanished at its vendor and left the registry."""

    device_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRoomChanged(Event):
    """A device was put into a room, or (None) out of its room."""

    device_id: str
    room_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomAdded(Event):
    """A room came to be."""

    room: Room


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomUpdated(Event):
    """A room got another name."""

    room: Room


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRemoved(Event):
    """A room is gone."""

    room_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdded(Event):
    """A group came to be."""

    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUpdated(Event):
    """A group got another name."""

    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRemoved(Event):
    """A group is gone."""

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
    """Something failed at run time that its owner should know of."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevoked(Event):
    """A key opens nothing any more. Internal: it concerns nobody but who came with it."""

    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswered(Event):
    """A vendor answered as it should. Internal: it comes with every poll and has no frame.

    `secs` is how long a poll took; None where that is not known.
    """

    adapter: str
    at: datetime
    secs: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterErrored(Event):
    """A poll or command of an adapter failed. Internal: `SystemErrorReported` tells the outside, once."""

    adapter: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnded(Event):
    """A command to one device has ended. Internal: the audit keeps it, the device's own event tells of the effect.

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
    """Something that an adapter told of a device is not what the catalog says and was dropped. Internal: it comes
    once for each device and attribute."""

    adapter: str
    device_id: str
    attribute: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableChanged(Event):
    """A variable of the automations has another value; None is none, before it was set or once it is removed."""

    name: str
    value: Value
    previous: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired(Event):
    """A timer of the automations is over. Internal: what it sets off shows.

    `late_secs` is how late, where it fell due while there was no hub. `stored` is set once its end is on the card:
    until then nothing that it sets off may act; None where there is nothing to wait for.
    """

    name: str
    payload: Value
    due_at: datetime
    late_secs: float | None
    stored: asyncio.Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogReloadStarted(Event):
    """The files of `scenes`, `automations` or `scripts` are being read anew."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogReloaded(Event):
    """What was read anew is sound and in force; `faults` is empty."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogReloadFailed(Event):
    """What was read anew has faults; what was in force before stays so."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int
