"""Time triggers: a time of day, sunrise or sunset, a date, a cron expression, or an interval."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar

from appliance.automations import field_checks as check
from appliance.automations.environment import Environment
from appliance.automations.schedule.cron import LAST_YEAR, Cron
from appliance.automations.schedule.sun import MAX_SEARCH_DAYS, SunEvent, next_event
from appliance.automations.schedule.wall_clock import (
    end_of_repeated,
    instant_of,
    next_time_back,
    next_wall_clock,
    parse_time,
)
from appliance.automations.triggers.base import TimedTrigger, Trigger
from appliance.errors import Invalid
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.checks import one_of, string
from appliance.tables.fields import Table

_SECOND, _HALF_YEAR = timedelta(seconds=1), timedelta(days=183)


class WallClock(TimedTrigger, frozen=True, kw_only=True):
    """A trigger that is due once per local day, at this time. `weekdays` limits the days: 0 is Monday, and an
    empty set means every day."""

    type: str = "wall_clock"
    is_daily: ClassVar[bool] = True
    at: time
    weekdays: frozenset[int] = frozenset()
    locale: Locale

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        weekdays = table.take("weekdays", check.weekdays) or frozenset()
        at = table.take("time", parse_time)
        stated = [name for name in ("hour", "minute") if table.raw(name) is not None]
        if table.has("time"):
            for name in stated:
                table.fault(name, "cannot be used together with time; choose one")
        elif not stated:
            table.fault("time", 'is missing; write time = "HH:MM"')
        else:
            hour = table.need("hour", check.integer_to(23))
            minute = table.need("minute", check.integer_to(59))
            at = None if hour is None or minute is None else time(hour, minute)
        return None if at is None else cls(at=at, weekdays=weekdays, locale=locale)

    def next_after(self, instant: datetime) -> datetime | None:
        return next_wall_clock(self.at, self.locale, instant, self._is_on_weekday)

    def event_at(self, due: datetime) -> dict[str, Value]:
        zone = self.locale.timezone.key
        return super().event_at(due) | {"hour": self.at.hour, "minute": self.at.minute, "timezone": zone}

    def __str__(self) -> str:
        return f"{self.at:%H:%M}{_days(self.weekdays)}"

    def _is_on_weekday(self, day: date) -> bool:
        return not self.weekdays or day.weekday() in self.weekdays


class CronTrigger(TimedTrigger, frozen=True, kw_only=True):
    """A trigger that is due whenever the cron expression matches the local time. If `locale` is None, the expression
    is in UTC.

    If the local time skips the matching time, the trigger is due at the first instant after the gap. A repeated time
    fires once, or twice if the hour field contains `*` or a step.
    """

    type: str = "cron"
    cron: Cron
    locale: Locale | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        cron = table.need("expression", _expression)
        zone = table.take("timezone", one_of("utc", "local"))
        if cron is None:
            return None
        if cron.next_after(now) is None:
            table.fault("expression", f"never occurs again up to the year {LAST_YEAR}")
        if cron.warning is not None:
            table.warn("expression", f"uses numbers for weekdays: {cron.warning}")
        for warning in cron.uneven_steps:
            table.warn("expression", f"has an uneven step: {warning}")
        if zone is None and (hint := _other_hour(cron, locale, now)) is not None:
            table.warn("expression", hint)
        return cls(cron=cron, locale=locale if zone == "local" else None)

    def next_after(self, instant: datetime) -> datetime | None:
        if self.locale is None:
            return self.cron.next_after(instant)
        if instant.year > LAST_YEAR:
            return None
        if self.cron.repeats_hourly:
            return self._next_in_each_pass(self.locale, instant)
        return self._next_in_first_pass(self.locale, instant)

    def _next_in_first_pass(self, locale: Locale, instant: datetime) -> datetime | None:
        """Skip the second pass of a repeated hour."""
        local = locale.local(instant)
        shown = local.replace(tzinfo=None)
        since = max(shown, end_of_repeated(local) - _SECOND) if local.fold else shown
        return self._next_shown(locale, since, instant)

    def _next_in_each_pass(self, locale: Locale, instant: datetime) -> datetime | None:
        """Include both passes of a repeated hour."""
        found = self._next_shown(locale, locale.local(instant).replace(tzinfo=None), instant)
        back = next_time_back(locale.timezone, instant)
        if back is None or (found is not None and found < back):
            return found
        # the clocks are set back first, so the next match is in the second pass or after it
        return self._next_shown(locale, locale.local(back).replace(tzinfo=None) - _SECOND, back - _SECOND)

    def _next_shown(self, locale: Locale, since: datetime, instant: datetime) -> datetime | None:
        """Return the first instant after `instant` whose local time matches and is later than `since`."""
        zone = locale.timezone
        while (shown := self.cron.next_shown(since)) is not None:
            due = instant_of(shown.date(), shown.time(), zone)
            if due is not None and due <= instant and self.cron.repeats_hourly:
                due = shown.replace(tzinfo=zone, fold=1).astimezone(UTC)
            if due is not None and due > instant:
                return due
            since = shown
        return None

    def event_at(self, due: datetime) -> dict[str, Value]:
        zone = {} if self.locale is None else {"timezone": self.locale.timezone.key}
        return super().event_at(due) | {"expression": self.cron.expression} | zone

    def __str__(self) -> str:
        zone = "UTC" if self.locale is None else self.locale.timezone.key
        return f"the cron expression '{self.cron.expression}' ({zone})"


class SunTrigger(TimedTrigger, frozen=True, kw_only=True):
    """A trigger that is due at sunrise or sunset (`type`), moved by `offset_mins`. A negative offset means a time
    before the event. A day without the event is skipped. `weekdays` applies to the local date of the sunrise or
    sunset without the offset; an empty set means every day."""

    is_daily: ClassVar[bool] = True
    offset_mins: int = 0
    weekdays: frozenset[int] = frozenset()
    locale: Locale

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        offset_mins = table.take("offset_mins", check.offset) or 0
        weekdays = table.take("weekdays", check.weekdays) or frozenset()
        if not locale.has_coordinates:
            table.fault("type", f"{kind} needs locale.latitude and locale.longitude in the configuration")
            return None
        return cls(type=kind, offset_mins=offset_mins, weekdays=weekdays, locale=locale)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first due time after the instant, in UTC, or None if the trigger is not due within a year."""
        sun_event = SunEvent(self.type)
        offset = timedelta(minutes=self.offset_mins)
        due = next_event(sun_event, self.locale, instant, offset=offset)
        while due is not None and due - instant < timedelta(days=MAX_SEARCH_DAYS):
            if not self.weekdays or self.locale.local(due - offset).weekday() in self.weekdays:
                return due
            due = next_event(sun_event, self.locale, due, offset=offset)
        return None

    def event_at(self, due: datetime) -> dict[str, Value]:
        return super().event_at(due) | {"offset_mins": self.offset_mins}

    def __str__(self) -> str:
        return f"{self.type}{f' {self.offset_mins:+d} min' if self.offset_mins else ''}{_days(self.weekdays)}"


