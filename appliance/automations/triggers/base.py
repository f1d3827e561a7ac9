"""The base of all triggers: type, subjects, and the event table for Lua."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from msgspec import Struct

from appliance.automations.environment import Environment
from appliance.automations.names.named_things import NamedThing, Subject
from appliance.automations.schedule.clock_watch import UNTRUSTED
from appliance.clock import timestamp
from appliance.home.events import Event
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.fields import Table


class Match(Struct, frozen=True, kw_only=True):
    """The event table that a matching trigger passes to Lua.

    `subject` is the thing whose change caused the event: its kind and its names, such as
    `("device", device_id, attribute)` or `("timer", name)`. The brake compares it with the effects of executions. If
    no execution can cause the event, it is empty.

    If `began_in_stop` is true, the change is in the `baseline` of the hub's event: it happened at an unknown time
    before the hub's start, and the hub found it at the start. Such a change matches only for alarms and for triggers
    with `at_start`, and `dated` adds `late_secs`, the time since the hub stopped.
    """

    event: Mapping[str, Value]
    subject: tuple[str, ...]
    began_in_stop: bool = False

    def dated(self, environment: Environment) -> Match:
        """Return the match. If the change happened before this start, add the seconds since the hub stopped."""
        if not self.began_in_stop:
            return self
        late_secs = environment.clock_watch.secs_since_stop()
        return Match(event={**self.event, "late_secs": late_secs}, subject=self.subject)


class Trigger(Struct, frozen=True, kw_only=True):
    """A trigger of an automation. `id` distinguishes the automation's triggers."""

    needs_clock: ClassVar[bool] = False
    """Whether the trigger depends on the time of day."""

    type: str = ""
    id: str | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        """Read a trigger of this type from a table. Return None if the table has faults. A schedule that never occurs
        after `now` is a fault."""
        raise NotImplementedError

    def names(self) -> list[NamedThing]:
        """Return the devices, rooms, and other subjects that the trigger names."""
        return []

    def subjects(self) -> list[Subject]:
        """Return the subjects of the events that the trigger may match. By default, these are the subjects in
        `names`."""
        return [each.subject for each in self.names() if each.owner is None]

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        """Describe the trigger with current values. `instant` is None while the clock is not trusted. `is_waiting` is
        true if a match waits for its duration to end."""
        raise NotImplementedError


class EventTrigger(Trigger, frozen=True, kw_only=True):
    """A trigger that is fired by events."""

    def match(self, event: Event) -> Match | None:
        """Return the match, or None if the event does not match."""
        raise NotImplementedError


class TimedTrigger(Trigger, frozen=True, kw_only=True):
    """A trigger that is due at certain times. All kinds except intervals follow the calendar. If `is_daily` is true,
    the trigger is due at most once per day."""

    needs_clock: ClassVar[bool] = True

    is_daily: ClassVar[bool] = False

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first due time after the instant, in UTC, or None."""
        raise NotImplementedError

    def event_at(self, due: datetime) -> dict[str, Value]:
        """Return the event table for this due time."""
        return {"type": self.type, "scheduled_at": timestamp(due)}

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        if instant is None:
            return f"waits for {self}; {UNTRUSTED}"
        due = self.next_after(instant)
        return f"waits for {self}; " + ("it never occurs again" if due is None else f"next {timestamp(due)}")
