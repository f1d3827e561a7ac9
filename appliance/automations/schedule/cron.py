"""Cron expressions with seconds: `sec min hour day month weekday [year]`."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from msgspec import Struct

from appliance.errors import Invalid
from appliance.tables.checks import format_value, nearest, suggest

FIRST_YEAR, LAST_YEAR = 1970, 2099

_LONG_WEEKDAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
_LONG_MONTHS = (
    *("JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE"),
    *("JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"),
)
CRON_WEEKDAYS = tuple(name[:3] for name in _LONG_WEEKDAYS)
CRON_MONTHS = tuple(name[:3] for name in _LONG_MONTHS)

NICKNAMES: Mapping[str, str] = {
    "@hourly": "0 0 * * * *",
    "@daily": "0 0 0 * * *",
    "@weekly": "0 0 0 * * SUN",
    "@monthly": "0 0 0 1 * *",
    "@yearly": "0 0 0 1 1 *",
}
"""Words that replace a whole cron expression."""

MAX_EXPRESSION_CHARS = 1000

_QUARTZ = r"LW?\Z|L-?\d+\Z|W\d+\Z|(\d+|[A-Z]{3})(L|W|#.*)\Z"
"""Quartz notation for the last day, the nearest working day, and the nth weekday."""


def _numbered(*lists: tuple[str, ...]) -> dict[str, int]:
    return {name: number for names in lists for number, name in enumerate(names, 1)}


class _CronField(Struct, frozen=True, kw_only=True):
    """One of the seven fields, with its name, inclusive bounds, and words for numbers such as `MON`."""

    name: str
    low: int
    high: int
    words: Mapping[str, int]


_FIELDS = (
    _CronField(name="second", low=0, high=59, words={}),
    _CronField(name="minute", low=0, high=59, words={}),
    _CronField(name="hour", low=0, high=23, words={}),
    _CronField(name="day", low=1, high=31, words={}),
    _CronField(name="month", low=1, high=12, words=_numbered(CRON_MONTHS, _LONG_MONTHS)),
    _CronField(
        name="weekday", low=1, high=7, words=_numbered(CRON_WEEKDAYS, _LONG_WEEKDAYS) | {"TUES": 3, "THURS": 5}
    ),
    _CronField(name="year", low=FIRST_YEAR, high=LAST_YEAR, words={}),
)
_HOUR, _WEEKDAY = 2, 5


class Cron(Struct, frozen=True, kw_only=True):
    """A parsed cron expression. Every field must match, including both day and weekday.

    - `expression`: the user's text.
    - `plain`: the same expression in croniter's notation, in which Sunday is 0.
    - `warning`: a warning about numbers in the weekday field.
    - `uneven_steps`: warnings about steps that do not divide their field evenly.
    - `repeats_hourly`: whether the hour field is `*` or contains a step.
    """

    expression: str
    plain: str
    warning: str | None
    uneven_steps: tuple[str, ...] = ()
    repeats_hourly: bool = False

    @staticmethod
    def parse(expression: str) -> Cron:
        """Parse the expression. Raise `Invalid` with the name of the wrong field."""
        words = _split(expression)
        plain = " ".join(_plain(word, field) for word, field in zip(words, _FIELDS, strict=True))
        return Cron(
            expression=expression,
            plain=plain,
            warning=_warning(words[_WEEKDAY]),
            uneven_steps=tuple(_uneven_steps(words)),
            repeats_hourly=any(sign in words[_HOUR] for sign in "*?/"),
        )

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first matching second after the instant, in UTC. Return None if no second up to the last
        supported year matches."""
        found = self.next_shown(instant.astimezone(UTC).replace(tzinfo=None))
        return None if found is None else found.replace(tzinfo=UTC)

    def next_shown(self, after: datetime) -> datetime | None:
        """Like `next_after`, for wall-clock times without a zone."""
        from croniter import CroniterBadDateError

        if after.year > LAST_YEAR:
            return None
        after, days = after.replace(microsecond=0), _read_days(self.plain)
        day = days.find(after.date() if after.time() < days.last_time else after.date() + timedelta(days=1))
        if day is None:
            return None
        since = max(after, datetime.combine(day, time()) - timedelta(seconds=1))
        try:
            found: datetime = _read(self.plain).get_next(datetime, start_time=since)
        except CroniterBadDateError:
            return None
        return found


