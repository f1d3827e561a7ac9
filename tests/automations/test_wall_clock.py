"""Wall clock and windows of the day, at the edges of clock changes in zones with peculiar ones."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest

from appliance.automations.time_conditions import TimeWindow
from appliance.automations.times_of_day import instant_of, next_wall_clock, parse_time
from appliance.errors import Invalid
from appliance.home_locale import Locale, load_zone
from tests.automations.homes import BERLIN, at, home
from tests.fakes.rows import each_row


def window(text: str) -> TimeWindow:
    """The window that a text like `22:00 to 06:00` states."""
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
        ("08:00 to 17:30", "2026-06-01T08:00:00", True),
        ("08:00 to 17:30", "2026-06-01T17:29:59.999999", True),
        ("08:00 to 17:30", "2026-06-01T17:30:00", False),
        ("22:00 to 06:00", "2026-06-01T21:59:59", False),
        ("22:00 to 06:00", "2026-06-01T22:00:00", True),
        ("22:00 to 06:00", "2026-06-01T00:00:00", True),
        ("22:00 to 06:00", "2026-06-01T05:59:59", True),
        ("22:00 to 06:00", "2026-06-01T06:00:00", False),
        ("00:00 to 00:01", "2026-06-01T00:00:59", True),
        ("00:00 to 00:01", "2026-06-01T00:01:00", False),
        ("18:00 to 00:00", "2026-06-01T23:59:59", True),
        ("18:00 to 00:00", "2026-06-01T00:00:00", False),
        ("02:30 to 03:30", "2026-03-29T03:00:00", True),
        ("02:00 to 02:30", "2026-03-29T03:00:00", False),
        ("02:15 to 02:45", "2026-10-25T02:30:00", True),
    ],
)
def test_a_window_includes_its_start_and_not_its_end(text: str, local: str, holds: bool) -> None:
    for fold in (0, 1):
        instant = datetime.fromisoformat(local).replace(tzinfo=BERLIN.timezone, fold=fold)
        assert window(text).holds(home(), instant).holds is holds


@each_row(("text", "parsed"), [("00:00", time(0)), ("23:59", time(23, 59)), ("07:05", time(7, 5))])
def test_a_time_is_two_digits_a_colon_and_two_digits(text: str, parsed: time) -> None:
    assert parse_time(text) == parsed


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
def test_what_is_no_time_is_refused(value: object, shown: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_time(value)
    assert str(refused.value) == f"must be a time like 07:30, not {shown}"
