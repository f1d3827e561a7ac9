"""Checks the fields of an automation's definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date

from appliance.errors import Invalid
from appliance.home.capabilities import KNOWN_ATTRIBUTES
from appliance.home.texts import refuse_control, strip_id
from appliance.home.values import Value
from appliance.tables.checks import (
    Mismatch,
    format_value,
    integer,
    is_number,
    nearest,
    number,
    one_of,
    string,
    suggest,
)
from appliance.tables.fields import Table

MAX_INTERVAL_SECS = 366 * 24 * 3600
"""The longest wait or interval of an automation: a year."""

MIN_INTERVAL_SECS = 0.001

MAX_OFFSET_MINS = 24 * 60
"""The largest offset from sunrise or sunset: a day."""

MAX_IDS = 1000

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Weekdays in the order of `date.weekday`."""

LEAP_YEAR = 2028
"""A leap year, which contains every possible day of the year."""

VARIABLE_NAME = re.compile(r"[a-z0-9_.]{1,64}")

_CUSTOM = re.compile(r"custom\.[^.\s]+\.\S+\Z")

_DATE = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})\Z")


def text(value: Value) -> str:
    """Check that a string is not blank, and has no control characters."""
    if not string(value).strip():
        raise Invalid("must not be empty")
    return refuse_control(value)


def seconds(value: Value) -> float:
    """Check a number of seconds from 0 to a year."""
    if not 0 <= number(value) <= MAX_INTERVAL_SECS:
        raise Mismatch(f"from 0 to {MAX_INTERVAL_SECS} seconds (a year)", value)
    return value  # type: ignore[no-any-return]


def period(value: Value) -> float:
    """Check an interval in seconds, at least `MIN_INTERVAL_SECS`."""
    if is_number(value) and value < MIN_INTERVAL_SECS:
        raise Mismatch("greater than 0" if value <= 0 else f"at least {MIN_INTERVAL_SECS}", value)
    return seconds(value)


def offset(value: Value) -> int:
    """Check an offset in whole minutes, at most a day earlier or later."""
    return integer(value, -MAX_OFFSET_MINS, MAX_OFFSET_MINS)


def integer_to(high: int) -> Callable[[Value], int]:
    """Return a check for an integer from 0 to `high`."""
    return lambda value: integer(value, 0, high)


def texts(value: Value) -> tuple[str, ...]:
    """Check a text, or a list of texts. Return the texts without duplicates."""
    if isinstance(value, str):
        return (text(value),)
    if not isinstance(value, list | tuple) or not value or len(value) > MAX_IDS:
        raise Mismatch(f"a string or a list of at most {MAX_IDS} strings", value)
    return tuple(dict.fromkeys(text(each) for each in value))


def _weekday(value: Value) -> int:
    short = value[:3].lower() if isinstance(value, str) else ""
    meant = {value: short} if isinstance(value, str) and short in WEEKDAYS else {}
    return WEEKDAYS.index(one_of(*WEEKDAYS, meant=meant)(value))


def weekdays(value: Value) -> frozenset[int]:
    """Check a list of days, such as `{"mon", "tue"}`. Return the numbers of the days. 0 is Monday."""
    if not isinstance(value, list | tuple) or not value:
        raise Mismatch('a list of days like { "mon", "fri" }', value)
    return frozenset(map(_weekday, value))


def weekday_names(days: Iterable[int]) -> str:
    """Return the days as text, such as `mon, fri`."""
    return ", ".join(WEEKDAYS[day] for day in sorted(days))


def day_of_year(value: Value) -> tuple[int, int]:
    """Check a day of the year, `MM-DD`. Return `(month, day)`."""
    year, month, day = date_on(value)
    if year is not None:
        raise Mismatch("a day of the year like 12-24", value)
    return month, day


def date_on(value: Value) -> tuple[int | None, int, int]:
    """Check a date, `MM-DD` or `YYYY-MM-DD`. Return `(year or None, month, day)`."""
    match = _DATE.match(value) if isinstance(value, str) else None
    try:
        if match is None:
            raise ValueError
        year = None if match[1] is None else int(match[1])
        found = date(LEAP_YEAR if year is None else year, int(match[2]), int(match[3]))
    except ValueError:
        raise Mismatch("a date like 12-24 or 2026-12-24", value) from None
    return year, found.month, found.day


def variable_name(value: Value) -> str:
    if not isinstance(value, str) or VARIABLE_NAME.fullmatch(value) is None:
        raise Mismatch("1 to 64 characters from a-z, 0-9, _, and dots", value)
    return value


def timer_name(value: Value) -> str:
    """Check the name of a timer. Return the name without surrounding white space."""
    return strip_id(string(value))


def take_attribute(table: Table) -> str | None:
    """Read the field `attribute`: a capability, `presence`, or `custom.<adapter>.<field>`."""

    def check(value: Value) -> str:
        if text(value) in KNOWN_ATTRIBUTES or _CUSTOM.match(value):
            return value  # type: ignore[no-any-return]
        near = nearest(value, KNOWN_ATTRIBUTES)
        hint = suggest(near, "GET /capabilities lists all capabilities")
        raise Invalid(f"{format_value(value)} is neither a capability nor custom.<adapter>.<field>{hint}")

    return table.take("attribute", check)
