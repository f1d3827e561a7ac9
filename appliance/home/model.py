"""Devices, rooms and groups as frozen data; and reports, which adapters make of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct, field

from appliance.home.commands import CommandSpec
from appliance.home.values import Value


class DeviceKind(StrEnum):
    """The kind of a device."""

    SENSOR = "Sensor"
    LIGHT = "Light"
    SWITCH = "Switch"
    VIRTUAL = "Virtual"


class Metadata(Struct, frozen=True, kw_only=True):
    """What is known of a device beside its canonical state: the adapter it came from and the vendor's data."""

    source: str
    accuracy: float | None = None
    vendor_specific: Mapping[str, Value] = field(default_factory=dict)


class Info(Struct, frozen=True, kw_only=True):
    """What the vendor says of a device beside its state; None where it says nothing.

    `parent_id` is the device that this one is a part of, `area` where the vendor says that it stands,
    `device_class` what it is in more words than `DeviceKind` has (`cover`, `plug`, `media_player` …).
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

    @property
    def name(self) -> str:
        """What people call it, else what the vendor does, else its id."""
        return self.person_name or self.vendor_name or self.id

    @property
    def labels(self) -> Mapping[str, Value] | None:
        """What the vendor calls attributes, by attribute, where it says more than their names; None where nothing."""
        found = self.metadata.vendor_specific.get("labels")
        return found if isinstance(found, dict) and found else None

    @property
    def events(self) -> tuple[str, ...]:
        """The events that the vendor says it sends; empty where it says of none."""
        found = self.metadata.vendor_specific.get("events")
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


class Room(Struct, frozen=True, kw_only=True):
    """A room: its `id` never changes, its `name` is what people call it. Which devices it has, `Layout` knows."""

    id: str
    name: str


class Group(Struct, frozen=True, kw_only=True):
    """A named set of devices, in the order in which they were given."""

    id: str
    name: str
    members: tuple[str, ...] = ()


class Observation(Struct, frozen=True, kw_only=True):
    """One device in full as its vendor just described it, in canonical attributes without `state`.

    A device that is not `is_available` exists, and its bridge or broker does not reach it. `wrong` has the attributes
    that the device shows in a way that cannot be read, each with a sentence; they stay as they were.
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


class Report(Struct, frozen=True, kw_only=True):
    """What an adapter observed: some of its devices, and which of them exist.

    A device in `present` without an observation exists and was unreadable: it keeps its last state. Where `present`
    is None the report is incomplete, and other devices stay as they are.
    """

    adapter: str
    present: frozenset[str] | None = None
    observations: tuple[Observation, ...] = ()
