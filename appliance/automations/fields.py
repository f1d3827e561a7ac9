"""Fields: reads the table that a definition is, and gathers every fault in it as a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import TypeVar

from appliance.errors import Invalid
from appliance.home import values
from appliance.home.texts import LONGEST_ID, cut, refuse_control
from appliance.home.values import Value
from appliance.sections import nearest

T = TypeVar("T")

LONGEST_SECS = 366 * 24 * 3600
"""The longest wait or interval that an automation may ask for, in seconds: a year."""

SHORTEST_SECS = 0.001
"""The shortest interval, in seconds."""

LONGEST_OFFSET_MINS = 24 * 60
"""The largest offset from sunrise or sunset, in minutes: a day."""


MAX_IDS = 1000
"""How many devices a trigger may list."""

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""The days of the week as triggers and conditions name them; the place is the number that `date.weekday` gives."""

LEAP_YEAR = 2028
"""A year that has every day that any year has."""

VARIABLE_NAME = re.compile(r"[a-z0-9_.]{1,64}")

_DATE = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})\Z")


class Notes:
    """What is wrong with a definition, and what its writer may not have meant: sentences that name the field."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.warnings: list[str] = []


class Fields:
    """One table of a definition. `path` is where it stands, `trigger` or `conditions[2]`; the outermost has none."""

    def __init__(self, raw: Mapping[str, Value], path: str, notes: Notes) -> None:
        self._raw = raw
        self._path = path
        self._asked: dict[str, None] = {}
        self.notes = notes

    def name(self, key: str) -> str:
        """The field as sentences name it."""
        return f"{self._path}.{key}" if self._path else key

    def fault(self, key: str, sentence: str) -> None:
        """Note what is wrong with the field."""
        self.notes.faults.append(f"{self.name(key)} {sentence}")

    def has(self, key: str) -> bool:
        """Whether the table holds the field."""
        return self._raw.get(key) is not None

    def raw(self, key: str) -> Value:
        """The field as it stands, None where it is left out."""
        self._asked[key] = None
        return self._raw.get(key)

    def take(self, key: str, check: Callable[[Value], T]) -> T | None:
        """The field's value as the check types it; None where it is left out, or wrong, which is noted."""
        value = self.raw(key)
        if value is None:
            return None
        try:
            return check(value)
        except Invalid as fault:
            self.fault(key, str(fault))
            return None

    def need(self, key: str, check: Callable[[Value], T]) -> T | None:
        """As `take`, for a field that must be there."""
        if not self.has(key):
            self._asked[key] = None
            self.fault(key, "is missing")
            return None
        return self.take(key, check)

    def tables(self, key: str, example: str) -> list[Fields]:
        """The field's tables, each as fields of its own; none where it is left out, or is no list, which is noted."""
        raw = self.raw(key)
        if raw is None or raw in ({}, []):
            return []
        if isinstance(raw, Mapping):
            self.fault(key, f"must be a list of tables: {example}")
            return []
        if not isinstance(raw, list | tuple):
            self.fault(key, f"must be a list of tables, not {values.shown(raw)}")
            return []
        numbered = ((f"{key}[{number}]", as_table(each)) for number, each in enumerate(raw, 1))
        return [table for place, each in numbered if (table := self._table(place, each)) is not None]

    def _table(self, key: str, raw: Value) -> Fields | None:
        if isinstance(raw, Mapping):
            return Fields(raw, self.name(key), self.notes)
        self.fault(key, f"must be a table, not {values.shown(raw)}")
        return None

    def refuse_others(self, what: str) -> None:
        """Note every field that nobody asked for, with the nearest that exists; `what` is the kind of table."""
        for key in self._raw:
            if key not in self._asked:
                near = nearest(str(key), self._asked)
                hint = f"did you mean {near}" if near is not None else f"there are {', '.join(self._asked)}"
                self.fault(str(key), f"is not a field of {what}; {hint}")


def as_table(value: Value) -> Value:
    """The value, but an empty list as an empty table: in Lua they are the same."""
    return {} if value == [] else value


