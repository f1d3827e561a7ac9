"""Devices, changes, homes and places for the tables of these tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from appliance.automations import definition as definitions
from appliance.automations.definition import AutomationDefinition
from appliance.home.bus import Bus
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device, DeviceKind, Metadata
from appliance.home.values import Value
from appliance.home_locale import Locale, load_zone
from appliance.tables.checks import LUA
from appliance.tables.fields import Findings, Table
from tests.fakes.clock import VirtualClock
from tests.fakes.registry import PromptRegistry

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)

LAMP = "desk:light:0"

BERLIN = Locale(timezone=load_zone("Europe/Berlin"), latitude=52.52, longitude=13.4)
TROMSO = Locale(timezone=load_zone("Europe/Oslo"), latitude=69.65, longitude=18.96)
NOWHERE = Locale(timezone=load_zone("Europe/Berlin"))


def at(text: str) -> datetime:
    """The instant that this text states, in UTC unless it says otherwise."""
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def device(attributes: Mapping[str, Any], device_id: str = LAMP) -> Device:
    """A device that shows these attributes."""
    return Device(
        id=device_id,
        room_id=None,
        kind=DeviceKind.LIGHT,
        attributes=attributes,
        metadata=Metadata(source=device_id.split(":", maxsplit=1)[0]),
        updated_at=NOW,
        last_seen=NOW,
    )


def change(before: Mapping[str, Any] | None, after: Mapping[str, Any], device_id: str = LAMP) -> DeviceStateChanged:
    """The event that a device went from one set of attributes (None: did not exist) to another."""
    previous = None if before is None else device(before, device_id)
    return DeviceStateChanged(device=device(after, device_id), previous=previous)


class View:
    """A home as conditions see it. `variables` are its variables, `changed` tells when attributes last changed."""

    def __init__(self, registry: PromptRegistry) -> None:
        self.registry = registry
        self.variables: dict[str, Value] = {}
        self.changed: dict[tuple[str, str], datetime] = {}

    def get_variable(self, name: str) -> Value:
        """As the hub's."""
        return self.variables.get(name)

    def changed_at(self, device: Device, attribute: str) -> datetime:
        """As the hub's."""
        return self.changed.get((device.id, attribute), device.updated_at)


def home(*devices: Device) -> View:
    """A home with these devices."""
    registry = PromptRegistry(Bus(), VirtualClock(NOW))
    registry.restore(registry.layout, devices)
    return View(registry)


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What became of an automation's table: the definition, None where it has faults; and sentences about it."""

    definition: AutomationDefinition | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def parse(raw: dict[str, Any], locale: Locale = BERLIN, now: datetime = NOW) -> Parsed:
    """What becomes of the table."""
    findings = Findings(LUA)
    definition = definitions.parse(Table(raw, findings), locale, now, 8)
    faults, warnings = tuple(map(str, findings.faults)), tuple(map(str, findings.warnings))
    return Parsed(definition=None if faults else definition, faults=faults, warnings=warnings)
