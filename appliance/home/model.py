"""Devices, rooms and groups as frozen data, and the reports that adapters make about devices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from appliance.home.commands import CommandSpec
from appliance.home.values import Value, last_known, number_in

ALARM_ATTRIBUTES = frozenset({"smoke", "water_leak"})
"""Attributes that count as clear until they have a value, and whose changes count even if the hub was off."""

ALARM_CLASSES = frozenset({"gas", "carbon_monoxide", "safety"})
"""Classes of devices whose boolean attributes are alarms too."""

MAX_LAST_VALUES = 100
"""Attributes per device whose last value is kept after the value is lost."""

LastValues = Mapping[str, tuple[Value, ...]]


class DeviceKind(StrEnum):
    """The kind of a device."""

    SENSOR = "Sensor"
    LIGHT = "Light"
    SWITCH = "Switch"
    VIRTUAL = "Virtual"


class Metadata(Struct, frozen=True, kw_only=True):
    """Data in addition to the canonical state: the adapter of the device, and the vendor's data."""

    source: str
    accuracy: float | None = None
    vendor_specific: Mapping[str, Value] = field(default_factory=dict)


class Info(Struct, frozen=True, kw_only=True):
    """The vendor's description of a device; absent parts are None.

    `parent_id` is the device that contains this one, `area` its place in the vendor's words, `device_class` its kind
    in more detail than `DeviceKind` (`cover`, `plug`, `media_player` …).
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

    `updated_at` is the time of the last change of an attribute, `last_seen` of the last observation; both in UTC.
    People chose `person_name` and `alias`; `vendor_name` comes from the vendor. `commands` are sorted by capability;
    None while they are unknown, after a start from data of an earlier version.

    `last` holds values from before a gap, newest first: the last value of an attribute that has none now, and the
    last number of an attribute whose newest value is not a number.
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
        """Return the attribute's last value, across gaps; if that is not a number, also its last number."""
        value, last = self.attributes.get(attribute), self.last.get(attribute, ())
        return last if value is None else (value, *last)

    def is_alarm(self, attribute: str) -> bool:
        """Return whether the attribute reports a danger: smoke, a leak, gas, or one that the adapter lists."""
        if attribute in ALARM_ATTRIBUTES:
            return True
        listed = self.metadata.vendor_specific.get("alarms")
        if isinstance(listed, list) and attribute in listed:
            return True
        is_of_class = self.info.device_class in ALARM_CLASSES
        return is_of_class and attribute != "state" and isinstance(next(iter(self.known(attribute)), None), bool)

    @property
    def name(self) -> str:
        """The person's name, otherwise the vendor's, otherwise the id."""
        return self.person_name or self.vendor_name or self.id

    @property
    def labels(self) -> Mapping[str, Value] | None:
        """The vendor's labels by attribute, if they add to the attribute names; otherwise None."""
        found = self.metadata.vendor_specific.get("labels")
        return found if isinstance(found, dict) and found else None

    @property
    def events(self) -> tuple[str, ...]:
        """The events that the vendor announces."""
        found = self.metadata.vendor_specific.get("events")
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def changed_attributes(before: Device | None, after: Device) -> frozenset[str]:
    """Return the attributes that differ, including new and missing ones."""
    new = after.attributes
    if before is None:
        return frozenset(new)
    old = before.attributes
    return frozenset([name for name in new if name not in old or old[name] != new[name]]).union(
        old.keys() - new.keys()
    )


def last_values(before: Device, attributes: Mapping[str, Value], changed: frozenset[str]) -> LastValues:
    """Return `Device.last` for a device that now shows these attributes."""
    last = before.last
    for name in changed:
        value = attributes.get(name)
        if name == "state" or (value is not None and name not in last and number_in(value) is not None):
            continue
        kept = last_known(value, before.known(name))
        if kept != last.get(name, ()):
            others = {each: known for each, known in last.items() if each != name}
            last = {**others, name: kept} if kept else others
    return last if len(last) <= MAX_LAST_VALUES else dict(list(last.items())[-MAX_LAST_VALUES:])


class Room(Struct, frozen=True, kw_only=True):
    """A room: its `id` never changes, its `name` is for people. `Layout` has its devices."""

    id: str
    name: str


class Group(Struct, frozen=True, kw_only=True):
    """A named set of devices, in the given order."""

    id: str
    name: str
    members: tuple[str, ...] = ()


class Observation(Struct, frozen=True, kw_only=True):
    """One device in full, as its vendor described it at this moment: its canonical attributes without `state`.

    If `is_available` is false, the device exists, but its bridge or broker does not reach it. `wrong` has a sentence
    for each attribute whose value cannot be read; these attributes stay as they were.

    `kept` names attributes that repeat stored values: the device has not reported them since the start. `pushed`
    names attributes that the device just sent by itself: they were neither polled nor retained.
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
    """The observations of an adapter: some of its devices in full, and the ids of all existing devices.

    A device in `present` without an observation exists and was unreadable: it keeps its last state. If `present` is
    None, the report is incomplete, and other devices stay as they are.
    """

    adapter: str
    present: frozenset[str] | None = None
    observations: tuple[Observation, ...] = ()
