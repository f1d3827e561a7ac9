"""Times of day: clock changes in unusual zones, and sunrise and sunset at any place."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from appliance.automations.conditions.sun import Edge, SunCondition
from appliance.automations.conditions.time import TimeWindow
from appliance.automations.schedule.sun import SunEvent, next_event, sun_day
from appliance.automations.schedule.wall_clock import instant_of, next_wall_clock, parse_time
from appliance.errors import Invalid
from appliance.home_locale import Locale, load_zone
from tests.automations.homes import BERLIN, TROMSO, at, home
from tests.fakes.rows import each_row


def window(text: str) -> TimeWindow:
    """Parse a window such as `22:00 to 06:00`."""
    start, _, end = text.partition(" to ")
    return TimeWindow(start=parse_time(start), end=parse_time(end), locale=BERLIN)


@each_row(
    ("zone", "day", "shown", "instant"),
    [
        ("Europe/Berlin", "2026-06-01", "07:30", "2026-06-01T05:30"),
        ("Europe/Berlin", "2026-03-29", "01:59", "2026-03-29T00:59"),
        ("Europe/Berlin", "2026-03-29", "02:00", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29", "02:30", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29", "02:59", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29", "03:00", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29", "03:01", "2026-03-29T01:01"),
        ("Europe/Berlin", "2026-10-25", "01:59", "2026-10-24T23:59"),
        ("Europe/Berlin", "2026-10-25", "02:00", "2026-10-25T00:00"),
        ("Europe/Berlin", "2026-10-25", "02:59", "2026-10-25T00:59"),
        ("Europe/Berlin", "2026-10-25", "03:00", "2026-10-25T02:00"),
        ("Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:30"),
        ("Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45"),
        ("Africa/Cairo", "2026-04-24", "00:30", "2026-04-23T22:00"),
        ("Africa/Cairo", "2026-10-29", "23:30", "2026-10-29T20:30"),
        ("America/Havana", "2026-11-01", "00:30", "2026-11-01T04:30"),
        ("America/Scoresbysund", "2026-03-28", "23:30", "2026-03-29T01:00"),
        ("America/Scoresbysund", "2026-03-29", "00:00", "2026-03-29T01:00"),
        ("Pacific/Kiritimati", "2026-01-01", "00:00", "2025-12-31T10:00"),
        ("Pacific/Niue", "2026-01-01", "23:59", "2026-01-02T10:59"),
        ("Asia/Kathmandu", "2026-01-01", "05:45", "2026-01-01T00:00"),
        ("Pacific/Apia", "2011-12-30", "12:00", None),
        ("Pacific/Apia", "2011-12-31", "00:00", "2011-12-30T10:00"),
        ("Africa/Monrovia", "1972-01-07", "00:30", "1972-01-07T00:44:30"),
    ],
)
def test_a_date_and_a_time_are_one_instant(zone: str, day: str, shown: str, instant: str | None) -> None:
    expected = None if instant is None else at(instant)
    assert instant_of(date.fromisoformat(day), parse_time(shown), load_zone(zone)) == expected


@each_row(
    ("zone", "shown", "after", "due"),
    [
        ("Europe/Berlin", "07:30", "2026-06-01T05:29:59.999999", "2026-06-01T05:30"),
        ("Europe/Berlin", "07:30", "2026-06-01T05:30", "2026-06-02T05:30"),
        ("Europe/Berlin", "02:30", "2026-03-28T01:30", "2026-03-29T01:00"),
        ("Europe/Berlin", "02:30", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("Europe/Berlin", "02:30", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("Europe/Berlin", "00:00", "2026-12-31T22:59:59", "2026-12-31T23:00"),
        ("America/Scoresbysund", "23:30", "2026-03-29T01:00", "2026-03-30T00:30"),
        ("Pacific/Kiritimati", "00:00", "2026-01-01T09:59", "2026-01-01T10:00"),
        ("Pacific/Niue", "23:59", "2026-01-01T10:58", "2026-01-01T10:59"),
        ("Pacific/Apia", "12:00", "2011-12-29T22:00", "2011-12-30T22:00"),
    ],
)
def test_the_next_time_is_strictly_after_the_instant(zone: str, shown: str, after: str, due: str) -> None:
    locale = Locale(timezone=load_zone(zone))
    assert next_wall_clock(parse_time(shown), locale, at(after)) == at(due)


@each_row(
    ("text", "local", "holds"),
    [
        ("08:00 to 17:30", "2026-06-01T07:59:59.999999", False),
        ("08:00 to 17:30", "2026-06-01T17:29:59.999999", True),
        ("08:00 to 17:30", "2026-06-01T17:30:00", False),
        ("22:00 to 06:00", "2026-06-01T22:00:00", True),
        ("22:00 to 06:00", "2026-06-01T05:59:59", True),
        ("22:00 to 06:00", "2026-06-01T06:00:00", False),
        ("00:00 to 00:01", "2026-06-01T00:00:59", True),
        ("00:00 to 00:01", "2026-06-01T00:01:00", False),
        ("18:00 to 00:00", "2026-06-01T00:00:00", False),
        ("02:30 to 03:30", "2026-03-29T03:00:00", True),
        ("02:00 to 02:30", "2026-03-29T03:00:00", False),
        ("02:15 to 02:45", "2026-10-25T02:30:00", True),
    ],
)
def test_a_window_includes_its_start_and_not_its_end(text: str, local: str, holds: bool) -> None:
    for fold in (0, 1):
        instant = datetime.fromisoformat(local).replace(tzinfo=BERLIN.timezone, fold=fold)
        assert window(text).evaluate(home(), instant).holds is holds


@each_row(
    ("value", "shown"),
    [
        ("7:30", "'7:30'"),
        ("07:60", "'07:60'"),
        ("25:00", "'25:00'"),
        ("24:00", "'24:00'; midnight is 00:00"),
        ("07:30:00", "'07:30:00'"),
        ("07:30\n", r"'07:30\n'"),
        ("٠٧:٣٠", "'٠٧:٣٠'"),
        (730, "730"),
        (None, "null"),
    ],
)
def test_an_invalid_time_is_refused(value: object, shown: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_time(value)
    assert str(refused.value) == f"must be a time like 07:30, not {shown}"


TABLES = Path(__file__).parent.parent / "fixtures" / "sun" / "usno_reference_testdata.csv"

ZERO, DAY, MINUTE = timedelta(), timedelta(days=1), timedelta(minutes=1)


def rows() -> Iterator[tuple[Locale, SunEvent, datetime]]:
    """Yield the observatory's tables: the minute of each event, by UTC date."""
    lines = (line for line in TABLES.read_text().splitlines() if not line.startswith("#"))
    for day, latitude, longitude, kind, *times in csv.reader(lines):
        assert kind == "NORMAL"
        place = Locale(timezone=load_zone("UTC"), latitude=float(latitude), longitude=float(longitude))
        for event, shown in zip(SunEvent, times, strict=True):
            yield place, event, datetime.combine(date.fromisoformat(day[:10]), time.fromisoformat(shown), UTC)


