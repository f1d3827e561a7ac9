"""Triggers on devices: an attribute changes, or a device sends an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

from msgspec import Struct

from appliance.automations import field_checks as check
from appliance.automations.environment import Environment
from appliance.automations.field_checks import take_attribute
from appliance.automations.names.named_things import NamedThing, Subject
from appliance.automations.requirement import MUST_CHANGE, Requirement, describe_requirement, take_requirement
from appliance.automations.triggers.base import EventTrigger, Match, Trigger
from appliance.home.events import DeviceEvent, DeviceStateChanged, Event
from appliance.home.model import AWAY, Device
from appliance.home.registry import Registry
from appliance.home.values import Value, describe, same
from appliance.home_locale import Locale
from appliance.tables.checks import boolean
from appliance.tables.fields import Table

_NEED_ATTRIBUTE = ("equals", "above", "below", "debounce_secs", "duration_secs", "at_start")

MAX_LISTED_EVENTS = 10

ANY_DEVICE: Subject = ("home", "")
"""The owner of an attribute in a trigger for all devices."""

EVERY_DEVICE = "*"
"""The `device_id` of a trigger for all devices."""

_DEVICE_FIELDS = ("device_id", "room_id", "group_id")

MAX_DESCRIBED_IDS = 20
"""Maximum number of device ids in a description."""


class Devices(Struct, frozen=True, kw_only=True):
    """A trigger's devices: devices with given ids, or all present devices of a room or group. If nothing is set,
    the trigger is for all devices."""

    ids: tuple[str, ...] = ()
    room_id: str | None = None
    group_id: str | None = None

    @classmethod
    def parse(cls, table: Table, *, may_be_any: bool = False) -> Devices | None:
        """Read `device_id` (a text or a list), `room_id`, or `group_id`. Return None if the fields have faults. If
        `may_be_any` is true, `device_id` may be `EVERY_DEVICE`."""
        ids = table.take("device_id", check.texts)
        room_id, group_id = table.take("room_id", check.text), table.take("group_id", check.text)
        stated = [name for name in _DEVICE_FIELDS if table.has(name)]
        if not stated:
            hint = f'; for every device with the attribute, set it to "{EVERY_DEVICE}"' if may_be_any else ""
            table.fault("device_id", f"is missing{hint}")
            return None
        if len(stated) > 1:
            table.fault(stated[1], f"cannot be used together with {stated[0]}; choose one")
        if ids is None and room_id is None and group_id is None:
            return None
        if ids is not None and EVERY_DEVICE in ids:
            if may_be_any and len(ids) == 1:
                return cls()
            text = f'"{EVERY_DEVICE}" is allowed only alone, in a trigger device_state_change with an attribute'
            table.fault("device_id", text)
            return None
        return cls(ids=ids or (), room_id=room_id, group_id=group_id)

    def names(self) -> list[NamedThing]:
        subjects: list[Subject] = [("device", id_) for id_ in self.ids]
        if self.room_id is not None:
            subjects.append(("room", self.room_id))
        if self.group_id is not None:
            subjects.append(("group", self.group_id))
        return [NamedThing(f"{kind}_id", kind, id_) for kind, id_ in subjects]

    @property
    def is_any(self) -> bool:
        return not self.ids and self.room_id is None and self.group_id is None

    def __str__(self) -> str:
        if self.is_any:
            return "any device"
        if self.room_id is not None:
            return f"a device in room '{self.room_id}'"
        if self.group_id is not None:
            return f"a device of group '{self.group_id}'"
        named = [f"'{id_}'" for id_ in self.ids[:MAX_DESCRIBED_IDS]]
        if more := len(self.ids) - len(named):
            named.append(f"{more} more")
        return " or ".join(named)

    def describe_each(self, environment: Environment, describe: Callable[[Device], str]) -> str:
        """Return one sentence for each of the first devices in `device_id`, joined with semicolons. Omit empty
        sentences."""
        sentences = []
        for device_id in self.ids[:MAX_DESCRIBED_IDS]:
            whose = "it" if len(self.ids) == 1 else f"'{device_id}'"
            device = environment.registry.find_device(device_id)
            if device is None:
                sentences.append(f"; there is no device '{device_id}'")
                continue
            if (state := device.attributes.get("state")) in AWAY:
                sentences.append(f"; {whose} is {state} now (`lares why {device_id}`)")
            if sentence := describe(device):
                sentences.append(f"; {whose} {sentence}")
        return "".join(sentences)

    def include(self, device: Device, registry: Registry) -> bool:
        if self.room_id is not None:
            return device.room_id == self.room_id
        if self.group_id is not None:
            group = registry.layout.groups.get(self.group_id)
            return group is not None and device.id in group.members
        return self.is_any or self.name(device.id, device.alias)

    def name(self, device_id: str, alias: str | None) -> bool:
        """Return whether the ids contain the device's id or alias."""
        return device_id in self.ids or alias in self.ids


class WaitOutcome(Enum):
    """The effect of a device's value on a trigger's wait. Instead, a new `Match` restarts the wait."""

    CONTINUES = "the wait continues"
    ENDS = "the wait ends, and the trigger does not fire"


