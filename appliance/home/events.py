"""Events of the home, published after a change was applied.

The docstring of a streamed event is its public description. The docstrings of all other events contain `Internal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from appliance.errors import Fault
from appliance.home.commands import Command
from appliance.home.model import Device, Group, Room
from appliance.home.values import Value


class Event(Struct, frozen=True, kw_only=True):
    """The base of all events. Events are frozen, so listeners can keep them."""


class DeviceStateChanged(Event, frozen=True, kw_only=True):
    """An attribute of the device changed, or the device is new. `state` contains all attributes."""

    device: Device
    previous: Device | None
    changed: frozenset[str]
    baseline: frozenset[str] = frozenset()
    """Changed attributes that a poll or a retained message reported for the first time since the hub's start."""
    doubtful: frozenset[str] = frozenset()
    """Changed attributes with their first value since the hub's start, if the previous hub was killed. The device may
    have changed several times since its stored value."""

    @property
    def new_values(self) -> Mapping[str, Value]:
        """Return the new values of the changed attributes that have a value."""
        attributes = self.device.attributes
        return {name: attributes[name] for name in attributes if name in self.changed}

    @property
    def gone(self) -> frozenset[str]:
        """Return the changed attributes that no longer have a value."""
        return self.changed.difference(self.device.attributes)

    def known_before(self, name: str) -> tuple[Value, ...]:
        """Return the attribute's last known values before this event; see `Device.known`."""
        return () if self.previous is None else self.previous.known(name)


class AttributesFirstReported(Event, frozen=True, kw_only=True):
    """A restored device reports these attributes for the first time since the hub's start. Internal. The bus
    publishes this event before the change that the same observation causes."""

    device: Device
    attributes: frozenset[str]


class DoubtfulValuesRepeated(Event, frozen=True, kw_only=True):
    """After a power cut or a kill, the device reports the stored values of these attributes. In between, the values
    may have changed and changed back. After safe mode, this event repeats values that changed during safe mode.
    Internal."""

    device: Device
    attributes: frozenset[str]


class DeviceUpdated(Event, frozen=True, kw_only=True):
    """The device's name, alias, or vendor description changed."""

    device: Device


class DeviceDetailsChanged(Event, frozen=True, kw_only=True):
    """The device's kind, commands, or vendor-specific data changed, or the vendor's name that a person's name hides.
    Internal. If `DeviceUpdated` is published for the same observation, this event is not."""

    device: Device
    has_new_commands: bool


class DeviceEvent(Event, frozen=True, kw_only=True):
    """The device sent an event without a state, such as a pressed button. Repeated equal events are published."""

    device_id: str
    event: str
    """A short name, such as `single`, `double`, or `ring`."""
    data: Mapping[str, Value]
    alias: str | None = None
    """The device's alias at the time of the event."""


class DeviceRemoved(Event, frozen=True, kw_only=True):
    """The adapter's full list no longer contains the device, or its adapter section was stopped."""

    device_id: str
    name: str = ""
    is_kept: bool = False
    """Whether the device's values remain stored, because only its section was stopped."""


class DeviceRoomChanged(Event, frozen=True, kw_only=True):
    """The device was moved to another room, or removed from its room (null)."""

    device_id: str
    room_id: str | None
    previous: str | None = None


class RoomAdded(Event, frozen=True, kw_only=True):
    """A room was created."""

    room: Room


class RoomUpdated(Event, frozen=True, kw_only=True):
    """A room was renamed."""

    room: Room


class RoomRemoved(Event, frozen=True, kw_only=True):
    """A room was removed, after a `device.room_changed` for each of its devices."""

    room_id: str


class GroupAdded(Event, frozen=True, kw_only=True):
    """A group was created."""

    group: Group


class GroupUpdated(Event, frozen=True, kw_only=True):
    """A group was renamed."""

    group: Group


class GroupRemoved(Event, frozen=True, kw_only=True):
    """A group was removed."""

    group_id: str


class GroupMembersChanged(Event, frozen=True, kw_only=True):
    """The members of a group, or their order, changed."""

    group_id: str
    members: tuple[str, ...]


