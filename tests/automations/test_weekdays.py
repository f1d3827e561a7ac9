"""Schedules by weekday, date, and local cron expressions agree with an enumeration of all minutes around each
clock change from 2020 to 2040."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from appliance.automations.schedule.cron import Cron
from appliance.automations.triggers.base import TimedTrigger
from appliance.automations.triggers.time import CronTrigger, DateTrigger, SunTrigger, WallClock
from appliance.home_locale import Locale, load_zone, zone_names
from tests.automations.homes import BERLIN, TROMSO, at

FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)

NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


@dataclass(frozen=True, slots=True)
class Shift:
    """A clock change: its first minute, and the offset from UTC before and after it."""

    at: datetime
    before: timedelta | None
    after: timedelta | None


def shifts_of(zone: ZoneInfo) -> tuple[Shift, ...]:
    """Return the zone's clock changes in the twenty years. Two changes within a day are combined."""
    found, day = [], FIRST
    while day < LAST:
        before, after = day.astimezone(zone).utcoffset(), (day + DAY).astimezone(zone).utcoffset()
        if before != after:
            low, high = day, day + DAY
            while high - low > MINUTE:
                middle = low + ((high - low) // 2 // MINUTE) * MINUTE
                is_before = middle.astimezone(zone).utcoffset() == before
                low, high = (middle, high) if is_before else (low, middle)
            found.append(Shift(high, before, after))
        day += DAY
    return tuple(found)


def moments(zone: ZoneInfo, start: datetime, end: datetime) -> dict[datetime, datetime]:
    """Return the instant of each local minute, including skipped ones, found minute by minute."""
    found: dict[datetime, datetime] = {}
    reached = start.astimezone(zone).replace(tzinfo=None)
    instant = start
    while instant < end:
        shown = instant.astimezone(zone).replace(tzinfo=None)
        while reached < shown:
            reached += MINUTE
            found[reached] = instant
        instant += MINUTE
    return found


def expected_times(
    found: Mapping[datetime, datetime], at_time: time, weekdays: frozenset[int], start: datetime
) -> list[datetime]:
    """Return the moments after the start with this local time, on these local dates."""
    days = sorted({shown.date() for shown in found})
    dues = [found.get(datetime.combine(day, at_time)) for day in days if not weekdays or day.weekday() in weekdays]
    return [due for due in dues if due is not None and due > start]


def listed(trigger: TimedTrigger, start: datetime, end: datetime) -> list[datetime]:
    """Return the trigger's due times between the two instants."""
    found, instant = [], start
    while (due := trigger.next_after(instant)) is not None and due < end:
        found.append(due)
        instant = due
    return found


def compare(zone: ZoneInfo, shift: Shift) -> int:
    """Compare each kind of time with the enumeration around the clock change. Return the number of cases."""
    locale = Locale(timezone=zone)
    start, end = shift.at - DAY, shift.at + 2 * DAY
    found = moments(zone, start - DAY, end)
    around = [shown for shown, instant in found.items() if abs(instant - shift.at) <= 90 * MINUTE]
    times = sorted({around[0].time(), around[-1].time(), *(shown.time() for shown in around[::23])})
    day = shift.at.astimezone(zone)
    cases = 0
    for at_time, weekdays in itertools.product(times, (frozenset[int](), frozenset({day.weekday(), 2}))):
        names = ",".join(NAMES[each] for each in sorted(weekdays)) or "*"
        cron = Cron.parse(f"0 {at_time.minute} {at_time.hour} * * {names}")
        for trigger in (
            WallClock(at=at_time, weekdays=weekdays, locale=locale),
            CronTrigger(cron=cron, locale=locale),
        ):
            due = listed(trigger, start, end)
            assert due == expected_times(found, at_time, weekdays, start), (zone, shift, at_time, names, trigger.type)
            cases += 1
        on_day = DateTrigger(year=day.year, month=day.month, day=day.day, at=at_time, locale=locale)
        due_then = found.get(datetime.combine(day.date(), at_time))
        assert on_day.next_after(start - DAY) == due_then, (zone, shift, at_time)
    return cases


def distinct_zones(step: int) -> dict[tuple[Shift, ...], str]:
    """Check every `step`-th zone. Return one zone for each different series of clock changes in the twenty years."""
    return {shifts_of(load_zone(name)): name for name in sorted(zone_names(), reverse=True)[::step]}


@pytest.mark.slow
@pytest.mark.parametrize(("zone_step", "step"), [(6, 37), pytest.param(1, 5, marks=pytest.mark.release)])
def test_times_on_weekdays_agree_with_a_walk_around_the_changes_of_all_zones(zone_step: int, step: int) -> None:
    zones = distinct_zones(zone_step)
    changes = [(name, shift) for shifts, name in zones.items() for shift in shifts][::step]
    cases = sum(compare(load_zone(name), shift) for name, shift in changes)
    print(f"{len(zone_names())} zones, {len(zones)} courses, {len(changes)} clock changes, {cases} cases")


def test_a_doubled_local_cron_time_fires_once_and_a_skipped_one_at_the_end_of_the_gap() -> None:
    every = CronTrigger(cron=Cron.parse("0 */20 2 * * *"), locale=BERLIN)
    autumn = listed(every, at("2026-10-24T22:00:00"), at("2026-10-25T22:00:00"))
    assert autumn == [at(f"2026-10-25T00:{minute:02}:00") for minute in (0, 20, 40)]
    spring = listed(every, at("2026-03-28T23:00:00"), at("2026-03-29T22:00:00"))
    assert spring == [at("2026-03-29T01:00:00")]
    for fixed in ("* * 2 * * *", "0 */20 2 * * *"):  # called while the clock is in the repeated hour
        trigger = CronTrigger(cron=Cron.parse(fixed), locale=BERLIN)
        assert trigger.next_after(at("2026-10-25T01:10:00")) == at("2026-10-26T01:00:00")


@pytest.mark.parametrize("expression", ["0 */20 * * * *", "0 7 * * * *", "0 30 */2 * * *", "0 0,30 1-5/2 * * *"])
@pytest.mark.parametrize(
    "name",
    [
        "Europe/Berlin",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("Australia/Lord_Howe", "America/New_York")),
    ],
)
def test_a_local_cron_of_every_hour_runs_through_a_doubled_hour(name: str, expression: str) -> None:
    locale = Locale(timezone=load_zone(name))
    cron = Cron.parse(expression)
    trigger = CronTrigger(cron=cron, locale=locale)
    for shift in shifts_of(locale.timezone)[12:14]:
        start, end = shift.at - 6 * 60 * MINUTE, shift.at + 6 * 60 * MINUTE
        due, instant = [], start
        while (instant := instant + MINUTE) < end:
            shown = locale.local(instant).replace(tzinfo=None)
            first = locale.local(instant - MINUTE).replace(tzinfo=None) + MINUTE
            found = cron.next_shown(min(first, shown) - timedelta(seconds=1))
            if found is not None and found <= shown and (first <= shown or found == shown):
                due.append(instant)
        assert listed(trigger, start, end) == due
    assert len(listed(trigger, start, end)) > 4