class DeviceTrigger(EventTrigger, frozen=True, kw_only=True):
    """An attribute of a device begins to match. If `attribute` is missing, any change of any attribute matches.

    If the trigger has a wait, `match` only begins the wait. Each further event of the device can restart or end the
    wait (`follow`). When the wait is over, `resolve` returns the match to fire. If `debounce_secs` is set, the value
    must not change during the wait. If `duration_secs` is set, the value must match during the whole wait.

    `match` checks only the ids in `devices`; the index checks rooms and groups. The previous value is the last
    comparable value, even from before a gap, an outage, or a restart. If `at_start` is true, the trigger also matches
    the attribute's very first value, and a change between the stored value and the first observation after a start.
    """

    type: str = "device_state_change"
    devices: Devices
    attribute: str | None = None
    requirement: Requirement = Requirement()
    debounce_secs: float | None = None
    duration_secs: float | None = None
    at_start: bool | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        attribute = take_attribute(table)
        devices = Devices.parse(table, may_be_any=kind == "device_state_change" and table.has("attribute"))
        requirement = take_requirement(table, attribute)
        debounce = table.take("debounce_secs", check.seconds)
        duration = table.take("duration_secs", check.seconds)
        at_start = table.take("at_start", boolean)
        if table.has("debounce_secs") and table.has("duration_secs"):
            table.fault("duration_secs", "cannot be used together with debounce_secs; choose one")
        needing = [name for name in _NEED_ATTRIBUTE if table.has(name)]
        if not table.has("attribute") and needing:
            table.fault("attribute", f"is missing; these fields need it: {', '.join(needing)}")
        elif not table.has("attribute") and kind == "weather_state":
            table.fault("attribute", "is missing")
        if devices is None:
            return None
        return cls(
            type=kind,
            devices=devices,
            attribute=attribute,
            requirement=requirement,
            debounce_secs=debounce or None,
            duration_secs=duration or None,
            at_start=at_start or None,
        )

    def names(self) -> list[NamedThing]:
        whose = self.devices.names()
        if self.attribute is None:
            return whose
        owners = [each.subject for each in whose] or [ANY_DEVICE]
        return whose + [
            NamedThing("attribute", "attribute", self.attribute, owner, self.requirement) for owner in owners
        ]

    def subjects(self) -> list[Subject]:
        if self.devices.is_any and self.attribute is not None:
            return [("attribute", self.attribute)]
        return super().subjects()

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        describe_value = partial(self._describe_value, is_waiting=is_waiting)
        change = f"{self.devices} changes"
        if self.attribute is not None:
            secs = "" if self.wait_secs is None else f" for {self.wait_secs:g} s"
            change = f"{self.devices} reports {describe_requirement(self.attribute, self.requirement)}{secs}"
        return f"waits until {change}{self.devices.describe_each(environment, describe_value)}"

    def _describe_value(self, device: Device, *, is_waiting: bool) -> str:
        if self.attribute is None:
            return ""
        value = device.attributes.get(self.attribute)
        if value is not None:
            reported = f"reports {self.attribute} = {describe(value)}"
            matches = self.requirement.must_change(value)
            return f"already {reported}{'' if is_waiting else MUST_CHANGE}" if matches else reported
        names = ", ".join(sorted(each for each in device.attributes if each != "state"))
        reported = f"reports no {self.attribute}, but {names}" if names else "reports nothing now"
        return reported + ("" if device.known(self.attribute) else f"; {self._first_value(device, self.attribute)}")

    def _first_value(self, device: Device, attribute: str) -> str:
        """Return a sentence about the effect of an attribute's first value."""
        if device.is_alarm(attribute):
            return (
                f"{attribute} has never had a value; because it is an alarm attribute, even its first value can fire"
            )
        fires = self.at_start and not self.requirement.is_any
        return f"{attribute} has never had a value; its first value " + ("can fire" if fires else "does not fire")

    @property
    def wait_secs(self) -> float | None:
        """Return the seconds to wait before the trigger fires, or None."""
        return self.duration_secs if self.debounce_secs is None else self.debounce_secs

    def match(self, event: Event) -> Match | None:
        """Return the match if the event is a change to a matching value. An attribute's first value, or its first
        value after a start, matches only for alarms or with `at_start`. If the stored value is doubtful, such a first
        value also matches if it is treated as the very first value."""
        if not isinstance(event, DeviceStateChanged):
            return None
        device, name = event.device, self.attribute
        if self.devices.ids and not self.devices.name(device.id, device.alias):
            return None
        if name is None:
            is_change = event.previous is not None and event.changed - event.baseline
            return self.match_of(device.id, self._table(device)) if is_change else None
        if name not in event.changed:
            return None
        value, is_baseline = device.attributes.get(name), name in event.baseline
        previous = self.requirement.last_usable(event.known_before(name))
        is_first, is_doubtful = is_baseline or previous is None, name in event.doubtful
        is_alarm = (is_first or is_doubtful) and device.is_alarm(name)
        fires_at_start = is_alarm or bool(self.at_start)
        if is_first and not fires_at_start:
            return None
        before_first = False if is_alarm else None  # an alarm counts as off before its first value
        if not self._is_entered(value, before_first if previous is None else previous):
            if not (is_doubtful and fires_at_start and self._is_entered(value, before_first)):
                return None
            previous = None
        table = self._table(device, value, previous)
        # without an earlier value, the delay is unknown; 0 marks the event, unless `Match.dated` replaces it
        if previous is None:
            table["late_secs"] = 0
        return self.match_of(device.id, table, began_in_stop=is_baseline)

    def _is_entered(self, value: Value, previous: Value) -> bool:
        """Return whether the value is entered. Without a requirement, this needs a previous value."""
        if previous is None and self.requirement.is_any:
            return False
        return self.requirement.is_entered(value, previous)

    def follow(self, event: DeviceStateChanged) -> Match | WaitOutcome:
        """Return the effect of an event on the wait for its device. A gap in the values continues the wait."""
        if self.attribute is None or self.attribute not in event.changed:
            return WaitOutcome.CONTINUES
        value = event.device.attributes.get(self.attribute)
        if not self.requirement.is_usable(value):
            return WaitOutcome.CONTINUES
        if not self.requirement.holds(value):
            return WaitOutcome.ENDS
        previous = self.requirement.last_usable(event.known_before(self.attribute))
        is_new = self._must_rest and self.attribute not in event.baseline and not same(value, previous)
        if not is_new:
            return WaitOutcome.CONTINUES
        return self.match_of(event.device.id, self._table(event.device, value, previous))

    def resume(self, pending: Mapping[str, Any], device: Device) -> Match | WaitOutcome:
        """Return the effect of the device's first observation on a wait from before the stop. `pending` contains the
        `value` of the event that began the wait."""
        value, previous = self._last_value(device), pending.get("value")
        if not self.requirement.holds(value):
            return WaitOutcome.ENDS
        if not self._must_rest or same(value, previous):
            return WaitOutcome.CONTINUES
        if self.requirement.is_any:
            return WaitOutcome.ENDS
        return self.match_of(device.id, self._table(device, value, previous))

    def resolve(self, pending: Mapping[str, Any], device: Device | None) -> Match | None:
        """Return the match to fire at the end of the wait, with the last known value. If the last known value does
        not match, return None. `pending` contains `previous_value` and `late_secs` of the event that began the
        wait."""
        if device is None or not self.requirement.holds(value := self._last_value(device)):
            return None
        kept = {name: pending[name] for name in ("late_secs",) if name in pending}
        return self.match_of(device.id, {**self._table(device, value, pending.get("previous_value")), **kept})

    def match_of(self, device_id: str, table: Mapping[str, Value], *, began_in_stop: bool = False) -> Match:
        """Return a match for the device with this event table."""
        names = () if self.attribute is None else (self.attribute,)
        return Match(event=table, subject=("device", device_id, *names), began_in_stop=began_in_stop)

    @property
    def _must_rest(self) -> bool:
        return self.debounce_secs is not None or self.requirement.is_any

    def _last_value(self, device: Device) -> Value:
        """Return the newest comparable value, even from before a gap."""
        return self.requirement.last_usable(device.known(self.attribute or ""))

    def _table(self, device: Device, value: Value = None, previous: Value = None) -> dict[str, Value]:
        table: dict[str, Value] = {"type": self.type, "device_id": device.id, "attributes": dict(device.attributes)}
        if self.attribute is not None:
            table["attribute"] = self.attribute
            if value is not None:
                table["value"] = value
            if previous is not None:
                table["previous_value"] = previous
        return table


