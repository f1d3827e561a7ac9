"""Triggers of devices, as values: an attribute that changes, at once or once it has rested or held.

They give the event table that Lua gets, as plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from appliance.automations import automation_fields as check
from appliance.automations.automation_fields import (
    Matcher,
    NamedThing,
    present,
    same,
    take_attribute,
    take_matcher,
    wanted,
)
from appliance.automations.environment import Environment
from appliance.automations.triggers import EventTrigger, Match, Trigger
from appliance.home.events import DeviceEvent, DeviceStateChanged, Event
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.fields import Table

_NEED_ATTRIBUTE = ("equals", "above", "below", "debounce_secs", "duration_secs")

MAX_TOLD_EVENTS = 10
"""Names of events that are told of a device."""

_WHOSE = ("device_id", "room_id", "group_id")


class Devices(Struct, frozen=True, kw_only=True):
    """Which devices are meant: those of the ids, or those that are in a room or a group at the time of the event."""

    ids: tuple[str, ...] = ()
    room_id: str | None = None
    group_id: str | None = None

    @classmethod
    def parse(cls, table: Table) -> Devices | None:
        """What `device_id`, a text or a list, or `room_id`, or `group_id` states; None where that is wrong."""
        ids = table.take("device_id", check.texts)
        room_id, group_id = table.take("room_id", check.text), table.take("group_id", check.text)
        stated = [name for name in _WHOSE if table.has(name)]
        if not stated:
            table.fault("device_id", "is missing")
            return None
        if len(stated) > 1:
            table.fault(stated[1], f"cannot stand beside {stated[0]}; choose one")
        if ids is None and room_id is None and group_id is None:
            return None
        return cls(ids=ids or (), room_id=room_id, group_id=group_id)

    def names(self) -> list[NamedThing]:
        """The devices, the room or the group."""
        places = (("room", self.room_id), ("group", self.group_id))
        found = [*(("device", id_) for id_ in self.ids), *((kind, id_) for kind, id_ in places if id_ is not None)]
        return [NamedThing(f"{kind}_id", kind, id_) for kind, id_ in found]

    def __str__(self) -> str:
        if self.room_id is not None:
            return f"a device in room '{self.room_id}'"
        if self.group_id is not None:
            return f"a device of group '{self.group_id}'"
        return " or ".join(f"'{id_}'" for id_ in self.ids)

    def tell(self, home: Environment, told: Callable[[Device], str]) -> str:
        """What is told of each that is named by its id, behind semicolons; nothing where that is an empty text."""
        sentences = []
        for device_id in self.ids:
            whose = "it" if len(self.ids) == 1 else f"'{device_id}'"
            found = home.registry.find_devices([device_id])
            if not found:
                sentences.append(f"; there is no device '{device_id}'")
            elif sentence := told(found[0]):
                sentences.append(f"; {whose} {sentence}")
        return "".join(sentences)

    def include(self, device: Device, registry: Registry) -> bool:
        """Whether the device is one of them now."""
        if self.room_id is not None:
            return device.room_id == self.room_id
        if self.group_id is not None:
            group = registry.layout.groups.get(self.group_id)
            return group is not None and device.id in group.members
        return self.name(device.id, device.alias)

    def name(self, device_id: str, alias: str | None) -> bool:
        """Whether the ids have the device, by its id or its alias."""
        return device_id in self.ids or alias in self.ids


class DeviceTrigger(EventTrigger, frozen=True, kw_only=True):
    """An attribute of a device comes to match; without `attribute`, anything about its state changes.

    With one of the waits, in seconds, `match` only begins it: `follow` returns with every further event of the
    device what is being waited for, and `resolve` what to fire in the end. `debounce_secs` waits until the value has
    not changed for so long, `duration_secs` until it has matched for so long. The caller asks `devices` whether the
    event's device is one of them.
    """

    type: str = "device_state_change"
    devices: Devices
    attribute: str | None = None
    matcher: Matcher = Matcher()
    debounce_secs: float | None = None
    duration_secs: float | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        devices, attribute = Devices.parse(table), take_attribute(table)
        matcher = take_matcher(table, attribute)
        debounce = table.take("debounce_secs", check.seconds)
        duration = table.take("duration_secs", check.seconds)
        if table.has("debounce_secs") and table.has("duration_secs"):
            table.fault("duration_secs", "cannot stand beside debounce_secs; choose one wait")
        needing = [name for name in _NEED_ATTRIBUTE if table.has(name)]
        if not table.has("attribute") and needing:
            table.fault("attribute", f"is missing; {', '.join(needing)} must know which attribute is meant")
        elif not table.has("attribute") and kind == "weather_state":
            table.fault("attribute", "is missing")
        if devices is None:
            return None
        return cls(
            type=kind,
            devices=devices,
            attribute=attribute,
            matcher=matcher,
            debounce_secs=debounce or None,
            duration_secs=duration or None,
        )

    def names(self) -> list[NamedThing]:
        whose = self.devices.names()
        if self.attribute is None:
            return whose
        return whose + [NamedThing("attribute", "attribute", self.attribute, each.subject) for each in whose]

    def describe(self, home: Environment, instant: datetime | None) -> str:
        change = f"{self.devices} changes"
        if self.attribute is not None:
            secs = "" if self.wait_secs is None else f" for {self.wait_secs:g} s"
            change = f"{self.devices} shows {wanted(self.attribute, self.matcher)}{secs}"
        return f"waits until {change}{self.devices.tell(home, self._shown)}"

    def _shown(self, device: Device) -> str:
        if self.attribute is None:
            return ""
        value = device.attributes.get(self.attribute)
        if value is not None:
            return f"shows {self.attribute} = {present(value, self.matcher)}"
        names = ", ".join(sorted(each for each in device.attributes if each != "state"))
        return f"shows no {self.attribute}, but {names}" if names else "shows nothing now"

    @property
    def wait_secs(self) -> float | None:
        """How long to wait before firing; None is not at all."""
        return self.duration_secs if self.debounce_secs is None else self.debounce_secs

    @property
    def old_repr(self) -> str:
        """Its `repr` in version 0.1, which kept waits on the card under the hash of that."""
        fields = self.matcher.fields()
        compared = ", ".join(f"{name}={value!r}" for name, value in fields.items()).replace("equals=", "value=", 1)
        matcher = f"{('Anything', 'Equal', 'Within')[len(fields)]}({compared})"
        devices = f"ids={self.devices.ids!r}, room_id={self.devices.room_id!r}, group_id={self.devices.group_id!r}"
        waits = f"debounce_secs={self.debounce_secs!r}, duration_secs={self.duration_secs!r}"
        rest = f"devices=Devices({devices}), attribute={self.attribute!r}, matcher={matcher}, {waits}"
        return f"DeviceTrigger(type={self.type!r}, id={self.id!r}, {rest})"

    def match(self, event: Event) -> Match | None:
        """The event table if the event is a change to a value that matches.

        That a device or attribute appears or goes is no change of its value: there is none before, or none after.
        """
        if not isinstance(event, DeviceStateChanged) or event.previous is None:
            return None
        if self.devices.ids and not self.devices.name(event.device.id, event.device.alias):
            return None
        if self.attribute is None:
            return Match(event=self._table(event.device))
        value, previous = event.device.attributes.get(self.attribute), event.previous.attributes.get(self.attribute)
        if previous is None or same(value, previous):
            return None
        if not (self.matcher.holds(value) and self.matcher.entered_from(previous)):
            return None
        return Match(event=self._table(event.device, previous))

    def still_matches(self, device: Device | None) -> bool:
        """Whether the device matches as it is now; None is a device that does not exist."""
        if device is None or self.attribute is None:
            return device is not None
        return self.matcher.holds(device.attributes.get(self.attribute))

    def follow(self, event: DeviceStateChanged, pending: Match | None) -> Match | None:
        """What is waited for after this event of a device, given what was before it; None is nothing.

        The very same object: wait on. Another: wait the whole time from now on.
        """
        if pending is None:
            return self.match(event)
        if not self.still_matches(event.device):
            return None
        return self._renewed(event, pending)

    def resumes(self, pending: Match, device: Device) -> bool:
        """Whether a wait that a stop interrupted goes on, given the first observation of the device after it."""
        if not self.still_matches(device):
            return False
        if self.attribute is None or not self._must_rest:
            return True
        return same(device.attributes.get(self.attribute), pending.event.get("value"))

    def resolve(self, pending: Match, device: Device | None) -> Match | None:
        """What to fire when the wait is over: the match with the value as it is now; None if it no longer matches."""
        if device is None or not self.still_matches(device):
            return None
        return Match(event=self._table(device, pending.event.get("previous_value")))

    @property
    def _must_rest(self) -> bool:
        return self.debounce_secs is not None or self.matcher.is_any

    def _renewed(self, event: DeviceStateChanged, pending: Match) -> Match:
        """The match that begins the wait anew where the value moved and has to rest; else the pending one."""
        if self.attribute is None or event.previous is None:
            return pending
        value, previous = event.device.attributes[self.attribute], event.previous.attributes.get(self.attribute)
        if not self._must_rest or same(value, previous):
            return pending
        return Match(event=self._table(event.device, previous))

    def _table(self, device: Device, previous: Value = None) -> dict[str, Value]:
        table: dict[str, Value] = {"type": self.type, "device_id": device.id, "attributes": dict(device.attributes)}
        if self.attribute is not None:
            table["attribute"] = self.attribute
            table["value"] = device.attributes.get(self.attribute)
            table["previous_value"] = previous
        return {key: value for key, value in table.items() if value is not None}


class DeviceEventTrigger(EventTrigger, frozen=True, kw_only=True):
    """Something happens at a device, a button is pressed, say; without `event`, anything does.

    The caller asks `devices` whether the event's device is one of them.
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

    def describe(self, home: Environment, instant: datetime | None) -> str:
        told = self.devices.tell(home, _sent)
        return f"waits until {self.devices} sends {self.event or 'any event'}{told}"

    def match(self, event: Event) -> Match | None:
        """The event table if the event is of this name."""
        if not isinstance(event, DeviceEvent) or self.event not in (None, event.event):
            return None
        if self.devices.ids and not self.devices.name(event.device_id, event.alias):
            return None
        table = {"type": self.type, "device_id": event.device_id, "event": event.event, "data": dict(event.data)}
        return Match(event=table)


def _sent(device: Device) -> str:
    return f"sends {', '.join(device.events[:MAX_TOLD_EVENTS])}" if device.events else ""


DEVICE_TRIGGERS: Mapping[str, type[Trigger]] = {
    "device_state_change": DeviceTrigger,
    "weather_state": DeviceTrigger,
    "device_event": DeviceEventTrigger,
}
