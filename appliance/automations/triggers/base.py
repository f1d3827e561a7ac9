"""The parts of all triggers: type, subjects, and the event table that Lua gets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from appliance.automations.environment import Environment
from appliance.automations.fields import UNTRUSTED, NamedThing, Subject
from appliance.clock import timestamp
from appliance.home.events import Event
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.fields import Table


class Match(Struct, frozen=True, kw_only=True):
    """The event table for the automation's Lua.

    With `began_in_stop` the change was found at the start: it happened while the hub was off, or before.
    """

    event: Mapping[str, Value]
    began_in_stop: bool = False

    def dated(self, home: Environment) -> Match:
        """Return the match with how late it can be, in seconds, if that depends on the last stop."""
        if not self.began_in_stop:
            return self
        return Match(event={**self.event, "late_secs": home.secs_since_stop()})


class Trigger(Struct, frozen=True, kw_only=True):
    """The fields of every kind: its `type`, and the `id` that an automation gives it among its triggers."""

    type: str = ""
    id: str | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        """Return the trigger of this type that a table states, for a home at this place; None if something is wrong.

        The table notes its faults, also a schedule that never comes after `now`.
        """
        raise NotImplementedError

    def names(self) -> list[NamedThing]:
        """Return the things of the home that it names."""
        return []

    def subjects(self) -> list[Subject]:
        """Return the subjects that it listens to; by default the things that it names."""
        return [each.subject for each in self.names() if each.owner is None]

    def describe(self, home: Environment, instant: datetime | None) -> str:
        """Describe it with present values; `instant` is None while the clock is not trusted."""
        raise NotImplementedError


class EventTrigger(Trigger, frozen=True, kw_only=True):
    """A trigger that events match."""

    def match(self, event: Event) -> Match | None:
        """Return the match if the event matches."""
        raise NotImplementedError


class TimedTrigger(Trigger, frozen=True, kw_only=True):
    """A trigger that falls due. All except intervals follow the calendar; `is_daily` ones come once per day."""

    is_daily: ClassVar[bool] = False

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first due time after the instant, in UTC; None if none comes."""
        raise NotImplementedError

    def event_at(self, due: datetime) -> dict[str, Value]:
        """Return the event table of this due time."""
        return {"type": self.type, "scheduled_at": timestamp(due)}

    def describe(self, home: Environment, instant: datetime | None) -> str:
        if instant is None:
            return f"waits for {self}; {UNTRUSTED}"
        due = self.next_after(instant)
        return f"waits for {self}; " + ("it never comes again" if due is None else f"next {timestamp(due)}")