class DeviceEventTrigger(EventTrigger, frozen=True, kw_only=True):
    """A device sends an event, such as the press of a button. If `event` is missing, every event matches.

    `match` checks only the ids in `devices`; the index checks rooms and groups.
    """

    type: str = "device_event"
    devices: Devices
    event: str | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        devices, event = Devices.parse(table), table.take("event", check.text)
        return None if devices is None else cls(devices=devices, event=event)

    def names(self) -> list[NamedThing]:
        whose = self.devices.names()
        field = None if self.event is None else "event"
        return whose + [NamedThing(field or each.field, "event", self.event or "", each.subject) for each in whose]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        devices = self.devices.describe_each(environment, _sent)
        return f"waits until {self.devices} sends {self.event or 'any event'}{devices}"

    def match(self, event: Event) -> Match | None:
        """Return the event table if the event has this name."""
        if not isinstance(event, DeviceEvent) or self.event not in (None, event.event):
            return None
        if self.devices.ids and not self.devices.name(event.device_id, event.alias):
            return None
        table = {"type": self.type, "device_id": event.device_id, "event": event.event, "data": dict(event.data)}
        return Match(event=table, subject=("event", event.device_id, event.event))


def _sent(device: Device) -> str:
    return f"sends {', '.join(device.events[:MAX_LISTED_EVENTS])}" if device.events else ""


DEVICE_TRIGGERS: Mapping[str, type[Trigger]] = {
    "device_state_change": DeviceTrigger,
    "weather_state": DeviceTrigger,
    "device_event": DeviceEventTrigger,
}
