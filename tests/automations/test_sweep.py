"""Every zone at every clock change of four years: each local day fires once, windows are right to the minute.

What is expected comes from walking through the minutes one by one and reading the zone's clocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import astral.sun
import pytest

from appliance.automations.cron import Cron
from appliance.automations.sun import SunEvent, next_event, sun_day
from appliance.automations.time_conditions import TimeWindow
from appliance.automations.wall_clock import instant_of, next_wall_clock
from appliance.home_locale import Locale, load_zone, zone_names
from tests.automations.homes import home

FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

AROUND = 2 * HOUR
"""How far around a clock change every minute is looked at."""

LENGTHS = (1, 59, 61, 720)
"""Lengths of the windows, in minutes."""


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute, and what the zone's clocks show at its beginning."""

    instant: datetime
    shown: datetime


@cache
def clock_changes(zone: ZoneInfo) -> list[datetime]:
    """When the zone's offset changes within the four years."""
    days = [FIRST + n * DAY for n in range((LAST - FIRST).days + 1)]
    pairs = itertools.pairwise(days)
    return [change_between(a, b, zone) for a, b in pairs if offset(a, zone) != offset(b, zone)]


def offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    """The zone's offset at the instant."""
    found = instant.astimezone(zone).utcoffset()
    assert found is not None
    return found