def to_the_minute(instant: datetime) -> datetime:
    return (instant + MINUTE / 2).replace(second=0, microsecond=0)


@pytest.mark.slow
def test_sun_times_agree_with_the_observatory_to_the_minute() -> None:
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
def test_a_polar_day_or_night_has_no_event(
    latitude: float, day: str, is_polar_day: bool, is_polar_night: bool
) -> None:
    found = sun_day(Locale(timezone=load_zone("UTC"), latitude=latitude, longitude=18.96), date.fromisoformat(day))
    assert (found.is_polar_day, found.is_polar_night) == (is_polar_day, is_polar_night)
    if is_polar_day or is_polar_night:
        assert found.sunrise is None and found.sunset is None
    else:
        assert found.sunrise is not None and found.sunset is not None
    assert found.is_past_without(SunEvent.SUNRISE) is found.was_up


def test_sun_events_return_after_the_polar_night_and_day() -> None:
    risen = next_event(SunEvent.SUNRISE, TROMSO, at("2026-12-01T12:00"), offset=ZERO)
    sunk = next_event(SunEvent.SUNSET, TROMSO, at("2026-06-01T12:00"), offset=ZERO)
    assert risen is not None and at("2027-01-13") < risen < at("2027-01-18")
    assert sunk is not None and at("2026-07-24") < sunk < at("2026-07-30")


def test_without_an_event_within_a_year_there_is_no_time() -> None:
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


HOME = home()
REYKJAVIK = Locale(timezone=load_zone("Atlantic/Reykjavik"), latitude=64.13, longitude=-21.9)


def edge(text: str | None) -> Edge | None:
    """Parse an edge such as `sunset-30`."""
    if text is None:
        return None
    name = "sunrise" if text.startswith("sunrise") else "sunset"
    return Edge(event=SunEvent(name), offset_mins=int(text.removeprefix(name) or 0))


def position(after: str | None, before: str | None, locale: Locale = BERLIN) -> SunCondition:
    return SunCondition(after=edge(after), before=edge(before), locale=locale)


def local(text: str, locale: Locale = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=locale.timezone)