def test_a_local_cron_of_every_second_runs_through_a_doubled_hour() -> None:
    every_second = CronTrigger(cron=Cron.parse("* * * * * *"), locale=BERLIN)
    for seconds in (0, 3599, 3600, 5000, 7199, 7200):
        instant = at("2026-10-25T00:00:00") + timedelta(seconds=seconds)
        assert every_second.next_after(instant) == instant + timedelta(seconds=1)


def test_dates_come_each_year_or_once_and_the_29th_of_february_when_there_is_one() -> None:
    eve = DateTrigger(month=12, day=24, at=time(18), locale=BERLIN)
    assert eve.next_after(at("2026-12-24T16:59:59")) == at("2026-12-24T17:00:00")
    assert eve.next_after(at("2026-12-24T17:00:00")) == at("2027-12-24T17:00:00")
    leap = DateTrigger(month=2, day=29, at=time(0), locale=BERLIN)
    assert leap.next_after(at("2026-01-01T00:00:00")) == at("2028-02-28T23:00:00")
    once = DateTrigger(year=2027, month=1, day=1, at=time(0), locale=BERLIN)
    assert once.next_after(at("2026-06-01T00:00:00")) == at("2026-12-31T23:00:00")
    assert once.next_after(at("2026-12-31T23:00:00")) is None


def test_sunsets_come_on_their_own_weekdays_whatever_the_offset_and_not_in_the_polar_night() -> None:
    late = SunTrigger(type="sunset", offset_mins=8 * 60, weekdays=frozenset({4}), locale=BERLIN)
    due = late.next_after(at("2026-06-01T00:00:00"))
    assert due is not None and BERLIN.local(due).weekday() == 5 and BERLIN.local(due).date() == date(2026, 6, 6)
    north = SunTrigger(type="sunrise", weekdays=frozenset({0}), locale=TROMSO)
    found = north.next_after(at("2026-11-30T00:00:00"))
    assert found is not None and TROMSO.local(found).weekday() == 0 and found > at("2027-01-14T00:00:00")
