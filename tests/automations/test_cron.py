"""Cron: accepted and rejected expressions, and the error messages. The due times agree with an enumeration of all
seconds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest

from appliance.automations.schedule.cron import (
    CRON_MONTHS,
    CRON_WEEKDAYS,
    FIRST_YEAR,
    LAST_YEAR,
    NICKNAMES,
    Cron,
    _read,
)
from appliance.errors import Invalid
from tests.automations.homes import at
from tests.fakes.rows import each_row

FRIDAY = at("2026-11-20T12:00:00")

BOUNDS = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (FIRST_YEAR, LAST_YEAR))


@each_row(
    ("expression", "due"),
    [
        ("* * * * * *", "2026-11-20T12:00:01"),
        ("0 * * * * *", "2026-11-20T12:01:00"),
        ("0 0 12 * * *", "2026-11-21T12:00:00"),
        ("5/15 * * * * *", "2026-11-20T12:00:05"),
        ("7-20/5,59 * * * * ? *", "2026-11-20T12:00:07"),
        ("*/70 * * * * *", "2026-11-20T12:01:00"),
        ("0 0 0 * * 1", "2026-11-22T00:00:00"),
        ("0 0 0 * * 7", "2026-11-21T00:00:00"),
        ("0 0 0 * * SUN", "2026-11-22T00:00:00"),
        ("0 0 0 * * sunday", "2026-11-22T00:00:00"),
        ("0 0 0 * * Tues,THURS", "2026-11-24T00:00:00"),
        ("0 0 0 * * MON-FRI", "2026-11-23T00:00:00"),
        ("0 0 0 * * MON-FRI/2", "2026-11-23T00:00:00"),
        ("0 0 0 * * 1-5", "2026-11-22T00:00:00"),
        ("0 0 0 ? dec ?", "2026-12-01T00:00:00"),
        ("0 0 0 1 January-March *", "2027-01-01T00:00:00"),
        ("0 0 0 13 * FRI", "2027-08-13T00:00:00"),
        ("0 0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 0 0 29 2 SUN", "2032-02-29T00:00:00"),
        ("0 0 0 31 * *", "2026-12-31T00:00:00"),
        ("0 0 0 1 1 * 2030", "2030-01-01T00:00:00"),
        ("0 0 0 1 1 * 2030-2040/5", "2030-01-01T00:00:00"),
        ("59 59 23 31 12 * 2099", "2099-12-31T23:59:59"),
        ("@hourly", "2026-11-20T13:00:00"),
        ("@Daily", "2026-11-21T00:00:00"),
        ("@weekly", "2026-11-22T00:00:00"),
        ("@monthly", "2026-12-01T00:00:00"),
        (" @yearly ", "2027-01-01T00:00:00"),
        ("  0   0 0 1 1 *  ", "2027-01-01T00:00:00"),
        ("0 0 0 29 2 SUN 2028", None),
        ("0 0 0 30 2 *", None),
        ("0 0 0 31 4,6,9,11 *", None),
        ("* * * * * * 2025", None),
    ],
)
def test_the_next_time_is_the_first_after_noon_on_a_friday(expression: str, due: str | None) -> None:
    assert Cron.parse(expression).next_after(FRIDAY) == (None if due is None else at(due))


@each_row(
    ("expression", "sentence"),
    [
        ("", "must be `sec min hour day month weekday [year]`, not ''"),
        ("0 0 0 *", "must be `sec min hour day month weekday [year]`, not '0 0 0 *'"),
        ("0 0 0 * * * * *", "must be `sec min hour day month weekday [year]`, not '0 0 0 * * * * *'"),
        (
            "*/5 * * * *",
            "has five fields, but Lares expects the seconds first; for the usual meaning write '0 */5 * * * *'",
        ),
        (
            "0 9 * * 1-5",
            "has five fields, but Lares expects the seconds first; for the usual meaning write '0 0 9 * * MON-FRI'",
        ),
        ("@reboot", "must be an expression or one of @hourly, @daily, @weekly, @monthly, @yearly, not '@reboot'"),
        ("60 * * * * *", "second must be from 0 to 59, not 60"),
        ("* 60 * * * *", "minute must be from 0 to 59, not 60"),
        ("* * 24 * * *", "hour must be from 0 to 23, not 24"),
        ("* * * 0 * *", "day must be from 1 to 31, not 0"),
        ("* * * 32 * *", "day must be from 1 to 31, not 32"),
        ("* * * * 13 *", "month must be from 1 to 12, not 13"),
        ("* * * * * 0", "weekday must be from 1 to 7, 1 is SUN and 7 is SAT, not 0"),
        ("* * * * * 8", "weekday must be from 1 to 7, 1 is SUN and 7 is SAT, not 8"),
        ("* * * * * * 2100", "year must be from 1970 to 2099, not 2100"),
        ("*/0 * * * * *", "second needs a whole number of at least 1 after the slash, not 0"),
        ("*/ * * * * *", "second needs a whole number of at least 1 after the slash, not ''"),
        ("*/5/2 * * * * *", "second needs a whole number of at least 1 after the slash, not '5/2'"),
        ("1,,2 * * * * *", "second has an empty entry; write *, numbers, ranges like 1-5, steps like */5, or lists"),
        ("-5 * * * * *", "second has an empty entry; write *, numbers, ranges like 1-5, steps like */5, or lists"),
        ("1.5 * * * * *", "second '1.5' is unknown; write *, numbers, ranges like 1-5, steps like */5, or lists"),
        ("٣ * * * * *", "second '٣' is unknown; write *, numbers, ranges like 1-5, steps like */5, or lists"),
        ("* 50-10 * * * *", "minute '50-10' runs backwards; write '50-59,0-10'"),
        ("* * * * * FRI-MON", "weekday 'FRI-MON' runs backwards; write 'FRI-SAT,SUN-MON'"),
        ("* * * * * SAT-SUN", "weekday 'SAT-SUN' runs backwards; write 'SAT,SUN'"),
        ("* * * * nov-feb *", "month 'nov-feb' runs backwards; write 'NOV-DEC,JAN-FEB'"),
        ("* * * * Febuary *", "month 'Febuary' is unknown; did you mean FEBRUARY?"),
        ("* * * * * Mno", "weekday 'Mno' is unknown; did you mean MON?"),
        (
            "* * * * * xyzzy",
            "weekday 'xyzzy' is unknown; write *, numbers or names, ranges like 1-5, steps like */5, or lists",
        ),
        ("* * * L * *", "day 'L' is not supported; instead of L, W, or #, check the date in `execute`"),
        ("* * * LW * *", "day 'LW' is not supported; instead of L, W, or #, check the date in `execute`"),
        ("* * * 15w * *", "day '15w' is not supported; instead of L, W, or #, check the date in `execute`"),
        ("* * * * * FRI#2", "weekday 'FRI#2' is not supported; instead of L, W, or #, check the date in `execute`"),
        ("* * * * * 6L", "weekday '6L' is not supported; instead of L, W, or #, check the date in `execute`"),
        ("* " * 600, "must be a cron expression of at most 1000 characters"),
    ],
)
def test_invalid_expressions_are_refused_with_an_error(expression: str, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        Cron.parse(expression)
    assert str(refused.value) == sentence


@each_row(
    ("weekday", "warning"),
    [
        ("1-5", "1-5 means SUN-THU, because 1 is SUN; write SUN-THU, or MON-FRI if you count weekdays as Unix does"),
        ("7", "7 means SAT, because 1 is SUN; write SAT, or SUN if you count weekdays as Unix does"),
        ("2,4", "2,4 means MON,WED, because 1 is SUN; write MON,WED, or TUE,THU if you count weekdays as Unix does"),
        ("2/3", "2/3 means MON/3, because 1 is SUN; write MON/3, or TUE/3 if you count weekdays as Unix does"),
        ("MON-FRI", None),
        ("*/2", None),
        ("?", None),
    ],
)
def test_a_number_in_the_weekday_field_causes_a_warning_with_names(weekday: str, warning: str | None) -> None:
    assert Cron.parse(f"0 0 0 * * {weekday}").warning == warning


def test_the_suggestion_of_a_hint_is_accepted() -> None:
    for expression in ("0 9 * * 1-5", "* * * * *", "5 4 * * 0"):
        with pytest.raises(Invalid) as refused:
            Cron.parse(expression)
        Cron.parse(str(refused.value).split("'")[1])
    for each in NICKNAMES.values():
        assert Cron.parse(each).warning is None


def test_equal_expressions_are_equal_schedules_in_any_time_zone() -> None:
    cron = Cron.parse("0 0 12 * * *")
    assert cron == Cron.parse("0 0 12 * * *")
    assert cron.next_after(at("2026-11-20T13:30:00+02:00")) == FRIDAY
    assert cron.next_after(at("2026-11-20T11:59:59.999999")) == FRIDAY
    assert cron.next_after(datetime(2100, 1, 1, tzinfo=UTC)) is None


def test_a_search_for_days_that_never_come_ends_without_croniter() -> None:
    searches = _read.cache_info()
    for second in range(60):
        assert Cron.parse(f"{second} 0 0 29 2 MON 2090-2099").next_after(at("2026-06-01")) is None
        assert Cron.parse(f"{second} 0 0 30 2 *").next_after(at("2026-06-01")) is None
    assert _read.cache_info() == searches


@dataclass(frozen=True)
class Made:
    """A generated expression, with the numbers that each field allows."""

    expression: str
    allowed: tuple[frozenset[int], ...]

    def after(self, instant: datetime) -> datetime | None:
        """Return the first match after the instant, day by day and then second by second."""
        day = instant.date()
        while day.year <= LAST_YEAR:
            if self._has_day(day):
                found = next((at_ for at_ in self._times(day, instant) if at_ > instant), None)
                if found is not None:
                    return found
            if day == date(LAST_YEAR, 12, 31):
                return None
            day += timedelta(days=1)
        return None

    def _has_day(self, day: date) -> bool:
        _, _, _, days, months, weekdays, years = self.allowed
        return day.year in years and day.month in months and day.day in days and day.isoweekday() % 7 + 1 in weekdays

    def _times(self, day: date, instant: datetime) -> Iterator[datetime]:
        """Yield each allowed second of the day, except in minutes that end before the instant."""
        seconds, minutes, hours = (sorted(numbers) for numbers in self.allowed[:3])
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
        for minute in (begin + timedelta(hours=h, minutes=m) for h in hours for m in minutes):
            if minute + timedelta(minutes=1) > instant:
                yield from (minute + timedelta(seconds=s) for s in seconds)


def make(chance: random.Random) -> Made:
    """Return a random expression. The expression can contain every element of the notation."""
    parts = [make_field(chance, index) for index in range(7)]
    if chance.random() < 0.4:
        parts[6] = ("", frozenset(range(FIRST_YEAR, LAST_YEAR + 1)))
    return Made(" ".join(word for word, _ in parts).strip(), tuple(numbers for _, numbers in parts))


def make_field(chance: random.Random, index: int) -> tuple[str, frozenset[int]]:
    low, high = BOUNDS[index]
    if chance.random() < (0.35, 0.3, 0.3, 0.4, 0.5, 0.5, 0.3)[index]:
        return chance.choice("*?"), frozenset(range(low, high + 1))
    made = [make_element(chance, index) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return ",".join(word for word, _ in made), frozenset().union(*(numbers for _, numbers in made))


def make_element(chance: random.Random, index: int) -> tuple[str, frozenset[int]]:
    low, high = (2025, 2060) if index == 6 else BOUNDS[index]
    first, last = sorted((chance.randint(low, high), chance.randint(low, high)))
    step = chance.choice((1, 2, 3, 5, 7, 15, 40))
    one, two = name(chance, index, first), name(chance, index, last)
    top = BOUNDS[index][1]
    shapes = (
        (one, {first}),
        (f"{one}-{two}", set(range(first, last + 1))),
        (f"{one}-{two}/{step}", set(range(first, last + 1, step))),
        (f"{one}/{step}", set(range(first, top + 1, step))),
        (f"*/{step}", set(range(BOUNDS[index][0], top + 1, step))),
    )
    word, numbers = chance.choice(shapes)
    return word, frozenset(numbers)


def name(chance: random.Random, index: int, number: int) -> str:
    """Return the number itself or its name."""
    names = {4: CRON_MONTHS, 5: CRON_WEEKDAYS}.get(index)
    if names is None or chance.random() < 0.5:
        return str(number)
    return chance.choice((str.upper, str.lower, str.title))(names[number - 1])


def check(seed: int, count: int) -> int:
    """Compare this number of expressions with the enumeration, each for several due times. Return the number of
    compared expressions."""
    chance = random.Random(seed)
    compared = 0
    for _ in range(count):
        made = make(chance)
        cron = Cron.parse(made.expression)
        instant = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.uniform(0, 4 * 366 * 86400))
        for _ in range(3):
            due = cron.next_after(instant)
            assert due == made.after(instant), (made.expression, instant)
            compared += 1
            if due is None:
                break
            instant = due
    return compared


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        (7, 40),
        pytest.param(9, 600, marks=pytest.mark.slow),
        pytest.param(11, 6_000, marks=[pytest.mark.slow, pytest.mark.release]),
    ],
)
def test_random_expressions_agree_with_an_enumeration(seed: int, count: int) -> None:
    print(f"cron: {check(seed, count)} occurrences of {count} expressions agree with the enumeration")
