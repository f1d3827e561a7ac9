"""What the home consists of, as frozen data; and reports, which are what adapters saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from appliance.home.values import Value


class Kind(StrEnum):
    """What sort of thing a device is."""

    SENSOR = "Sensor"
    LIGHT = "Light"
    SWITCH = "Switch"
    VIRTUAL = "Virtual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What is known of a device beside its canonical state: the adapter it came from and the vendor's data."""

    source: str
    accuracy: float | None = None
    vendor_specific: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as the home knows it.

    `updated_at` moves when an attribute changes, `last_seen` with every observation; both are in UTC.
    """

    id: str
    room_id: str | None
    kind: Kind
    attributes: Mapping[str, Value]
    metadata: Metadata
    updated_at: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A named place."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A named set of devices, in the order in which they were given."""

    id: str
    name: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One device as its vendor just described it, in canonical attributes without `state`."""

    device_id: str
    kind: Kind
    attributes: Mapping[str, Value]
    vendor_specific: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one answer of a vendor told: the devices that exist behind the adapter, and those that could be read.

    A device in `present` without an observation exists and was unreadable: it keeps its last state.
    """

    adapter: str
    present: frozenset[str]
    observations: tuple[Observation, ...]