class DateTrigger(TimedTrigger, frozen=True, kw_only=True):
    """A trigger that is due on a date at this local time: every year, or once if `year` is given."""

    type: str = "date"
    is_daily: ClassVar[bool] = True
    month: int
    day: int
    year: int | None = None
    at: time
    locale: Locale

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        on, at = table.need("on", check.date_on), table.need("time", parse_time)
        if on is None or at is None:
            return None
        trigger = cls(year=on[0], month=on[1], day=on[2], at=at, locale=locale)
        if trigger.next_after(now) is None:
            table.warn("on", f"{trigger.on} is past: it never occurs again")
        return trigger

    def next_after(self, instant: datetime) -> datetime | None:
        first = self.locale.local(instant).year - 1
        years = range(first, min(first + 12, LAST_YEAR + 1)) if self.year is None else (self.year,)
        for year in years:
            try:
                day = date(year, self.month, self.day)
            except ValueError:  # 29 February exists only in leap years
                continue
            due = instant_of(day, self.at, self.locale.timezone)
            if due is not None and due > instant:
                return due
        return None

    def event_at(self, due: datetime) -> dict[str, Value]:
        zone = self.locale.timezone.key
        return super().event_at(due) | {"on": self.on, "time": f"{self.at:%H:%M}", "timezone": zone}

    def __str__(self) -> str:
        return f"{self.on} at {self.at:%H:%M}"

    @property
    def on(self) -> str:
        """Return the date as text, `12-24` or `2026-12-24`."""
        year = "" if self.year is None else f"{self.year:04}-"
        return f"{year}{self.month:02}-{self.day:02}"


class Interval(TimedTrigger, frozen=True, kw_only=True):
    """A trigger that is due every `every_secs` seconds of real time."""

    needs_clock: ClassVar[bool] = False

    type: str = "interval"
    every_secs: float

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale, now: datetime) -> Trigger | None:
        every_secs = table.need("every_secs", check.period)
        return None if every_secs is None else cls(every_secs=every_secs)

    def describe(self, environment: Environment, instant: datetime | None, *, is_waiting: bool = False) -> str:
        return f"waits for its interval, every {self.every_secs:g} s"

    def next_after(self, instant: datetime, since: datetime | None = None) -> datetime:
        """Return the first due time after the instant. The intervals are counted from `since`, by default from the
        instant itself."""
        every = timedelta(seconds=self.every_secs)
        if since is None or since > instant:
            return (since or instant) + every
        return since + ((instant - since) // every + 1) * every

    def event_at(self, due: datetime) -> dict[str, Value]:
        return super().event_at(due) | {"every_secs": self.every_secs}


def _expression(value: Value) -> Cron:
    try:
        return Cron.parse(string(value))
    except Invalid as fault:
        raise Invalid(f"is not a cron expression: {fault}") from None


def _other_hour(cron: Cron, locale: Locale, now: datetime) -> str | None:
    """Return a warning if a fixed hour in UTC differs from the home's local hour."""
    due = cron.next_after(now)
    if due is None or cron.repeats_hourly or not any(locale.local(due + n * _HALF_YEAR).utcoffset() for n in (0, 1)):
        return None
    there = f"{locale.clock(due)} in {locale.timezone.key}"
    return f'uses UTC: {due:%H:%M} is {there}; write timezone = "local", or "utc" if you mean UTC'


def _days(days: frozenset[int]) -> str:
    return f" on {check.weekday_names(days)}" if days else ""


TIMED_TRIGGERS: Mapping[str, type[Trigger]] = {
    "wall_clock": WallClock,
    "date": DateTrigger,
    "cron": CronTrigger,
    "sunrise": SunTrigger,
    "sunset": SunTrigger,
    "interval": Interval,
}
