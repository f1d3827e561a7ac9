"""Triggers of time, as values: when the clocks show a time, at sunrise, by a cron expression, again and again.

They answer `next_after(instant)`, in UTC, and give the event table that Lua gets, as plain data.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import ClassVar

from msgspec import Struct

from appliance.automations.cron import LAST_YEAR, Cron
from appliance.automations.sun import MAX_SEARCH_DAYS, SunEvent, next_event
from appliance.automations.wall_clock import instant_of, next_wall_clock
from appliance.clock import timestamp
from appliance.home.values import Value
from appliance.home_locale import Locale


class WallClock(Struct, frozen=True, kw_only=True):
    """Once a local day, when the clocks in the home show this time; `weekdays` (0 is Monday) are all if empty."""

    type: ClassVar[str] = "wall_clock"
    is_daily: ClassVar[bool] = True
    id: str | None = None
    at: time
    weekdays: frozenset[int] = frozenset()
    locale: Locale

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC."""
        return next_wall_clock(self.at, self.locale, instant, self._is_on_weekday)

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        zone = self.locale.timezone.key
        return _due(self.type, due) | {"hour": self.at.hour, "minute": self.at.minute, "timezone": zone}

    def _is_on_weekday(self, day: date) -> bool:
        return not self.weekdays or day.weekday() in self.weekdays


class CronTrigger(Struct, frozen=True, kw_only=True):
    """Whenever the expression matches: in UTC, or, with a `locale`, what the clocks in the home show.

    Of the home's clocks, a time that they skip is the first instant after the gap, one shown twice is the first.
    """

    type: ClassVar[str] = "cron"
    is_daily: ClassVar[bool] = False
    id: str | None = None
    cron: Cron
    locale: Locale | None = None

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC; None if there is none any more."""
        if self.locale is None:
            return self.cron.next_after(instant)
        if instant.year > LAST_YEAR:
            return None
        since = self.locale.local(instant).replace(tzinfo=None)
        while (shown := self.cron.next_shown(since)) is not None:
            due = instant_of(shown.date(), shown.time(), self.locale.timezone)
            if due is not None and due > instant:
                return due
            since = shown
        return None

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        zone = {} if self.locale is None else {"timezone": self.locale.timezone.key}
        return _due(self.type, due) | {"expression": self.cron.expression} | zone


class SunTrigger(Struct, frozen=True, kw_only=True):
    """At sunrise or sunset, `offset_mins` later (negative is before); not on a day that has none.

    `weekdays` are those of the sun's event by the home's clocks, before the offset; all if empty.
    """

    is_daily: ClassVar[bool] = True
    id: str | None = None
    sun_event: SunEvent
    offset_mins: int = 0
    weekdays: frozenset[int] = frozenset()
    locale: Locale

    @property
    def type(self) -> str:
        """`sunrise` or `sunset`."""
        return self.sun_event.value

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC; None if none comes within a year."""
        offset = timedelta(minutes=self.offset_mins)
        due = next_event(self.sun_event, self.locale, instant, offset=offset)
        while due is not None and due - instant < timedelta(days=MAX_SEARCH_DAYS):
            if not self.weekdays or self.locale.local(due - offset).weekday() in self.weekdays:
                return due
            due = next_event(self.sun_event, self.locale, due, offset=offset)
        return None

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        return _due(self.type, due) | {"offset_mins": self.offset_mins}


class DateTrigger(Struct, frozen=True, kw_only=True):
    """On a date, when the clocks in the home show this time: each year, or once where `year` is given."""

    type: ClassVar[str] = "date"
    is_daily: ClassVar[bool] = True
    id: str | None = None
    month: int
    day: int
    year: int | None = None
    at: time
    locale: Locale

    def next_after(self, instant: datetime) -> datetime | None:
        """The first due time after the instant, in UTC; None if there is none any more."""
        first = self.locale.local(instant).year - 1
        years = range(first, min(first + 12, LAST_YEAR + 1)) if self.year is None else (self.year,)
        for year in years:
            try:
                day = date(year, self.month, self.day)
            except ValueError:  # the 29th of February of a year that has none
                continue
            due = instant_of(day, self.at, self.locale.timezone)
            if due is not None and due > instant:
                return due
        return None

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        zone = self.locale.timezone.key
        return _due(self.type, due) | {"on": self.on, "time": f"{self.at:%H:%M}", "timezone": zone}

    @property
    def on(self) -> str:
        """The date as it was written, `12-24` or `2026-12-24`."""
        year = "" if self.year is None else f"{self.year:04}-"
        return f"{year}{self.month:02}-{self.day:02}"


class Interval(Struct, frozen=True, kw_only=True):
    """Fires every `every_secs` seconds of real time."""

    type: ClassVar[str] = "interval"
    id: str | None = None
    every_secs: float

    def next_after(self, instant: datetime, since: datetime | None = None) -> datetime:
        """The first due time after the instant of those since `since`; None begins them at the instant."""
        every = timedelta(seconds=self.every_secs)
        if since is None or since > instant:
            return (since or instant) + every
        return since + ((instant - since) // every + 1) * every

    def event_at(self, due: datetime) -> dict[str, Value]:
        """The event table of this due time."""
        return _due(self.type, due) | {"every_secs": self.every_secs}


TimedTrigger = WallClock | CronTrigger | SunTrigger | DateTrigger | Interval
"""The triggers that fall due. All but intervals follow the calendar, and say whether they are daily."""


def _due(kind: str, due: datetime) -> dict[str, Value]:
    return {"type": kind, "scheduled_at": timestamp(due)}
