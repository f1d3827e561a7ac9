"""Sunrise and sunset: against the observatory's tables, at far longitudes, and where the sun does not rise or set."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from appliance.automations.times_of_day import SunEvent, next_event, sun_day
from appliance.home_locale import Locale, load_zone
from tests.automations.homes import BERLIN, TROMSO, at
from tests.fakes.rows import each_row

TABLES = Path(__file__).parent.parent / "fixtures" / "sun" / "usno_reference_testdata.csv"

ZERO, DAY, MINUTE = timedelta(), timedelta(days=1), timedelta(minutes=1)


def rows() -> Iterator[tuple[Locale, SunEvent, datetime]]:
    """What the observatory says: the minute of each event, on its UTC date."""
    lines = (line for line in TABLES.read_text().splitlines() if not line.startswith("#"))
    for day, latitude, longitude, kind, *times in csv.reader(lines):
        assert kind == "NORMAL"
        place = Locale(timezone=load_zone("UTC"), latitude=float(latitude), longitude=float(longitude))
        for event, shown in zip(SunEvent, times, strict=True):
            yield place, event, datetime.combine(date.fromisoformat(day[:10]), time.fromisoformat(shown), UTC)


def to_the_minute(instant: datetime) -> datetime:
    """The nearest whole minute."""
    return (instant + MINUTE / 2).replace(second=0, microsecond=0)


def test_the_observatory_agrees_to_the_minute() -> None:
    off: Counter[int] = Counter()
    for place, event, minute in rows():
        due = next_event(event, place, datetime.combine(minute.date(), time(), UTC) - MINUTE / 2, offset=ZERO)
        assert due is not None
        off[round((to_the_minute(due) - minute) / MINUTE)] += 1
    print(f"sun: {off.total()} events of the observatory's tables; minutes off: {dict(off)}")
    assert off.total() == 288 and set(off) <= {-1, 0, 1}
    assert off[0] > 270


@each_row(
    ("zone", "latitude", "longitude", "day", "sunrise", "sunset"),
    [
        ("Europe/Berlin", 52.52, 13.4, "2026-06-21", "2026-06-21T04:43", "2026-06-21T21:33"),
        ("America/Anchorage", 61.217, -149.867, "2026-06-21", "2026-06-21T04:20", "2026-06-21T23:42"),
        ("Pacific/Auckland", -36.833, 174.8, "2026-12-21", "2026-12-21T05:58", "2026-12-21T20:39"),
        ("Pacific/Kiritimati", 1.87, -157.4, "2026-03-20", "2026-03-20T06:34", "2026-03-20T18:40"),
        ("Pacific/Apia", -13.8, -171.75, "2026-03-20", "2026-03-20T06:31", "2026-03-20T18:38"),
        ("Atlantic/Reykjavik", 64.13, -21.9, "2026-06-21", "2026-06-21T02:55", "2026-06-22T00:03"),
    ],
)
def test_a_local_date_has_its_own_sunrise_and_sunset(
    zone: str, latitude: float, longitude: float, day: str, sunrise: str, sunset: str
) -> None:
    locale = Locale(timezone=load_zone(zone), latitude=latitude, longitude=longitude)
    found = sun_day(locale, date.fromisoformat(day))
    for event, shown in zip(SunEvent, (sunrise, sunset), strict=True):
        instant = found.instant_of(event)
        assert instant is not None
        expected = datetime.fromisoformat(shown).replace(tzinfo=locale.timezone)
        assert abs(instant - expected) <= 1.5 * MINUTE, (event, locale.local(instant))


@each_row(
    ("latitude", "day", "is_polar_day", "is_polar_night"),
    [
        (69.65, "2026-06-21", True, False),
        (69.65, "2026-12-21", False, True),
        (69.65, "2026-03-21", False, False),
        (-77.85, "2026-12-21", True, False),
        (-77.85, "2026-06-21", False, True),
        (90.0, "2026-06-21", True, False),
        (90.0, "2026-12-21", False, True),
        (-90.0, "2026-06-21", False, True),
        (0.0, "2026-06-21", False, False),
        (66.2, "2026-06-21", True, False),
        (65.0, "2026-06-21", False, False),
        (67.5, "2026-12-21", False, True),
        (67.0, "2026-12-21", False, False),
    ],
)
def test_a_polar_day_or_night_is_known_and_has_no_event(
    latitude: float, day: str, is_polar_day: bool, is_polar_night: bool
) -> None:
    found = sun_day(Locale(timezone=load_zone("UTC"), latitude=latitude, longitude=18.96), date.fromisoformat(day))
    assert (found.is_polar_day, found.is_polar_night) == (is_polar_day, is_polar_night)
    if is_polar_day or is_polar_night:
        assert found.sunrise is None and found.sunset is None
    else:
        assert found.sunrise is not None and found.sunset is not None
    assert found.is_past_without(SunEvent.SUNRISE) is found.was_up


@pytest.mark.slow
def test_no_latitude_and_no_day_of_a_year_raises() -> None:
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(0, 366, 5)]
    for latitude in range(-90, 91, 3):
        locale = Locale(timezone=load_zone("UTC"), latitude=float(latitude), longitude=-180.0 + 2 * latitude)
        for day in days:
            found = sun_day(locale, day)
            assert (found.sunrise is not None) == (not found.was_up and found.culminates)
            assert (found.sunset is not None) == (found.culminates and not found.stays_up)


def test_the_sun_comes_back_after_the_polar_night_and_day() -> None:
    risen = next_event(SunEvent.SUNRISE, TROMSO, at("2026-12-01T12:00"), offset=ZERO)
    sunk = next_event(SunEvent.SUNSET, TROMSO, at("2026-06-01T12:00"), offset=ZERO)
    assert risen is not None and at("2027-01-13") < risen < at("2027-01-18")
    assert sunk is not None and at("2026-07-24") < sunk < at("2026-07-30")


def test_where_no_event_comes_within_a_year_there_is_none() -> None:
    pole = Locale(timezone=load_zone("UTC"), latitude=90.0, longitude=0.0)
    for event in SunEvent:
        due = next_event(event, pole, at("2026-01-01T12:00"), offset=ZERO)
        assert due is None or due > at("2026-03-01")


@each_row("minutes", [-1440, -90, 0, 30, 1440])
def test_each_event_comes_once_and_keeps_its_offset(minutes: int) -> None:
    offset = timedelta(minutes=minutes)
    instant = at("2026-02-20T00:00")
    dues: list[datetime] = []
    while (due := next_event(SunEvent.SUNSET, BERLIN, instant, offset=offset)) is not None and len(dues) < 60:
        dues.append(due)
        assert next_event(SunEvent.SUNSET, BERLIN, due - timedelta(seconds=1), offset=offset) == due
        instant = due
    assert all(timedelta(hours=23.9) < b - a < timedelta(hours=24.1) for a, b in itertools.pairwise(dues))
    assert len({BERLIN.local(due - offset).date() for due in dues}) == len(dues)