# In Berlin on 1 March 2026, the sun rises at 06:53 and sets at 17:45.
@each_row(
    ("after", "before", "holding"),
    [
        ("sunrise", None, ["07", "12"]),
        ("sunset", None, ["00", "06", "18", "23"]),
        (None, "sunrise", ["00", "06", "18", "23"]),
        (None, "sunset", ["07", "12"]),
        ("sunrise", "sunset", ["07", "12"]),
        ("sunset", "sunrise", ["00", "06", "18", "23"]),
        ("sunset-120", None, ["00", "06", "18", "23"]),
        ("sunset+360", None, ["00", "06"]),
        (None, "sunrise-60", ["00", "18", "23"]),
        ("sunset+900", None, []),
        (None, "sunset-720", []),
        ("sunrise-60", "sunrise+30", ["06", "07"]),
        ("sunset+60", "sunrise-60", ["00", "23"]),
        ("sunrise+60", "sunset-60", ["12"]),
        ("sunrise+650", "sunset-650", ["00", "06", "18", "23"]),
        ("sunset+1440", "sunrise+1440", ["00", "06", "18", "23"]),
        ("sunset-1440", "sunrise-1440", ["00", "06", "18", "23"]),
    ],
)
def test_hours_within_a_window(after: str | None, before: str | None, holding: list[str]) -> None:
    hours = ["00", "06", "07", "12", "18", "23"]
    where = position(after, before)
    assert [hour for hour in hours if where.evaluate(HOME, local(f"2026-03-01T{hour}:00")).holds] == holding


@pytest.mark.parametrize("offset", [-45, 0, 45])
@pytest.mark.parametrize("event", list(SunEvent))
def test_an_edge_includes_its_own_second(event: SunEvent, offset: int) -> None:
    due = sun_day(BERLIN, local("2026-03-01T12:00").date()).instant_of(event)
    assert due is not None
    due += timedelta(minutes=offset)
    other = SunEvent.SUNSET if event is SunEvent.SUNRISE else SunEvent.SUNRISE
    this = Edge(event=event, offset_mins=offset)
    for instant, is_after in ((due - timedelta(seconds=1), False), (due, True)):
        assert SunCondition(after=this, locale=BERLIN).evaluate(HOME, instant).holds is is_after
        assert SunCondition(before=this, locale=BERLIN).evaluate(HOME, instant).holds is not is_after
        assert (
            SunCondition(after=this, before=Edge(event=other), locale=BERLIN).evaluate(HOME, instant).holds
            is is_after
        )
        assert (
            SunCondition(after=Edge(event=other), before=this, locale=BERLIN).evaluate(HOME, instant).holds
            is not is_after
        )


POLAR_NIGHT, POLAR_DAY = at("2026-12-21T11:00"), at("2026-06-21T23:00")


@each_row(
    ("after", "before", "in_polar_night", "on_polar_day"),
    [
        ("sunset", None, True, False),
        (None, "sunrise", True, False),
        ("sunset", "sunrise", True, False),
        ("sunset+30", "sunrise-30", True, False),
        ("sunrise", None, False, True),
        (None, "sunset", False, True),
        ("sunrise", "sunset", False, True),
    ],
)
def test_a_polar_night_is_after_sunset_and_before_sunrise_and_a_polar_day_the_reverse(
    after: str | None, before: str | None, in_polar_night: bool, on_polar_day: bool
) -> None:
    assert position(after, before, TROMSO).evaluate(HOME, POLAR_NIGHT).holds is in_polar_night
    assert position(after, before, TROMSO).evaluate(HOME, POLAR_DAY).holds is on_polar_day


@pytest.mark.slow
def test_day_and_night_share_every_hour_of_a_polar_year() -> None:
    day, night = position("sunrise", "sunset", TROMSO), position("sunset", "sunrise", TROMSO)
    hours = (at("2026-01-01T00:30") + timedelta(hours=n) for n in range(0, 365 * 24, 5))
    changes, was_day = 0, None
    for hour in hours:
        is_day = day.evaluate(HOME, hour).holds
        assert night.evaluate(HOME, hour).holds is not is_day, hour
        changes += is_day is not was_day
        was_day = is_day
    assert 400 < changes < 600