def text(value: Value) -> str:
    """A check: a string that is not blank and holds no control characters."""
    string = values.string(value)
    if not string.strip():
        raise Invalid("must not be empty")
    return refuse_control(string)


def seconds(value: Value) -> float:
    """A check: seconds from 0 to a year."""
    if not 0 <= values.number(value) <= LONGEST_SECS:
        raise Invalid(f"must be from 0 to {LONGEST_SECS} seconds (a year), not {values.shown(value)}")
    return value  # type: ignore[no-any-return]


def period(value: Value) -> float:
    """A check: seconds, more than 0; what is less than a clock can tell apart is as good as 0."""
    if values.is_number(value) and value < SHORTEST_SECS:
        wanted = "must be greater than 0" if value <= 0 else f"must be at least {SHORTEST_SECS}"
        raise Invalid(f"{wanted}, not {values.shown(value)}")
    return seconds(value)


def offset(value: Value) -> int:
    """A check: whole minutes, at most a day before or after."""
    return values.integer(value, -LONGEST_OFFSET_MINS, LONGEST_OFFSET_MINS)


def whole(low: int, high: int) -> Callable[[Value], int]:
    """A check: a whole number from `low` to `high`."""
    return lambda value: values.integer(value, low, high)


def texts(value: Value) -> tuple[str, ...]:
    """A check: a text, or a list of them, none of them twice."""
    if isinstance(value, str):
        return (text(value),)
    if not isinstance(value, list | tuple) or not value or len(value) > MAX_IDS:
        raise Invalid(f"must be a string or a list of at most {MAX_IDS} strings, not {values.shown(value)}")
    return tuple(dict.fromkeys(text(each) for each in value))


def weekdays(value: Value) -> frozenset[int]:
    """A check: a list of days, `{"mon", "tue"}`; the numbers of the days, 0 is Monday."""
    if not isinstance(value, list | tuple) or not value:
        raise Invalid(f'must be a list of days like {{ "mon", "fri" }}, not {values.shown(value)}')
    return frozenset(WEEKDAYS.index(one_of(WEEKDAYS)(each)) for each in value)


def day_of_year(value: Value) -> tuple[int, int]:
    """A check: a day of the year written `MM-DD`; `(month, day)`."""
    year, month, day = date_on(value)
    if year is not None:
        raise Invalid(f"must be a day of the year like 12-24, not {values.shown(value)}")
    return month, day


def date_on(value: Value) -> tuple[int | None, int, int]:
    """A check: a date written `MM-DD` or `YYYY-MM-DD`; `(year or None, month, day)`."""
    match = _DATE.match(value) if isinstance(value, str) else None
    try:
        if match is None:
            raise ValueError
        year = None if match[1] is None else int(match[1])
        found = date(LEAP_YEAR if year is None else year, int(match[2]), int(match[3]))
    except ValueError:
        raise Invalid(f"must be a date like 12-24 or 2026-12-24, not {values.shown(value)}") from None
    return year, found.month, found.day


def variable_name(value: Value) -> str:
    """A check: the name of a variable."""
    if not isinstance(value, str) or VARIABLE_NAME.fullmatch(value) is None:
        raise Invalid(f"must be a name of a-z, 0-9, _ and dots, at most 64 characters, not {values.shown(value)}")
    return value


def timer_name(value: Value) -> str:
    """A check: the name of a timer, as it is kept: without the white space around it."""
    return cut(values.string(value), LONGEST_ID)


def one_of(words: Iterable[str]) -> Callable[[Value], str]:
    """A check: one of these words; the refusal names the nearest."""
    known = list(words)

    def check(value: Value) -> str:
        if isinstance(value, str) and value in known:
            return value
        near = nearest(value, known) if isinstance(value, str) else None
        hint = "" if near is None else f"; did you mean {near}"
        raise Invalid(f"must be one of {', '.join(known)}, not {values.shown(value)}{hint}")

    return check