class _Days(Struct, frozen=True, kw_only=True):
    """The days of an expression. `last_time` is the last time on each day. croniter alone would need milliseconds for
    rare days."""

    years: Sequence[int]
    months: Sequence[int]
    days: Sequence[int]
    weekdays: Collection[int]
    last_time: time

    def find(self, first: date) -> date | None:
        """Return the first of these days from `first` on, or None."""
        for year in self.years:
            for month in self.months if year >= first.year else ():
                if (year, month) < (first.year, first.month):
                    continue
                for day in self.days:
                    if day > monthrange(year, month)[1]:
                        break
                    if (found := date(year, month, day)) >= first and found.isoweekday() % 7 in self.weekdays:
                        return found
        return None


@lru_cache(maxsize=1024)
def _read_days(plain: str) -> _Days:
    numbers = [
        range(field.low, field.high + 1) if word == "*" else [int(number) for number in word.split(",")]
        for word, field in zip(plain.split(), _FIELDS, strict=True)
    ]
    seconds, minutes, hours, days, months, weekdays, years = numbers
    return _Days(
        years=years,
        months=months,
        days=days,
        weekdays=range(7) if plain.split()[_WEEKDAY] == "*" else weekdays,
        last_time=time(hours[-1], minutes[-1], seconds[-1]),
    )


@lru_cache(maxsize=1024)
def _read(plain: str) -> Any:
    """Return a croniter from a cache. Callers can share the object, because each call passes a start time."""
    from croniter import croniter

    years = LAST_YEAR - FIRST_YEAR + 1
    return croniter(plain, day_or=False, second_at_beginning=True, max_years_between_matches=years)


def _split(expression: str) -> list[str]:
    """Split an expression into seven words. A missing year becomes `*`."""
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise Invalid(f"must be a cron expression of at most {MAX_EXPRESSION_CHARS} characters")
    words = NICKNAMES.get(expression.strip().lower(), expression).split()
    if expression.strip().startswith("@") and len(words) == 1:
        raise Invalid(f"must be an expression or one of {', '.join(NICKNAMES)}, not {format_value(expression)}")
    if len(words) == 5:
        raise Invalid(
            "has five fields, but Lares expects the seconds first; "
            f"for the usual meaning write {format_value(_six(words))}"
        )
    if len(words) not in (6, 7):
        raise Invalid(f"must be `sec min hour day month weekday [year]`, not {format_value(expression)}")
    return words if len(words) == 7 else [*words, "*"]


def _six(words: list[str]) -> str:
    """Translate an expression with five fields to an expression with six fields, in which weekdays are names."""
    return " ".join(["0", *words[:4], _as_in_unix(words[4]) or words[4]])


def _plain(word: str, field: _CronField) -> str:
    numbers = sorted({number for part in word.split(",") for number in _part(part, field)})
    if len(numbers) == field.high - field.low + 1:
        return "*"
    return ",".join(str(number - (field is _FIELDS[_WEEKDAY])) for number in numbers)


def _part(part: str, field: _CronField) -> range:
    """Translate one list element: `*`, `5`, `MON`, or `1-5`, with an optional `/step`."""
    body, slash, step = part.partition("/")
    low, high = _bounds(body, field)
    if slash and "-" not in body:
        high = field.high
    return range(low, high + 1, _step(step, field) if slash else 1)


def _bounds(body: str, field: _CronField) -> tuple[int, int]:
    if body in ("*", "?"):
        return field.low, field.high
    first, dash, last = body.partition("-")
    low = _number(first, field)
    high = _number(last, field) if dash else low
    if high < low:
        raise Invalid(
            f"{field.name} {format_value(body)} runs backwards; write {format_value(_unfolded(first, last, field))}"
        )
    return low, high


