"""Schedules by weekday, date and local cron agree with brute force, over every clock change from 2020 to 2040."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from appliance.automations.cron import Cron
from appliance.automations.sun import SunEvent
from appliance.automations.time_triggers import CronTrigger, DateTrigger, SunTrigger, WallClock
from appliance.locale import Locale, load_zone, zone_names
from tests.automations.homes import BERLIN, TROMSO, at

FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def changes_of(zone: ZoneInfo) -> list[datetime]:
    """The first minute after each clock change of the twenty years."""
    found, day = [], FIRST
    while day < LAST:
        if day.astimezone(zone).utcoffset() != (day + DAY).astimezone(zone).utcoffset():
            low, high = day, day + DAY
            while high - low > MINUTE:
                middle = low + ((high - low) // 2 // MINUTE) * MINUTE
                is_before = middle.astimezone(zone).utcoffset() == day.astimezone(zone).utcoffset()
                low, high = (middle, high) if is_before else (low, middle)
            found.append(high)
        day += DAY
    return found


def brute_force(
    zone: ZoneInfo, start: datetime, end: datetime, at_time: time, weekdays: frozenset[int]
) -> list[datetime]:
    """When the zone's clocks come to show the time, on each wanted local date: minute by minute."""
    due: dict[date, datetime] = {}
    shown_before: datetime | None = None
    instant = start
    while instant < end:
        shown = instant.astimezone(zone).replace(tzinfo=None)
        day = shown.date()
        target = datetime.combine(day, at_time)
        is_skipped = shown_before is not None and shown_before < target < shown
        if (shown == target or is_skipped) and day not in due:
            due[day] = instant
        previous_day = day - DAY
        last = datetime.combine(previous_day, at_time)
        if shown_before is not None and shown_before < last < shown and previous_day == shown_before.date():
            due.setdefault(previous_day, instant)  # the gap reaches over midnight
        shown_before = shown if shown_before is None else max(shown, shown_before)
        instant += MINUTE
    return [instant for day, instant in sorted(due.items()) if not weekdays or day.weekday() in weekdays]


def listed(trigger: WallClock | CronTrigger, start: datetime, end: datetime) -> list[datetime]:
    """The due times of the trigger between the two."""
    found, instant = [], start
    while (due := trigger.next_after(instant)) is not None and due < end:
        found.append(due)
        instant = due
    return found


ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "Asia/Tehran",
    "Africa/Casablanca",
)


def compare(name: str, changes: list[datetime]) -> None:
    """Around these changes of the zone every way of saying a time agrees with brute force."""
    zone = load_zone(name)
    locale = Locale(timezone=zone)
    for change in changes:
        start, end = change - 2 * DAY, change + 2 * DAY
        before = change - MINUTE
        times = {
            (change + n * timedelta(minutes=17)).astimezone(zone).time().replace(second=0, fold=0)
            for n in (-5, -2, 0, 1)
        }
        times.add(before.astimezone(zone).time().replace(second=0, microsecond=0, fold=0))
        gap = (before.astimezone(zone).replace(tzinfo=None) + 10 * MINUTE).time().replace(fold=0)
        for each in sorted({*times, gap}):
            weekdays = frozenset({change.astimezone(zone).weekday(), 2})
            for days in (frozenset[int](), weekdays):
                wanted = [due for due in brute_force(zone, start, end, each, days) if due > start + DAY]
                trigger = WallClock(at=each, weekdays=days, locale=locale)
                assert listed(trigger, start + DAY, end) == wanted, (name, change, each, days)
            expression = f"0 {each.minute} {each.hour} * * *"
            cron = CronTrigger(cron=Cron.parse(expression), locale=locale)
            wanted = [due for due in brute_force(zone, start, end, each, frozenset()) if due > start + DAY]
            assert listed(cron, start + DAY, end) == wanted, (name, change, expression)


@pytest.mark.parametrize("name", ZONES[:2])
def test_times_on_weekdays_agree_with_brute_force_around_some_changes(name: str) -> None:
    compare(name, changes_of(load_zone(name))[12:14])


@pytest.mark.slow
@pytest.mark.parametrize("name", ZONES)
def test_times_on_weekdays_agree_with_brute_force_around_every_change(name: str) -> None:
    compare(name, changes_of(load_zone(name))[::3])


@pytest.mark.slow
def test_every_zone_has_each_wanted_weekday_once() -> None:
    for name in sorted(zone_names()):
        locale = Locale(timezone=load_zone(name))
        trigger = WallClock(at=time(2, 30), weekdays=frozenset({5, 6}), locale=locale)
        start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
        days = [locale.local(due) for due in listed(trigger, start, end)]
        assert {day.weekday() for day in days} <= {5, 6} and 206 <= len(days) <= 210, name


def test_a_doubled_local_cron_time_fires_once_and_a_skipped_one_at_the_end_of_the_gap() -> None:
    every = CronTrigger(cron=Cron.parse("0 */20 2 * * *"), locale=BERLIN)
    autumn = listed(every, at("2026-10-24T22:00:00"), at("2026-10-25T22:00:00"))
    assert autumn == [at(f"2026-10-25T00:{minute:02}:00") for minute in (0, 20, 40)]
    spring = listed(every, at("2026-03-28T23:00:00"), at("2026-03-29T22:00:00"))
    assert spring == [at("2026-03-29T01:00:00")]
    beat = CronTrigger(cron=Cron.parse("0 */20 * * * *"), locale=BERLIN)
    hours = listed(beat, at("2026-10-24T23:59:00"), at("2026-10-25T03:00:00"))
    assert [str(due)[11:16] for due in hours] == ["00:00", "00:20", "00:40", "02:00", "02:20", "02:40"]


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
    late = SunTrigger(sun_event=SunEvent.SUNSET, offset_mins=8 * 60, weekdays=frozenset({4}), locale=BERLIN)
    due = late.next_after(at("2026-06-01T00:00:00"))
    assert due is not None and BERLIN.local(due).weekday() == 5 and BERLIN.local(due).date() == date(2026, 6, 6)
    north = SunTrigger(sun_event=SunEvent.SUNRISE, weekdays=frozenset({0}), locale=TROMSO)
    found = north.next_after(at("2026-11-30T00:00:00"))
    assert found is not None and TROMSO.local(found).weekday() == 0 and found > at("2027-01-14T00:00:00")
