"""Conditions on the local time of day and the calendar."""

from __future__ import annotations

from datetime import datetime, time
from typing import ClassVar

from appliance.automations import field_checks as check
from appliance.automations.conditions.base import Condition, Fact
from appliance.automations.environment import Environment
from appliance.automations.field_checks import WEEKDAYS
from appliance.automations.schedule.clock_watch import UNTRUSTED
from appliance.automations.schedule.wall_clock import parse_time
from appliance.home_locale import Locale
from appliance.tables.fields import Table


class TimeCondition(Condition, frozen=True, kw_only=True):
    """A condition that depends only on the time. The result is unknown while the clock is not trusted."""

    locale: Locale

    name: ClassVar[str] = "time"

    @property
    def needs_clock(self) -> bool:
        return True

    def evaluate(self, environment: Environment, instant: datetime | None) -> Fact:
        if instant is None:
            return Fact(holds=None, past=UNTRUSTED, needs=str(self))
        is_met, value = self.is_met(instant), self.value(instant)
        needs = str(self) if is_met else self.needs(instant)
        return Fact(holds=is_met, past=f"{self.name} was {value}", present=f"{self.name} = {value}", needs=needs)

    def is_met(self, instant: datetime) -> bool:
        raise NotImplementedError

    def value(self, instant: datetime) -> str:
        """Return the time or day that is compared at this instant."""
        return self.locale.clock(instant)

    def needs(self, instant: datetime) -> str:
        return str(self)


class TimeWindow(TimeCondition, frozen=True, kw_only=True):
    """The local time is from `start` (inclusive) to `end` (exclusive). The window may contain midnight."""

    type: str = "time_window"
    start: time
    end: time

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        start, end = table.need("start", parse_time), table.need("end", parse_time)
        if start is None or end is None:
            return None
        if start == end:
            table.fault("end", "must differ from start; a window that is always open needs no condition")
        return cls(start=start, end=end, locale=locale)

    def is_met(self, instant: datetime) -> bool:
        now = self.locale.local(instant).time()
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M} to {self.end:%H:%M}"


class Weekday(TimeCondition, frozen=True, kw_only=True):
    """Today is one of these weekdays. 0 is Monday."""

    type: str = "weekday"
    name: ClassVar[str] = "day"
    days: frozenset[int]

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        days = table.need("days", check.weekdays)
        return None if days is None else cls(days=days, locale=locale)

    def is_met(self, instant: datetime) -> bool:
        return self.locale.local(instant).weekday() in self.days

    def value(self, instant: datetime) -> str:
        return WEEKDAYS[self.locale.local(instant).weekday()]

    def __str__(self) -> str:
        return check.weekday_names(self.days)


class DateRange(TimeCondition, frozen=True, kw_only=True):
    """The local date is from `first` to `last` (inclusive). `first` and `last` are pairs of month and day. The range
    may extend over the end of the year."""

    type: str = "date_range"
    name: ClassVar[str] = "date"
    first: tuple[int, int]
    last: tuple[int, int]

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        first, last = table.need("from", check.day_of_year), table.need("to", check.day_of_year)
        return None if first is None or last is None else cls(first=first, last=last, locale=locale)

    def is_met(self, instant: datetime) -> bool:
        local = self.locale.local(instant)
        today = local.month, local.day
        if self.first <= self.last:
            return self.first <= today <= self.last
        return today >= self.first or today <= self.last

    def value(self, instant: datetime) -> str:
        return f"{self.locale.local(instant):%m-%d}"

    def __str__(self) -> str:
        return " to ".join(f"{month:02}-{day:02}" for month, day in (self.first, self.last))
