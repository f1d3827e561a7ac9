"""The condition on the sun at home."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta

from msgspec import Struct

from appliance.automations import field_checks as check
from appliance.automations.conditions.base import Condition
from appliance.automations.conditions.time import TimeCondition
from appliance.automations.field_checks import LEAP_YEAR
from appliance.automations.schedule.sun import SunDay, SunEvent, sun_day
from appliance.home_locale import Locale
from appliance.tables.checks import one_of
from appliance.tables.fields import Table

_DAYS_BEFORE, _DAYS_AFTER = 3, 2
"""Number of days before and after today in which to search for the latest sunrise or sunset. An offset moves the
event by at most a day, and a clock change can delay it."""


class Edge(Struct, frozen=True, kw_only=True):
    """Sunrise or sunset with an offset in minutes."""

    event: SunEvent
    offset_mins: int = 0

    @classmethod
    def parse(cls, table: Table, end: str) -> Edge | None:
        """Read the field `after` or `before`, and the offset."""
        word = table.take(end, one_of(*SunEvent))
        offset = table.take(f"{end}_offset_mins", check.offset)
        if table.has(f"{end}_offset_mins") and not table.has(end):
            table.fault(f"{end}_offset_mins", f"has no effect without the field {end}")
        return None if word is None else cls(event=SunEvent(word), offset_mins=offset or 0)

    def instant_on(self, day: SunDay) -> datetime | None:
        """Return the edge's time on this day, or None if the day has no such event."""
        found = day.instant_of(self.event)
        return None if found is None else found + timedelta(minutes=self.offset_mins)

    def __str__(self) -> str:
        return f"{self.event} {self.offset_mins:+d} min" if self.offset_mins else str(self.event)


_SUNSET = Edge(event=SunEvent.SUNSET)


class SunCondition(TimeCondition, frozen=True, kw_only=True):
    """The time is between `after` and `before`, each a sunrise or sunset. The home must have coordinates.

    If one edge is missing, the event opposite to the other edge is used (sunrise is opposite to sunset). A polar
    night is treated as after sunset and before sunrise, and a polar day as after sunrise and before sunset.
    """

    type: str = "sun_position"
    after: Edge | None = None
    before: Edge | None = None

    @classmethod
    def parse(cls, kind: str, table: Table, locale: Locale) -> Condition | None:
        after, before = Edge.parse(table, "after"), Edge.parse(table, "before")
        if not table.has("after") and not table.has("before"):
            table.fault("after", "and before are both missing; set one or both")
        if after is not None and after == before:
            table.fault("before", "and after have the same event and offset; change one of them")
        if not locale.has_coordinates:
            table.fault("type", "sun_position needs locale.latitude and locale.longitude in the configuration")
            return None
        found = cls(after=after, before=before, locale=locale)
        if (warning := found.find_empty()) is not None:
            table.warn("after" if before is None else "before", warning)
        return found

    def is_met(self, instant: datetime) -> bool:
        if self.after is not None and self.before is not None:
            return self._bounds(self.after, self.before, instant)
        starts_and_ends = self._windows(self.locale.days_around(instant, _DAYS_BEFORE, _DAYS_AFTER))
        return any((start or instant) <= instant and (end is None or instant < end) for start, end in starts_and_ends)

    def find_empty(self) -> str | None:
        """For a condition with one edge, return a warning if the edge's offset prevents the condition on some day
        of the year. The check includes the longest and the shortest day."""
        edge = self.before or self.after
        if edge is None or not edge.offset_mins or (self.after is not None and self.before is not None):
            return None
        for month, day in ((month, day) for month in range(1, 13) for day in (1, 11, 21)):
            today = date(LEAP_YEAR, month, day)
            for start, end in self._windows([today + timedelta(days=n) for n in range(-1, 2)]):
                if start is not None and end is not None and start >= end:
                    other = edge.event.opposite
                    end_of_window = f"before the previous {other}" if self.before else f"after the next {other}"
                    return f"never holds around {today:%m-%d}: {edge} is {end_of_window}"
        return None

    def value(self, instant: datetime) -> str:
        today = self._today(instant)
        note = " in the polar night" if today.is_polar_night else " on a polar day" if today.is_polar_day else ""
        return super().value(instant) + note

    def needs(self, instant: datetime) -> str:
        ends = ((word, edge) for word, edge in (("after", self.after), ("before", self.before)) if edge is not None)
        return " and ".join(f"{word} {edge}{self._clock(edge, instant)}" for word, edge in ends)

    def __str__(self) -> str:
        ends = (("after", self.after), ("before", self.before))
        return " and ".join(f"{word} {edge}" for word, edge in ends if edge is not None)

    def _windows(self, days: Iterable[date]) -> Iterator[tuple[datetime | None, datetime | None]]:
        """Yield the periods near these days in which a condition with one edge holds. If a start or end is None,
        the period is unlimited on that side."""
        first = self.after.event if self.after is not None else (self.before or _SUNSET).event.opposite
        sun_days = [sun_day(self.locale, day) for day in days]
        found = [(due, event) for day in sun_days for event in SunEvent if (due := day.instant_of(event)) is not None]
        start: datetime | None = None
        is_open = not found and not sun_days[0].is_past_without(first.opposite)
        is_open = is_open or (bool(found) and min(found)[1] is not first)
        for due, event in sorted(found):
            if event is first:
                start, is_open = due, True
            else:
                yield _moved(start, self.after), _moved(due, self.before)
                is_open = False
        if is_open:
            yield _moved(start, self.after), None

    def _bounds(self, after: Edge, before: Edge, instant: datetime) -> bool:
        """Return whether `after` passed more recently than `before`."""
        days = [sun_day(self.locale, day) for day in self.locale.days_around(instant, _DAYS_BEFORE, _DAYS_AFTER)]
        edges = [(edge.instant_on(day), edge is after) for day in days for edge in (after, before)]
        passed = [(due, is_after) for due, is_after in edges if due is not None and due <= instant]
        if passed:
            return max(passed)[1]
        day = days[_DAYS_BEFORE - 1]
        return _is_past(after, day, instant) and not _is_past(before, day, instant)

    def _today(self, instant: datetime) -> SunDay:
        return sun_day(self.locale, self.locale.local(instant).date())

    def _clock(self, edge: Edge, instant: datetime) -> str:
        """Return the edge's time as text. If the condition has two edges, this is today's time. For a condition
        with one edge, return the time of the next start or the last end."""
        due = edge.instant_on(self._today(instant))
        if self.after is None or self.before is None:
            windows = list(self._windows(self.locale.days_around(instant, _DAYS_BEFORE, _DAYS_AFTER)))
            starts = [start for start, _ in windows if start is not None and start > instant]
            ends = [end for _, end in windows if end is not None and end <= instant]
            due = min(starts, default=None) if self.before is None else max(ends, default=None)
        return "" if due is None else f" ({_clock_on(due, instant, self.locale)})"


def _moved(due: datetime | None, edge: Edge | None) -> datetime | None:
    return due if due is None or edge is None else due + timedelta(minutes=edge.offset_mins)


def _is_past(edge: Edge, day: SunDay, instant: datetime) -> bool:
    due = edge.instant_on(day)
    return day.is_past_without(edge.event) if due is None else instant >= due


def _clock_on(due: datetime, instant: datetime, locale: Locale) -> str:
    """Return the local time. Include the day if it is not today."""
    day, today = locale.local(due).date(), locale.local(instant).date()
    names = {0: "", 1: " tomorrow", -1: " yesterday"}
    return locale.clock(due) + names.get((day - today).days, f" on {day:%m-%d}")
