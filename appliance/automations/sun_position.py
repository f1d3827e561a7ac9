"""The position of the sun as a condition: after, before or between its rising and setting."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from msgspec import Struct

from appliance.automations.condition_result import HOLDS, ConditionResult, refused, untrusted
from appliance.automations.home_view import HomeView
from appliance.automations.sun import SunDay, SunEvent, sun_day
from appliance.home_locale import Locale

_DAYS_BEFORE, _DAYS_AFTER = 3, 2
"""Local dates around the present whose events, moved by at most a day and late by the clock, may be the last one."""


class Edge(Struct, frozen=True, kw_only=True):
    """Sunrise or sunset, moved by so many minutes."""

    event: SunEvent
    offset_mins: int = 0

    def instant_on(self, day: SunDay) -> datetime | None:
        """When it is on this day; None where the day has none."""
        found = day.instant_of(self.event)
        return None if found is None else found + timedelta(minutes=self.offset_mins)

    def __str__(self) -> str:
        return f"{self.event} {self.offset_mins:+d} min" if self.offset_mins else str(self.event)


class SunCondition(Struct, frozen=True, kw_only=True):
    """One edge divides the local date into before and after; two bound a part of the day, over midnight too.

    A polar night is after sunset and before sunrise, a polar day the reverse.
    """

    type: ClassVar[str] = "sun_position"
    after: Edge | None = None
    before: Edge | None = None
    locale: Locale

    def holds(self, home: HomeView, instant: datetime | None) -> ConditionResult:
        """Whether the instant lies there; false while the clock is not trusted. The home must have coordinates."""
        if instant is None:
            return untrusted(self)
        today = sun_day(self.locale, self.locale.local(instant).date())
        if self.after is None or self.before is None:
            is_there = self._splits(today, instant)
        else:
            is_there = self._bounds(self.after, self.before, instant)
        return HOLDS if is_there else refused(self._why_not(today, instant))

    def __str__(self) -> str:
        ends = (("after", self.after), ("before", self.before))
        return " and ".join(f"{word} {edge}" for word, edge in ends if edge is not None)

    def _splits(self, today: SunDay, instant: datetime) -> bool:
        return (self.after is None or _is_past(self.after, today, instant)) and (
            self.before is None or not _is_past(self.before, today, instant)
        )

    def _bounds(self, after: Edge, before: Edge, instant: datetime) -> bool:
        """Whether of the edges that have passed by now the last one is `after`."""
        days = [sun_day(self.locale, day) for day in self.locale.days_around(instant, _DAYS_BEFORE, _DAYS_AFTER)]
        edges = [(edge.instant_on(day), edge is after) for day in days for edge in (after, before)]
        passed = [(due, is_after) for due, is_after in edges if due is not None and due <= instant]
        if passed:
            return max(passed)[1]
        return self._splits(days[_DAYS_BEFORE - 1], instant)

    def _why_not(self, today: SunDay, instant: datetime) -> str:
        ends = ((word, edge) for word, edge in (("after", self.after), ("before", self.before)) if edge is not None)
        needs = " and ".join(f"{word} {edge}{_clock(edge, today, self.locale)}" for word, edge in ends)
        return f"time was {self.locale.clock(instant)}{_polar_note(today)}, needs {needs}"


def _is_past(edge: Edge, day: SunDay, instant: datetime) -> bool:
    """Whether the edge of this day has passed."""
    due = edge.instant_on(day)
    return day.is_past_without(edge.event) if due is None else instant >= due


def _clock(edge: Edge, day: SunDay, locale: Locale) -> str:
    due = edge.instant_on(day)
    return "" if due is None else f" ({locale.clock(due)})"


def _polar_note(day: SunDay) -> str:
    """A word about a day on which the sun does not cross the horizon."""
    if day.is_polar_night:
        return " in the polar night"
    return " on a polar day" if day.is_polar_day else ""
