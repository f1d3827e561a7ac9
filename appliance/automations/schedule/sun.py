"""Computes the times of sunrise and sunset."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from appliance.home_locale import Locale

HORIZON = -0.8333
"""Elevation of the sun's centre, in degrees, at sunrise and sunset. With refraction, the upper rim of the sun then
touches the horizon."""

MAX_SEARCH_DAYS = 400
"""Maximum number of days until the next sunrise or sunset: just over a year."""


class SunEvent(StrEnum):
    """Sunrise or sunset. Polar days and polar nights have neither."""

    SUNRISE = "sunrise"
    SUNSET = "sunset"

    @property
    def opposite(self) -> SunEvent:
        return SunEvent.SUNSET if self is SunEvent.SUNRISE else SunEvent.SUNRISE


class SunDay(Struct, frozen=True, kw_only=True):
    """A solar day, from midnight to midnight by the sun. Times are in UTC, to the second.

    - `sunrise`, `sunset`: before and after noon; None on a day without the event.
    - `was_up`, `culminates`, `stays_up`: whether the sun is up at the first midnight, at noon, and at the last
      midnight.
    """

    sunrise: datetime | None
    sunset: datetime | None
    was_up: bool
    culminates: bool
    stays_up: bool

    def instant_of(self, event: SunEvent) -> datetime | None:
        """Return the time of the event, or None if the day does not have it."""
        return self.sunrise if event is SunEvent.SUNRISE else self.sunset

    @property
    def is_polar_day(self) -> bool:
        return self.was_up and self.culminates and self.stays_up

    @property
    def is_polar_night(self) -> bool:
        return not (self.was_up or self.culminates or self.stays_up)

    def is_past_without(self, event: SunEvent) -> bool:
        """For a day without the event, return whether the whole day is treated as being after the event. For example,
        a polar night is after sunset."""
        return self.was_up if event is SunEvent.SUNRISE else not self.culminates


def sun_day(locale: Locale, day: date) -> SunDay:
    """Return the solar day that contains noon of this local date. The home must have coordinates.

    In the far north, the sun may set after midnight by the clock. A sunset after midnight still belongs to this date.
    """
    coordinates = _coordinates(locale)
    return _day(*coordinates, _solar_date(locale.noon(day), coordinates[1]))


def next_event(event: SunEvent, locale: Locale, instant: datetime, *, offset: timedelta) -> datetime | None:
    """Return the first instant after `instant` with this offset from the event. Return None if there is no such
    instant within a year."""
    coordinates = _coordinates(locale)
    first = _solar_date(instant - offset, coordinates[1])
    for n in range(-1, MAX_SEARCH_DAYS):
        found = _day(*coordinates, first + timedelta(days=n)).instant_of(event)
        if found is not None and found + offset > instant:
            return found + offset
    return None


def _coordinates(locale: Locale) -> tuple[float, float]:
    assert locale.latitude is not None and locale.longitude is not None, "the home has no coordinates"
    return locale.latitude, locale.longitude


def _solar_date(instant: datetime, longitude: float) -> date:
    """Return the date of the solar day that contains the instant."""
    return (instant.astimezone(UTC) + timedelta(minutes=4 * longitude)).date()


@lru_cache(maxsize=512)
def _day(latitude: float, longitude: float, day: date) -> SunDay:
    observer = latitude, longitude
    before, noon, after = _solar_noons(longitude, day)
    midnights = before + (noon - before) / 2, noon + (after - noon) / 2
    ups = [_is_up(observer, instant) for instant in (midnights[0], noon, midnights[1])]
    return SunDay(
        sunrise=_crossing(observer, midnights[0], noon) if not ups[0] and ups[1] else None,
        sunset=_crossing(observer, noon, midnights[1]) if ups[1] and not ups[2] else None,
        was_up=ups[0],
        culminates=ups[1],
        stays_up=ups[2],
    )


def _solar_noons(longitude: float, day: date) -> Iterator[datetime]:
    """Yield the solar noons of the previous day, this day, and the next day."""
    from astral.julian import julianday, julianday_to_juliancentury
    from astral.sun import eq_of_time

    for n in (-1, 0, 1):
        mean = datetime.combine(day, time(12), UTC) + timedelta(days=n, minutes=-4 * longitude)
        yield mean - timedelta(minutes=eq_of_time(julianday_to_juliancentury(julianday(mean))))


def _is_up(observer: tuple[float, float], instant: datetime) -> bool:
    from astral import Observer
    from astral.sun import elevation

    return elevation(Observer(*observer), instant, with_refraction=False) >= HORIZON


def _crossing(observer: tuple[float, float], start: datetime, end: datetime) -> datetime:
    """Return the second at which the sun crosses the horizon. Between the two instants, the sun must cross the
    horizon exactly once."""
    rises = _is_up(observer, end)
    low, high = 0, round((end - start).total_seconds())
    base = start.replace(microsecond=0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_up(observer, base + timedelta(seconds=middle)) == rises else (middle, high)
    return base + timedelta(seconds=high)