PLACES = {
    "Berlin": BERLIN,
    "Reykjavik": REYKJAVIK,
    "Tromso": TROMSO,
    "Sydney": Locale(timezone=load_zone("Australia/Sydney"), latitude=-33.87, longitude=151.21),
    "Quito": Locale(timezone=load_zone("America/Guayaquil"), latitude=-0.18, longitude=-78.47),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.slow
def test_one_edge_selects_day_or_night_for_a_year(place: str) -> None:
    locale = PLACES[place]
    day, night = position("sunrise", "sunset", locale), position("sunset", "sunrise", locale)
    one_edge = {
        True: [position("sunrise", None, locale), position(None, "sunset", locale)],
        False: [position("sunset", None, locale), position(None, "sunrise", locale)],
    }
    for n in range(0, 365 * 24, 31):
        instant = at("2026-01-01T00:30") + timedelta(hours=n)
        is_day = day.evaluate(HOME, instant).holds
        assert night.evaluate(HOME, instant).holds is not is_day
        for holds_by_day, conditions in one_edge.items():
            for condition in conditions:
                assert condition.evaluate(HOME, instant).holds is (holds_by_day is is_day), (condition, instant)


@pytest.mark.parametrize("minutes", [-90, 180])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.slow
def test_an_offset_moves_the_only_end_for_a_year(place: str, minutes: int) -> None:
    locale, offset = PLACES[place], timedelta(minutes=minutes)
    after, day = position(f"sunset{minutes:+}", None, locale), position("sunrise", "sunset", locale)
    for n in range(0, 365, 3):
        noon = at("2026-01-01T12:00") + timedelta(days=n)
        sunset = next_event(SunEvent.SUNSET, locale, noon, offset=ZERO)
        sunrise = None if sunset is None else next_event(SunEvent.SUNRISE, locale, sunset, offset=ZERO)
        if sunset is None or sunrise is None or sunrise - sunset > timedelta(days=2):
            continue  # the polar day or night begins
        is_empty = sunset + offset >= sunrise
        for instant in (sunset + offset, sunrise - timedelta(seconds=1)):
            assert after.evaluate(HOME, instant).holds is not is_empty, instant
        before = sunset + offset - timedelta(seconds=1)
        if minutes > 0 or day.evaluate(HOME, before).holds:
            assert not after.evaluate(HOME, before).holds


@pytest.mark.parametrize(
    ("after", "before", "locale", "warning"),
    [
        ("sunset+180", None, BERLIN, None),
        ("sunset+180", None, REYKJAVIK, "never holds around 06-21: sunset +180 min is after the next sunrise"),
        (None, "sunset-400", BERLIN, None),
        (
            None,
            "sunset-500",
            BERLIN,
            "never holds around 01-01: sunset -500 min is before the previous sunrise",
        ),
        ("sunset+180", "sunrise", REYKJAVIK, None),
        ("sunset", None, TROMSO, None),
    ],
)
def test_an_impossible_offset_is_reported(
    after: str | None, before: str | None, locale: Locale, warning: str | None
) -> None:
    assert position(after, before, locale).find_empty() == warning


def test_while_the_sun_is_up_after_midnight_it_is_not_yet_night() -> None:
    night, minute = position("sunset", "sunrise", REYKJAVIK), timedelta(minutes=1)
    midnight = local("2026-06-22T00:00", REYKJAVIK)
    assert not night.evaluate(HOME, midnight + minute).holds
    assert night.evaluate(HOME, midnight + 10 * minute).holds


@each_row(
    ("after", "before", "instant", "locale", "reason"),
    [
        (
            "sunset+30",
            "sunrise-15",
            local("2026-03-01T15:02"),
            BERLIN,
            "time was 15:02, needs after sunset +30 min (18:15) and before sunrise -15 min (06:38)",
        ),
        ("sunset", None, local("2026-06-01T12:00"), BERLIN, "time was 12:00, needs after sunset (21:19)"),
        (None, "sunrise", local("2026-06-01T12:00"), BERLIN, "time was 12:00, needs before sunrise (04:49)"),
        (
            "sunset+180",
            None,
            local("2026-06-21T12:00"),
            BERLIN,
            "time was 12:00, needs after sunset +180 min (00:33 tomorrow)",
        ),
        ("sunrise", None, local("2026-06-01T23:00"), BERLIN, "time was 23:00, needs after sunrise (04:48 tomorrow)"),
        (None, "sunset", local("2026-06-01T01:00"), BERLIN, "time was 01:00, needs before sunset (21:18 yesterday)"),
        (None, "sunrise", POLAR_DAY, TROMSO, "time was 01:00 on a polar day, needs before sunrise"),
        ("sunrise", None, POLAR_NIGHT, TROMSO, "time was 12:00 in the polar night, needs after sunrise"),
    ],
)
def test_a_failed_condition_shows_the_compared_times(
    after: str | None, before: str | None, instant: datetime, locale: Locale, reason: str
) -> None:
    outcome = position(after, before, locale).evaluate(HOME, instant)
    assert not outcome.holds
    assert outcome.refusal == reason