class AdapterStarted(Event, frozen=True, kw_only=True):
    """The adapter's first poll ended, successfully or not."""

    adapter: str


class AdapterReady(Event, frozen=True, kw_only=True):
    """The adapter started without waiting for an answer. Internal."""

    adapter: str


class KeyRevoked(Event, frozen=True, kw_only=True):
    """An API key was revoked, which closes its streams. Internal."""

    key_id: str


class AdapterAnswered(Event, frozen=True, kw_only=True):
    """A poll or command succeeded. Internal: every poll causes this event.

    `secs` is the duration of a poll in seconds, or None if it is unknown.
    """

    adapter: str
    at: datetime
    secs: float | None = None


class AdapterProgressed(Event, frozen=True, kw_only=True):
    """The adapter reports the progress of a long start. Internal."""

    adapter: str
    message: str


class AdapterFileChecked(Event, frozen=True, kw_only=True):
    """The hub loaded the Lua file of an adapter. `fault` is the first fault, or None. Internal."""

    adapter: str
    fault: str | None


class AdapterErrored(Event, frozen=True, kw_only=True):
    """A poll or command of an adapter failed. Internal: clients get one `SystemErrorReported` per outage."""

    adapter: str
    message: str
    at: datetime


class CommandStarted(Event, frozen=True, kw_only=True):
    """The hub is about to send a command to a device. Internal: later values of the device may be caused by the
    command."""

    source: str
    device_id: str
    command: Command


class CommandEnded(Event, frozen=True, kw_only=True):
    """A command to a device ended. Internal: this event is for the audit; a device event reports the effect.

    `source` is `device`, `room`, `group`, `scene:<id>`, or `automation:<id>`. `room_id` is the device's room at that
    time.
    """

    at: datetime
    source: str
    room_id: str | None
    device_id: str
    command: Command
    status: str
    message: str | None


class ObservationDropped(Event, frozen=True, kw_only=True):
    """The hub dropped an adapter's value because the catalog does not allow it. Internal. The event is published
    once per device and attribute."""

    adapter: str
    device_id: str
    attribute: str
    reason: str


class DropEnded(Event, frozen=True, kw_only=True):
    """The hub no longer drops values of an attribute, because its announcement was corrected or removed. Internal."""

    adapter: str
    device_id: str
    attribute: str


class VariableChanged(Event, frozen=True, kw_only=True):
    """A variable changed. If the variable was removed, `value` is null."""

    name: str
    value: Value
    previous: Value
    known: tuple[Value, ...] = ()
    """The last known values, newest first: the previous value and, if the previous value is not a number, the last
    number."""


class TimerFired(Event, frozen=True, kw_only=True):
    """A timer of the automations expired, which fires triggers. Internal.

    `late_secs` is the delay in seconds if the timer expired while the hub was stopped or could not fire it.
    """

    name: str
    payload: Value
    due_at: datetime
    late_secs: float | None


class HookCalled(Event, frozen=True, kw_only=True):
    """A hook was called, which fires triggers. Internal.

    `data` is the content of the body, or None without a body. `query` contains the parameters of the URL without the
    API key.
    """

    hook: str
    data: Value
    query: Mapping[str, str]


class SystemErrorReported(Event, frozen=True, kw_only=True):
    """An adapter or the hub has a new error. The event is not repeated while the error lasts."""

    message: str


class CatalogReloadStarted(Event, frozen=True, kw_only=True):
    """The files of `scenes`, `automations`, `scripts` or `adapters` are being reloaded."""

    target: str


class CatalogReloaded(Event, frozen=True, kw_only=True):
    """A reload succeeded, and the new files are in use; `faults` is empty. For `adapters`, `sections` contains the
    changes by section, and `next_start` the keys that take effect at the next start."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int
    sections: Mapping[str, str] = {}
    next_start: tuple[str, ...] = ()


class CatalogReloadFailed(Event, frozen=True, kw_only=True):
    """A reload failed with these faults. The previous files stay in use; for `adapters`, only the faulty files are
    kept."""

    target: str
    loaded_count: int
    faults: tuple[Fault, ...]
    duration_ms: int
    sections: Mapping[str, str] = {}
    next_start: tuple[str, ...] = ()
