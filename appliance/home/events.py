"""Events of the home, named in the past tense and published after the change was applied.

The docstring of an event with a frame on the stream is its public description; others are marked `Internal`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from appliance.errors import Fault
from appliance.home.commands import Command
from appliance.home.model import Device, Group, Room
from appliance.home.values import Value


class Event(Struct, frozen=True, kw_only=True):
    """The base of all events. Frozen, so that every listener of the bus may keep it."""


class DeviceStateChanged(Event, frozen=True, kw_only=True):
    """An attribute of the device changed, or the device is new; `state` holds all attributes."""

    device: Device
    previous: Device | None
    """The device before; None if it is new."""
    changed: frozenset[str]
    """The attributes that differ, see `changed_attributes`."""
    baseline: frozenset[str] = frozenset()
    """Changed attributes that were polled, or read as retained, for the first time since the start."""

    @property
    def shown(self) -> Mapping[str, Value]:
        """The changed attributes that the device shows, with their values."""
        attributes = self.device.attributes
        return {name: attributes[name] for name in attributes if name in self.changed}

    @property
    def gone(self) -> Iterator[str]:
        """The changed attributes that the device no longer shows."""
        return (name for name in self.changed if name not in self.device.attributes)


class AttributesShown(Event, frozen=True, kw_only=True):
    """A restored device shows these attributes for the first time since the start, new or as before. Internal.

    It comes before the change that the same observation causes.
    """

    device: Device
    attributes: frozenset[str]


class DeviceUpdated(Event, frozen=True, kw_only=True):
    """The device has another name or alias, or its vendor describes it differently."""

    device: Device


class DeviceEvent(Event, frozen=True, kw_only=True):
    """The device sent an event, which is not a state: a pressed button, a bell. Equal events are separate."""

    device_id: str
    event: str
    """A short name: `single`, `double`, `ring`."""
    data: Mapping[str, Value]
    alias: str | None = None
    """The device's alias at that time."""


class DeviceRemoved(Event, frozen=True, kw_only=True):
    """The device is gone from its adapter's full list."""

    device_id: str
    name: str = ""
    """The device's former name."""


class DeviceRoomChanged(Event, frozen=True, kw_only=True):
    """The device is in another room, or, with null, in no room."""

    device_id: str
    room_id: str | None
    previous: str | None = None
    """The room before."""


class RoomAdded(Event, frozen=True, kw_only=True):
    """A room was made."""

    room: Room


class RoomUpdated(Event, frozen=True, kw_only=True):
    """A room has another name."""

    room: Room


class RoomRemoved(Event, frozen=True, kw_only=True):
    """A room was removed, after a `device.room_changed` for each of its devices."""

    room_id: str


class GroupAdded(Event, frozen=True, kw_only=True):
    """A group was made."""

    group: Group


class GroupUpdated(Event, frozen=True, kw_only=True):
    """A group has another name."""

    group: Group


class GroupRemoved(Event, frozen=True, kw_only=True):
    """A group was removed."""

    group_id: str


class GroupMembersChanged(Event, frozen=True, kw_only=True):
    """A group has other members, or the same ones in another order."""

    group_id: str
    members: tuple[str, ...]


class AdapterStarted(Event, frozen=True, kw_only=True):
    """The adapter's first poll has ended, whether its devices were reached or not."""

    adapter: str


class AdapterReady(Event, frozen=True, kw_only=True):
    """The adapter has started and needs no answer for that. Internal."""

    adapter: str


class KeyRevoked(Event, frozen=True, kw_only=True):
    """A key was revoked. Internal: it closes the streams that were opened with the key."""

    key_id: str


class AdapterAnswered(Event, frozen=True, kw_only=True):
    """A poll or command was answered well. Internal: it comes with every poll.

    `secs` is how long a poll took, in seconds; None if that is not known.
    """

    adapter: str
    at: datetime
    secs: float | None = None


class AdapterProgressed(Event, frozen=True, kw_only=True):
    """How far a long start of an adapter is, in words. Internal."""

    adapter: str
    message: str


class AdapterFileChecked(Event, frozen=True, kw_only=True):
    """The Lua file of an adapter was loaded; `fault` is its first fault, or None. Internal."""

    adapter: str
    fault: str | None


class AdapterErrored(Event, frozen=True, kw_only=True):
    """A poll or command of an adapter failed. Internal: `SystemErrorReported` is published once for an outage."""

    adapter: str
    message: str
    at: datetime


class CommandStarted(Event, frozen=True, kw_only=True):
    """A command to one device is about to be sent. Internal: later values of the device can be its effect."""

    source: str
    device_id: str
    command: Command


class CommandEnded(Event, frozen=True, kw_only=True):
    """A command to one device has ended. Internal: for the audit; the device's own event shows the effect.

    `source` is `device`, `room`, `group`, `scene:<id>` or `automation:<id>`; `room_id` is the device's room then.
    """

    at: datetime
    source: str
    room_id: str | None
    device_id: str
    command: Command
    status: str
    message: str | None


class ObservationDropped(Event, frozen=True, kw_only=True):
    """A value that an adapter reported is not allowed by the catalog and was dropped. Internal.

    It comes once for each device and attribute.
    """

    adapter: str
    device_id: str
    attribute: str
    reason: str


class DropEnded(Event, frozen=True, kw_only=True):
    """An adapter no longer drops an attribute: its announcement is corrected or gone. Internal."""

    adapter: str
    device_id: str
    attribute: str


class VariableChanged(Event, frozen=True, kw_only=True):
    """A variable of the automations has another value; null if it was removed."""

    name: str
    value: Value
    previous: Value
    known: tuple[Value, ...] = ()
    """The previous value, also across removals; after a value that is not a number, also the last number."""


class TimerFired(Event, frozen=True, kw_only=True):
    """A timer of the automations fell due. Internal: it fires triggers.

    `late_secs` is how late in seconds, if it fell due while the hub was stopped or could not fire it.
    """

    name: str
    payload: Value
    due_at: datetime
    late_secs: float | None


class HookCalled(Event, frozen=True, kw_only=True):
    """A hook was called. Internal: it fires triggers.

    `data` is the content of the body, None without one; `query` is from the address, without a key.
    """

    hook: str
    data: Value
    query: Mapping[str, str]


class SystemErrorReported(Event, frozen=True, kw_only=True):
    """An error of an adapter or of the hub: sent once when it begins, and not again while it lasts."""

    message: str


class CatalogReloadStarted(Event, frozen=True, kw_only=True):
    """The files of `scenes`, `automations`, `scripts` or `adapters` are being reloaded."""

    target: str


class CatalogReloaded(Event, frozen=True, kw_only=True):
    """A reload succeeded, and its files are in force; `faults` is empty.

    Of `adapters`, `sections` are the changes by section, `next_start` the keys that wait for the next start.
    """

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int
    sections: Mapping[str, str] = {}
    next_start: tuple[str, ...] = ()


class CatalogReloadFailed(Event, frozen=True, kw_only=True):
    """A reload failed with these faults; the previous files stay in force, for `adapters` each file on its own."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int
    sections: Mapping[str, str] = {}
    next_start: tuple[str, ...] = ()