def change_between(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The one minute between the two at which the offset becomes that of `after`."""
    while after - before > MINUTE:
        middle = before + (after - before) // 2 // MINUTE * MINUTE
        before, after = (before, middle) if offset(middle, zone) == offset(after, zone) else (middle, after)
    return after


def walk(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[Minute]:
    """Every minute from start to end, the end included."""
    for n in range((end - start) // MINUTE + 1):
        instant = start + n * MINUTE
        yield Minute(instant, instant.astimezone(zone).replace(tzinfo=None))


def sweep_wall_clock(zone: ZoneInfo, change: datetime) -> int:
    """Each minute that the clocks show or skip around the change comes due once, and when it should."""
    minutes = list(walk(change - AROUND - 2 * HOUR, change + AROUND + 2 * HOUR, zone))
    locale, cases = Locale(timezone=zone), 0
    reached = minutes[0].shown
    for minute in minutes:
        while reached < minute.shown:
            reached += MINUTE
            if abs(minute.instant - change) <= AROUND:
                at = reached.time()
                assert instant_of(reached.date(), at, zone) == minute.instant, (zone, reached)
                assert next_wall_clock(at, locale, minute.instant - MINUTE / 60) == minute.instant, (zone, reached)
                following = next_wall_clock(at, locale, minute.instant)
                assert following is not None
                assert following - minute.instant > 20 * HOUR or reached.date() != minute.shown.date(), (
                    zone,
                    reached,
                )
                cases += 1
    return cases


def sweep_days(zone: ZoneInfo, at: time) -> int:
    """The time comes due once for every local date of the four years."""
    locale, instant, dues = Locale(timezone=zone), FIRST, 0
    while (following := next_wall_clock(at, locale, instant)) is not None and following < LAST:
        instant, dues = following, dues + 1
    assert abs(dues - (LAST - FIRST).days) <= 1, zone
    return dues


def sweep_windows(zone: ZoneInfo, change: datetime) -> int:
    """Windows that begin or end near what the clocks show at the change hold in the minutes that they list."""
    minutes = list(walk(change - AROUND, change + AROUND, zone))
    nothing, locale, cases = home(), Locale(timezone=zone), 0
    for begin in (minutes[n].shown.hour * 60 + minutes[n].shown.minute for n in (60, 119, 120, 180)):
        for length in LENGTHS:
            window = TimeWindow(start=clock(begin), end=clock(begin + length), locale=locale)
            listed = {clock(begin + n) for n in range(length)}
            for minute in minutes:
                for instant in (minute.instant, minute.instant + MINUTE - MINUTE / 60):
                    holds = window.holds(nothing, instant).holds
                    assert holds is (minute.shown.time() in listed), (zone, minute, window)
                cases += 2
    return cases


def clock(minutes: int) -> time:
    """The time of day so many minutes after midnight."""
    return time(minutes // 60 % 24, minutes % 60)


def sweep_cron(change: datetime) -> int:
    """A daily expression fires once a UTC day, whatever the zone's clocks do."""
    for minute in range(-120, 121, 10):
        due = change + minute * MINUTE
        cron = Cron.parse(f"{due.second} {due.minute} {due.hour} * * *")
        assert cron.next_after(due - MINUTE) == due
        assert cron.next_after(due) == due + DAY
    return 25


def places() -> list[Locale]:
    """A home in the principal place of every zone that has one."""
    rows = (line.split("\t") for line in (files("tzdata") / "zoneinfo" / "zone.tab").read_text().splitlines())
    return [place(row[1], row[2]) for row in rows if not row[0].startswith("#")]


def place(coordinates: str, zone: str) -> Locale:
    """A home where ISO 6709 says, as `+5230+01322` or with seconds."""
    cut = max(coordinates.rfind("+"), coordinates.rfind("-"))
    latitude, longitude = degrees(coordinates[:cut], 2), degrees(coordinates[cut:], 3)
    return Locale(timezone=load_zone(zone), latitude=latitude, longitude=longitude)


def degrees(text: str, digits: int) -> float:
    """Degrees, minutes and perhaps seconds as one number."""
    sign, numbers = (-1 if text[0] == "-" else 1), text[1:].ljust(digits + 4, "0")
    whole, minutes, seconds = numbers[:digits], numbers[digits : digits + 2], numbers[digits + 2 :]
    return sign * (int(whole) + int(minutes) / 60 + int(seconds) / 3600)


def sweep_sun(locale: Locale, change: datetime) -> int:
    """The three days around the change have their events, each once, and where another formula puts them."""
    today = locale.local(change).date()
    days = {today + n * DAY: sun_day(locale, today + n * DAY) for n in (-1, 0, 1)}
    for event in SunEvent:
        expected = [found for day in days.values() if (found := day.instant_of(event)) is not None]
        first = locale.noon(today - 2 * DAY) + (12 * HOUR if event is SunEvent.SUNSET else timedelta())
        for due in expected:
            assert next_event(event, locale, due - MINUTE, offset=timedelta()) == due > first
            assert_formula_agrees(event, locale, due)
        for one, two in itertools.pairwise(expected):
            assert 23 * HOUR < two - one < 25 * HOUR
            assert next_event(event, locale, one, offset=timedelta()) == two
    for date, day in days.items():
        if day.sunrise is not None and day.sunset is not None and abs(locale.latitude or 0) < 60:
            assert locale.local(day.sunrise).date() == locale.local(day.sunset).date() == date, locale
    return 6


def assert_formula_agrees(event: SunEvent, locale: Locale, due: datetime) -> None:
    """The closed formula gives the same time of day, away from the poles; about midnight UTC it may miss the date."""
    assert locale.latitude is not None and locale.longitude is not None
    if abs(locale.latitude) > 60:
        return
    observer = astral.Observer(locale.latitude, locale.longitude)
    formula = astral.sun.sunrise if event is SunEvent.SUNRISE else astral.sun.sunset
    apart = (formula(observer, due.date()) - due) % DAY
    assert min(apart, DAY - apart) < 4 * MINUTE, (locale, event, due)


@pytest.mark.slow(minutes=1)
def test_every_zone_fires_once_a_day_and_opens_its_windows_to_the_minute() -> None:
    zones = [load_zone(name) for name in zone_names()]
    cases: dict[str, int] = dict.fromkeys(("changes", "wall clock", "days", "windows", "cron", "sun"), 0)
    for zone in {offsets(zone): zone for zone in zones}.values():
        cases["days"] += sweep_days(zone, time(2, 30))
        for change in clock_changes(zone):
            cases["changes"] += 1
            cases["wall clock"] += sweep_wall_clock(zone, change)
            cases["windows"] += sweep_windows(zone, change)
            cases["cron"] += sweep_cron(change)
    for locale in places():
        changes = clock_changes(locale.timezone) or [FIRST + 80 * DAY, FIRST + 173 * DAY, FIRST + 355 * DAY]
        cases["sun"] += sum(sweep_sun(locale, change) for change in changes)
    print(f"{len(zones)} zones: " + ", ".join(f"{count} {what}" for what, count in cases.items()))


def offsets(zone: ZoneInfo) -> tuple[object, ...]:
    """All that the four years know of a zone: many zones show the same clocks, and one of each sort is enough."""
    return (offset(FIRST, zone), *((change, offset(change, zone)) for change in clock_changes(zone)))
