"""Devices, rooms, and groups as frozen data, and reports of adapters about devices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from appliance.home.command_specs import CommandSpec
from appliance.home.values import Value, last_known, number_in

ONLINE, OFFLINE, UNAVAILABLE = "online", "offline", "unavailable"

AWAY = (OFFLINE, UNAVAILABLE)
"""Device states in which the attributes may be outdated."""

ALARM_ATTRIBUTES = frozenset({"smoke", "water_leak"})
"""Alarm attributes. An alarm without a value is treated as clear. Changes of an alarm fire triggers even if they
happened while the hub was off."""

ALARM_CLASSES = frozenset({"gas", "carbon_monoxide", "safety"})
"""Device classes whose boolean attributes are alarms."""

MAX_LAST_VALUES = 100
"""Maximum number of last values that are stored per device, for attributes that currently have no value."""

LastValues = Mapping[str, tuple[Value, ...]]


class DeviceKind(StrEnum):
    """The kind of a device. `Info.device_class` is more detailed."""

    SENSOR = "Sensor"
    LIGHT = "Light"
    SWITCH = "Switch"
    VIRTUAL = "Virtual"


class Metadata(Struct, frozen=True, kw_only=True):
    """The adapter that reports the device (`source`), and further data from the vendor. The API requires `accuracy`,
    but no adapter sets it."""

    source: str
    accuracy: float | None = None
    vendor_specific: Mapping[str, Value] = field(default_factory=dict)


class Info(Struct, frozen=True, kw_only=True):
    """The vendor's description of a device. Unknown parts are None.

    - `parent_id`: the id of the device that contains this device.
    - `area`: the device's place in the vendor's words.
    - `device_class`: more detailed than `DeviceKind`, such as `cover`, `plug`, or `media_player`.
    """

    manufacturer: str | None = None
    model: str | None = None
    firmware: str | None = None
    serial: str | None = None
    parent_id: str | None = None
    area: str | None = None
    device_class: str | None = None


class Device(Struct, frozen=True, kw_only=True):
    """A device.

    - `updated_at`: the time of the last change of an attribute, in UTC.
    - `last_seen`: the time of the last observation, in UTC.
    - `person_name`, `alias`: chosen by people.
    - `vendor_name`: chosen by the vendor.
    - `commands`: sorted by capability; None until the first observation if an older version stored the device.
    - `last`: earlier values, newest first. If an attribute has no value, `last` contains its last value. If an
      attribute's value is not a number, `last` contains its last number.
    """

    id: str
    room_id: str | None
    kind: DeviceKind
    attributes: Mapping[str, Value]
    metadata: Metadata
    updated_at: datetime
    last_seen: datetime
    person_name: str | None = None
    vendor_name: str | None = None
    alias: str | None = None
    info: Info = field(default_factory=Info)
    commands: tuple[CommandSpec, ...] | None = None
    last: LastValues = field(default_factory=dict)

    def known(self, attribute: str) -> tuple[Value, ...]:
        """Return the attribute's last known value. If the last known value is not a number, also return the last
        number."""
        value, last = self.attributes.get(attribute), self.last.get(attribute, ())
        return last if value is None else (value, *last)

    @property
    def is_virtual(self) -> bool:
        """Whether the device exists only in the hub, which stores each change before the device shows it."""
        return self.metadata.vendor_specific.get("virtual") is True

    def is_alarm(self, attribute: str) -> bool:
        """Return whether the attribute reports a danger, such as smoke, a leak, gas, or an alarm of the adapter."""
        if attribute in ALARM_ATTRIBUTES:
            return True
        listed = self.metadata.vendor_specific.get("alarms")
        if isinstance(listed, list) and attribute in listed:
            return True
        is_of_class = self.info.device_class in ALARM_CLASSES
        return is_of_class and attribute != "state" and isinstance(next(iter(self.known(attribute)), None), bool)

    @property
    def name(self) -> str:
        """Return the name that a person chose, the vendor's name, or the id, in this order."""
        return self.person_name or self.vendor_name or self.id

    @property
    def labels(self) -> Mapping[str, Value] | None:
        """Return the vendor's labels of attributes, or None if the vendor gives no labels."""
        found = self.metadata.vendor_specific.get("labels")
        return found if isinstance(found, dict) and found else None

    @property
    def events(self) -> tuple[str, ...]:
        """Return the names of the events that the vendor announces."""
        return self._announced("events")

    @property
    def announced(self) -> tuple[str, ...]:
        """Return the attributes that the vendor announces, including attributes without a value so far."""
        return self._announced("attributes")

    def _announced(self, key: str) -> tuple[str, ...]:
        found = self.metadata.vendor_specific.get(key)
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def changed_attributes(before: Device | None, after: Device) -> frozenset[str]:
    """Return the names of the attributes that differ, including new and missing attributes."""
    new = after.attributes
    if before is None:
        return frozenset(new)
    old = before.attributes
    differing: list[str] = []
    for name, value in new.items():
        if name not in old or old[name] != value:
            differing.append(name)
    return frozenset(differing if old.keys() <= new.keys() else [*differing, *(old.keys() - new.keys())])


def last_values(before: Device, attributes: Mapping[str, Value], changed: frozenset[str]) -> LastValues:
    """Return `Device.last` after the attributes have changed to `attributes`."""
    last = before.last
    new: dict[str, tuple[Value, ...]] = {}
    for name in changed:
        value = attributes.get(name)
        if name == "state" or (value is not None and name not in last and number_in(value) is not None):
            continue
        kept = last_known(value, before.known(name))
        if kept != last.get(name, ()):
            new[name] = kept
    if new:  # one copy for all names, because a thousand names may change at once
        others = {name: known for name, known in last.items() if name not in new}
        last = {**others, **{name: kept for name, kept in new.items() if kept}}
    return last if len(last) <= MAX_LAST_VALUES else dict(list(last.items())[-MAX_LAST_VALUES:])


class Room(Struct, frozen=True, kw_only=True):
    """A room. The `id` of a room never changes; the `name` is for people. `Layout` contains the room's devices."""

    id: str
    name: str


class Group(Struct, frozen=True, kw_only=True):
    """A named list of devices."""

    id: str
    name: str
    members: tuple[str, ...] = ()


class Observation(Struct, frozen=True, kw_only=True):
    """A vendor's complete current description of a device.

    - `attributes`: the canonical attributes without `state`.
    - `is_available`: false if the device exists, but its bridge or broker cannot reach the device.
    - `wrong`: a sentence for each attribute with an unreadable value. Without a value in `attributes`, it is unknown.
    - `kept`: attributes with earlier values that this report of the device does not contain.
    - `pushed`: attributes that the device has just sent by itself; their values are neither polled nor retained.
    """

    device_id: str
    kind: DeviceKind
    attributes: Mapping[str, Value]
    wrong: Mapping[str, str] = field(default_factory=dict)
    vendor_specific: Mapping[str, Value] = field(default_factory=dict)
    name: str | None = None
    info: Info = field(default_factory=Info)
    commands: tuple[CommandSpec, ...] = ()
    is_available: bool = True
    kept: frozenset[str] = frozenset()
    pushed: frozenset[str] = frozenset()


class Report(Struct, frozen=True, kw_only=True):
    """An adapter's report: observations of some devices, and the ids of all existing devices.

    If a device in `present` has no observation, the device exists, but was unreadable. A device without an
    observation keeps its last state. If `present` is None, the report is incomplete, and all other devices remain
    unchanged.
    """

    adapter: str
    present: frozenset[str] | None = None
    observations: tuple[Observation, ...] = ()