def _number(word: str, field: _CronField) -> int:
    number = field.words.get(word.upper())
    if number is None and word.isascii() and word.isdigit() and len(word) <= 9:
        number = int(word)
    if number is None:
        raise Invalid(_not_understood(word, field))
    if not field.low <= number <= field.high:
        more = ", 1 is SUN and 7 is SAT" if field.words and field.high == 7 else ""
        raise Invalid(f"{field.name} must be from {field.low} to {field.high}{more}, not {number}")
    return number


def _step(word: str, field: _CronField) -> int:
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 9 else None
    if not number:
        shown = format_value(word if number is None else number)
        raise Invalid(f"{field.name} needs a whole number of at least 1 after the slash, not {shown}")
    return number


def _not_understood(word: str, field: _CronField) -> str:
    """Return the error message for a word that is not a number, with the nearest valid word."""
    if word == "":
        return f"{field.name} has an empty entry; write *, numbers, ranges like 1-5, steps like */5, or lists"
    if field.name in ("day", "weekday") and re.match(_QUARTZ, word.upper()):
        return (
            f"{field.name} {format_value(word)} is not supported; instead of L, W, or #, check the date in `execute`"
        )
    near = nearest(word.upper(), field.words)
    forms = f"*, numbers{' or names' if field.words else ''}, ranges like 1-5, steps like */5, or lists"
    return f"{field.name} {format_value(word)} is unknown{suggest(near, f'write {forms}')}"


def _unfolded(first: str, last: str, field: _CronField) -> str:
    """Split a range that wraps around the end of a field: `FRI-MON` becomes `FRI-SAT,SUN-MON`."""
    by_number = CRON_WEEKDAYS if field.name == "weekday" else CRON_MONTHS
    is_named = bool(field.words) and first.upper() in field.words
    low, high = (by_number[0], by_number[-1]) if is_named else (str(field.low), str(field.high))
    ranges = ((first.upper(), high), (low, last.upper()))
    return ",".join(one if one == two else f"{one}-{two}" for one, two in ranges)


def _uneven_steps(words: list[str]) -> Iterator[str]:
    """Yield a warning for each `*/step` or `5/step` whose last interval differs from the others."""
    for word, field in zip(words, _FIELDS, strict=True):
        size = field.high - field.low + 1
        for part in word.split(",") if field.name not in ("day", "year") else ():
            body, _, step = part.partition("/")
            if (body in ("*", "?") or body.isdigit()) and step and size % int(step):
                numbers = range(_bounds(body, field)[0], field.high + 1, int(step))
                listed = (
                    ", ".join(map(str, numbers))
                    if len(numbers) < 4
                    else f"{numbers[0]}, {numbers[1]} … {numbers[-1]}"
                )
                hint = (
                    "; for equal intervals, use a trigger of the type interval"
                    if field.name in ("second", "minute", "hour")
                    else ""
                )
                reason = f"because {step} does not divide {size}"
                yield f"{field.name} {part} means {listed}, and starts again at {numbers[0]}, {reason}{hint}"


def _warning(weekday: str) -> str | None:
    """Return a warning for a weekday field with numbers. Unix cron counts weekdays from 0; Lares counts from 1."""
    meant = _as_in_unix(weekday)
    if meant is None:
        return None
    here = _renamed(weekday, 1)
    return f"{weekday} means {here}, because 1 is SUN; write {here}, or {meant} if you count weekdays as Unix does"


def _as_in_unix(weekday: str) -> str | None:
    """Replace weekday numbers with names, as in Unix cron (Sunday is 0 or 7). Return None if the field has no
    numbers."""
    return None if (names := _renamed(weekday, 0)) == weekday else names


def _renamed(weekday: str, sunday: int) -> str:
    """Replace the numbers with weekday names, except in steps. `sunday` is the number of Sunday."""
    return ",".join(_renamed_part(part, sunday) for part in weekday.split(","))


def _renamed_part(part: str, sunday: int) -> str:
    body, slash, step = part.partition("/")
    days = "-".join(CRON_WEEKDAYS[(int(day) - sunday) % 7] if day.isdecimal() else day for day in body.split("-"))
    return f"{days}{slash}{step}"
