"""Devices, changes, homes, and places that the tables of these tests use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from appliance.automations import definition as definitions
from appliance.automations.definition import AutomationDefinition
from appliance.automations.environment import Environment
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.clock import Clock, to_millis
from appliance.home.bus import Bus
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device, DeviceKind, Metadata, changed_attributes
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.home_locale import Locale, load_zone
from appliance.store.clock_trust import ClockTrust
from appliance.store.storage import DocumentSnapshot
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
    """Return the instant of this text, by default in UTC."""
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def device(attributes: Mapping[str, Any], device_id: str = LAMP) -> Device:
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
    """Return an event: a device's attributes change from `before` to `after`. If the device is new, `before` is
    None."""
    previous = None if before is None else device(before, device_id)
    now = device(after, device_id)
    return DeviceStateChanged(device=now, previous=previous, changed=changed_attributes(previous, now))


def environment_of(
    registry: Registry,
    bus: Bus,
    clock: Clock,
    *,
    variables: Mapping[str, Value] | None = None,
    changed: Mapping[str, Mapping[str, datetime]] | None = None,
) -> Environment:
    """Return an environment with these variables, and devices whose attributes changed at these times. The
    environment stores nothing."""
    values = {f"variable/{name}": orjson.dumps({"value": value}) for name, value in (variables or {}).items()}
    for device_id, times in (changed or {}).items():
        millis = {attribute: to_millis(at) for attribute, at in times.items()}
        values[f"changed/{device_id}"] = orjson.dumps(millis)
    storage = DocumentSnapshot(values)
    return Environment(registry, bus, ClockWatch(clock, ClockTrust(clock, NOW)), storage)


def home(*devices: Device, **state: Any) -> Environment:
    """Return a home with these devices. `state` is passed to `environment_of`."""
    bus, clock = Bus(), VirtualClock(NOW)
    registry = PromptRegistry(bus, clock)
    registry.restore(registry.layout, devices)
    return environment_of(registry, bus, clock, **state)


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """The messages from parsing an automation, and the automation's definition (None if there are errors)."""

    definition: AutomationDefinition | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def parse(raw: dict[str, Any], locale: Locale = BERLIN, now: datetime = NOW) -> Parsed:
    findings = Findings(LUA)
    definition = definitions.parse(Table(raw, findings), locale, now, 8)
    faults, warnings = tuple(map(str, findings.faults)), tuple(map(str, findings.warnings))
    return Parsed(definition=None if faults else definition, faults=faults, warnings=warnings)
