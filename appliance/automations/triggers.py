"""Triggers: what an automation waits for, as values. Those of events answer `match`, those of time `next_after`.

Both give the event table that Lua gets, as plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import ClassVar

from appliance.automations.cron import Cron
from appliance.automations.sun import SunEvent, next_event
from appliance.automations.wall_clock import next_wall_clock
from appliance.automations.wanted import Anything, Wanted, same
from appliance.clock import timestamp
from appliance.home.events import AdapterStarted, DeviceRemoved, DeviceStateChanged, Event, SystemError
from appliance.home.model import Device
from appliance.home.values import Value
from appliance.locale import Locale


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A trigger's yes: the event table for the automation's Lua."""

    event: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTrigger:
    """A device's attribute changes to what is wanted; without `attribute`, anything about its state changes.

    With one of the waits, in seconds, `match` only begins it: `follow` tells with every further event what is being
    waited for, and `settle` what to fire in the end. `debounce_secs` waits until the value has rested so long,
    `duration_secs` until it has been what is wanted for so long.
    """

    type: str = "device_state_change"
    device_id: str
    attribute: str | None = None
    wanted: Wanted = field(default_factory=Anything)
    debounce_secs: float | None = None
    duration_secs: float | None = None

    @property
    def wait_secs(self) -> float | None:
        """How long to wait before firing; None is not at all."""
        return self.duration_secs if self.debounce_secs is None else self.debounce_secs

    def match(self, event: Event) -> Match | None:
        """The event table if the event is a change to what is wanted.

        That a device or attribute appears or goes is no change of its value: there is none before, or none after.
        """
        if not isinstance(event, DeviceStateChanged) or event.device.id != self.device_id or event.previous is None:
            return None
        if self.attribute is None:
            return Match(event=self._table(event.device))
        value, previous = event.device.attributes.get(self.attribute), event.previous.attributes.get(self.attribute)
        if previous is None or same(value, previous):
            return None
        if not (self.wanted.holds(value) and self.wanted.was_left(previous)):
            return None
        return Match(event=self._table(event.device, previous))

    def still_matches(self, device: Device | None) -> bool:
        """Whether the device, as it is now, shows what is wanted; None is a device that does not exist."""
        if device is None or self.attribute is None:
            return device is not None
        return self.wanted.holds(device.attributes.get(self.attribute))

    def follow(self, event: Event, pending: Match | None) -> Match | None:
        """What is waited for after this event, given what was before it; None is nothing.

        The very same object: wait on. Another: wait the whole time from now on.
        """
        if pending is None:
            return self.match(event)
        if isinstance(event, DeviceRemoved) and event.device_id == self.device_id:
            return None
        if not isinstance(event, DeviceStateChanged) or event.device.id != self.device_id:
            return pending
        if not self.still_matches(event.device):
            return None
        return self._renewed(event, pending)

    def settle(self, pending: Match, device: Device | None) -> Match | None:
        """What to fire when the wait is over: the match with the value as it is now; None if it no longer matches."""
        if device is None or not self.still_matches(device):
            return None
        return Match(event=self._table(device, pending.event.get("previous_value")))

    def _renewed(self, event: DeviceStateChanged, pending: Match) -> Match:
        """The match that begins the wait anew where the value moved and has to rest; else the pending one."""
        if self.attribute is None or event.previous is None:
            return pending
        value, previous = event.device.attributes[self.attribute], event.previous.attributes.get(self.attribute)
        must_rest = self.debounce_secs is not None or isinstance(self.wanted, Anything)
        if not must_rest or same(value, previous):
            return pending
        return Match(event=self._table(event.device, previous))

    def _table(self, device: Device, previous: Value = None) -> dict[str, Value]:
        table: dict[str, Value] = {"type": self.type, "device_id": device.id, "attributes": dict(device.attributes)}
        if self.attribute is not None:
            table["attribute"] = self.attribute
            table["value"] = device.attributes.get(self.attribute)
            table["previous_value"] = previous
        return {key: value for key, value in table.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterLifecycle:
    """An adapter starts; None is any adapter."""

    type: ClassVar[str] = "adapter_lifecycle"
    adapter: str | None = None

    def match(self, event: Event) -> Match | None:
        """The event table if the event is the start of such an adapter."""
        if not isinstance(event, AdapterStarted) or self.adapter not in (None, event.adapter):
            return None
        return Match(event={"type": self.type, "adapter": event.adapter, "event": "started"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemErrorTrigger:
    """Something fails at run time; with `contains`, only if its message holds this text."""

    type: ClassVar[str] = "system_error"
    contains: str | None = None

    def match(self, event: Event) -> Match | None:
        """The event table if the event is such an error."""
        if not isinstance(event, SystemError) or (self.contains or "") not in event.message:
            return None
        return Match(event={"type": self.type, "message": event.message})


@dataclass(frozen=True, slots=True, kw_only=True)
class WallClock:
    """Once a local day, when the clocks in the home show this time."""

    type: ClassVar[str] = "wall_clock"
    is_daily: ClassVar[bool] = True
    at: time
    locale: Locale

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC."""
        return next_wall_clock(self.at, self.locale, instant)

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        zone = self.locale.timezone.key
        return _due(self.type, due) | {"hour": self.at.hour, "minute": self.at.minute, "timezone": zone}


@dataclass(frozen=True, slots=True, kw_only=True)
class CronTrigger:
    """Whenever the expression matches, in UTC."""

    type: ClassVar[str] = "cron"
    is_daily: ClassVar[bool] = False
    cron: Cron

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC; None if there is none any more."""
        return self.cron.next_after(instant)

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        return _due(self.type, due) | {"expression": self.cron.expression}


@dataclass(frozen=True, slots=True, kw_only=True)
class SunTrigger:
    """At sunrise or sunset, `offset_mins` later (negative is before); not on a day that has none."""

    is_daily: ClassVar[bool] = True
    sun_event: SunEvent
    offset_mins: int = 0
    locale: Locale

    @property
    def type(self) -> str:
        """`sunrise` or `sunset`."""
        return self.sun_event.value

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC; None if none comes within a year."""
        return next_event(self.sun_event, self.locale, instant, offset=timedelta(minutes=self.offset_mins))

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        return _due(self.type, due) | {"offset_mins": self.offset_mins}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Again and again, so many seconds apart."""

    type: ClassVar[str] = "interval"
    every_secs: float

    def next_after(self, instant: datetime, since: datetime | None = None) -> datetime:
        """The first due time after the instant in the beat that began at `since`; None begins it at the instant."""
        every = timedelta(seconds=self.every_secs)
        if since is None or since > instant:
            return (since or instant) + every
        return since + ((instant - since) // every + 1) * every

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        return _due(self.type, due) | {"every_secs": self.every_secs}


EventTrigger = DeviceTrigger | AdapterLifecycle | SystemErrorTrigger
"""The triggers that events match; each has `match(event)`."""

TimedTrigger = WallClock | CronTrigger | SunTrigger | Interval
"""The triggers that fall due; each has `next_after(instant)` and `event_at(due)`. All but intervals follow the
calendar, and say whether they are daily."""

Trigger = EventTrigger | TimedTrigger


def _due(kind: str, due: datetime) -> dict[str, Value]:
    return {"type": kind, "scheduled_at": timestamp(due)}
