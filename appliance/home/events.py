"""What can happen in the home: facts in the past tense, published on the bus after they became true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from appliance.errors import Fault
from appliance.home.model import Device, Group, Room


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStateChanged(Event):
    """A device appeared (`previous` is None) or its attributes changed."""

    device: Device
    previous: Device | None


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
class SystemError(Event):
    """Something failed at run time that its owner should know of."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRevoked(Event):
    """A key opens nothing any more. Internal: it concerns nobody but who came with it."""

    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAnswered(Event):
    """A vendor answered as it should. Internal: it comes with every poll and has no frame."""

    adapter: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterFaltered(Event):
    """A poll or command of an adapter failed. Internal: `SystemError` tells the outside, once."""

    adapter: str
    message: str
    at: datetime


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
