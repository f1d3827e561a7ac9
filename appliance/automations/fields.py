"""Fields: reads the table that a definition is, and gathers every fault in it as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from appliance.errors import Invalid
from appliance.home import values
from appliance.home.texts import refuse_control
from appliance.home.values import Value
from appliance.sections import nearest

T = TypeVar("T")

LONGEST_SECS = 366 * 24 * 3600
"""The longest wait or interval that an automation may ask for, in seconds: a year."""

SHORTEST_SECS = 0.001
"""The shortest interval, in seconds."""

LONGEST_OFFSET_MINS = 24 * 60
"""The largest offset from sunrise or sunset, in minutes: a day."""


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
