"""Fields: the checks of a definition's fields, and what triggers and conditions share, such as `Matcher`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from appliance.errors import Invalid
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES, Capability
from appliance.home.texts import refuse_control, strip_id
from appliance.home.values import Value, number_in
from appliance.tables.checks import Mismatch, integer, is_number, nearest, number, one_of, rounded, shown, string
from appliance.tables.fields import Table

WITH_UNIT = frozenset({"measurement", "accumulation", "color_temperature"})
"""The schema types of values that have a unit; their `value` is compared."""

NUMERIC = WITH_UNIT | {"number", "integer", "integer_or_string", "percentage"}
"""The schema types that allow `above` and `below`."""


def same(one: Value, other: Value) -> bool:
    """Return whether two JSON values are equal: `5` equals `5.0`, but `true` does not equal `1`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def describe(value: Value) -> str:
    """Return a value as text for people; a value with a unit looks like `21.5 celsius`."""
    number = number_in(value)
    if isinstance(value, dict) and number is not None and isinstance(value.get("unit"), str):
        return f"{rounded(number)} {value['unit']}"
    return shown(value)


def check_equal(attribute: str, value: Value) -> Value:
    """Return the value in canonical form; raises `Invalid` if the attribute's schema does not accept it.

    For values with a unit, a plain number is enough; an attribute without a schema accepts any value.
    """
    entry = CAPABILITIES.get(attribute)
    if entry is None:
        return value
    if entry.type == "color_temperature" and is_number(value):
        return _color_temperature(value)
    if entry.type in WITH_UNIT and is_number(value):
        return value
    return entry.check(value)


def _color_temperature(value: Value) -> int:
    """Return the colour temperature, whose range decides between kelvin and mireds; raise `Invalid` if it is in
    neither range."""
    (low, high), (warm, cold) = values.KELVIN_RANGE, values.MIRED_RANGE
    number = integer(value)
    if not (low <= number <= high or warm <= number <= cold):
        ranges = f"{low} to {high} (kelvin) or {warm} to {cold} (mireds)"
        raise Invalid(f"must be from {ranges}, not {shown(value)}")
    return number


class Matcher(Struct, frozen=True, kw_only=True, eq=False):
    """The requirement for a value: equal to `equals`, or a number between the bounds, which are exclusive.

    Without any of these, every value matches. A plain number also equals a value with a unit whose number is the
    same.
    """

    equals: Value | UnsetType = UNSET
    above: float | None = None
    below: float | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matcher) and same(self.fields(), other.fields())

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_any(self) -> bool:
        """Whether every value matches."""
        return self.equals is UNSET and self.above is None and self.below is None

    @property
    def is_range(self) -> bool:
        """Whether the matcher has bounds."""
        return self.above is not None or self.below is not None

    def holds(self, value: Value) -> bool:
        """Return whether the value matches; None never does."""
        if self.is_any:
            return value is not None
        if self.equals is UNSET:
            number = number_in(value)
            return (
                number is not None
                and (self.above is None or number > self.above)
                and (self.below is None or number < self.below)
            )
        if isinstance(value, dict) and not isinstance(self.equals, dict):
            return "value" in value and same(value["value"], self.equals)
        return same(value, self.equals)

    def is_usable(self, value: Value) -> bool:
        """Return whether the value can be compared; otherwise it is a gap: there is no value, or no number for a
        range."""
        return value is not None and (not self.is_range or number_in(value) is not None)

    def last_usable(self, known: Iterable[Value]) -> Value:
        """Return the first of these values, newest first, that can be compared; None if there is none."""
        return next(filter(self.is_usable, known), None)

    def is_entered(self, value: Value, previous: Value) -> bool:
        """Return whether the value matches and the previous one, which may be None, did not."""
        return self.holds(value) and not same(value, previous) and (self.is_any or not self.holds(previous))

    def fields(self) -> dict[str, Value]:
        """Return the fields that define the matcher."""
        if self.is_any:
            return {}
        return {"above": self.above, "below": self.below} if self.equals is UNSET else {"equals": self.equals}

    def __str__(self) -> str:
        if self.is_any:
            return "any value"
        if self.equals is not UNSET:
            return describe(self.equals)
        ends = (("above", self.above), ("below", self.below))
        return " and ".join(f"{name} {bound}" for name, bound in ends if bound is not None)


def describe_demand(name: str, matcher: Matcher) -> str:
    """Return the requirement as text: `power = on`, `brightness above 50`, or `any change of power`."""
    if matcher.is_any:
        return f"any change of {name}"
    return f"{name} {'' if matcher.equals is UNSET else '= '}{matcher}"


ONLY_A_CHANGE = " already; it must change first"
"""Added by `describe_present` to a value that already matches."""


def describe_present(value: Value, matcher: Matcher) -> str:
    """Return the present value for people; if it already matches, add that it must change first."""
    is_waited_for = not matcher.is_any and matcher.holds(value)
    return describe(value) + (ONLY_A_CHANGE if is_waited_for else "")


UNTRUSTED = "the clock is not trusted yet"
"""The reason for anything that depends on the time while the clock is not trusted."""

Subject = tuple[str, str]
"""A kind of thing and the name of one: `("device", "desk:light:0")`."""


class NamedThing(NamedTuple):
    """The part of the home that a field of a trigger or condition names.

    For an attribute or event, `owner` is the device, room, or group that should show or send it; an event without a
    name means any event of the owner. `matcher` holds the compared value of an attribute.
    """

    field: str
    kind: str
    name: str
    owner: Subject | None = None
    matcher: Matcher | None = None

    @property
    def subject(self) -> Subject:
        """The thing's kind and name."""
        return self.kind, self.name


MAX_INTERVAL_SECS = 366 * 24 * 3600
"""The longest wait or interval of an automation, in seconds: a year."""

MIN_INTERVAL_SECS = 0.001
"""The shortest interval, in seconds."""

MAX_OFFSET_MINS = 24 * 60
"""The largest offset from sunrise or sunset, in minutes: a day."""


MAX_IDS = 1000
"""Maximum number of devices in a trigger."""

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""The days of the week in triggers and conditions; their position is the number that `date.weekday` returns."""

LEAP_YEAR = 2028
"""A leap year, so that every day of a year exists."""

VARIABLE_NAME = re.compile(r"[a-z0-9_.]{1,64}")

_CUSTOM = re.compile(r"custom\.[^.\s]+\.\S+\Z")

PRESENCE_ATTRIBUTE = "presence"
"""The attribute that a presence condition uses unless it names another one; no capability has this name."""

_DATE = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})\Z")


def text(value: Value) -> str:
    """Return a check: a string that is not blank and has no control characters."""
    if not string(value).strip():
        raise Invalid("must not be empty")
    return refuse_control(value)


def seconds(value: Value) -> float:
    """Return a check: seconds from 0 to a year."""
    if not 0 <= number(value) <= MAX_INTERVAL_SECS:
        raise Mismatch(f"from 0 to {MAX_INTERVAL_SECS} seconds (a year)", value)
    return value  # type: ignore[no-any-return]


def period(value: Value) -> float:
    """Return a check: seconds above 0; values below `MIN_INTERVAL_SECS` count as 0."""
    if is_number(value) and value < MIN_INTERVAL_SECS:
        raise Mismatch("greater than 0" if value <= 0 else f"at least {MIN_INTERVAL_SECS}", value)
    return seconds(value)


def offset(value: Value) -> int:
    """Return a check: whole minutes, at most a day earlier or later."""
    return integer(value, -MAX_OFFSET_MINS, MAX_OFFSET_MINS)


def integer_from(low: int, high: int) -> Callable[[Value], int]:
    """Return a check: an integer from `low` to `high`."""
    return lambda value: integer(value, low, high)


def texts(value: Value) -> tuple[str, ...]:
    """Return a check: a text, or a list of different texts."""
    if isinstance(value, str):
        return (text(value),)
    if not isinstance(value, list | tuple) or not value or len(value) > MAX_IDS:
        raise Mismatch(f"a string or a list of at most {MAX_IDS} strings", value)
    return tuple(dict.fromkeys(text(each) for each in value))


def weekdays(value: Value) -> frozenset[int]:
    """Return a check: a list of days, `{"mon", "tue"}`; it returns their numbers, 0 is Monday."""
    if not isinstance(value, list | tuple) or not value:
        raise Mismatch('a list of days like { "mon", "fri" }', value)
    return frozenset(WEEKDAYS.index(one_of(*WEEKDAYS)(each)) for each in value)


def weekday_names(days: Iterable[int]) -> str:
    """Return the days in the form for people, `mon, fri`."""
    return ", ".join(WEEKDAYS[day] for day in sorted(days))


def day_of_year(value: Value) -> tuple[int, int]:
    """Return a check: a day of the year written `MM-DD`; it returns `(month, day)`."""
    year, month, day = date_on(value)
    if year is not None:
        raise Mismatch("a day of the year like 12-24", value)
    return month, day


def date_on(value: Value) -> tuple[int | None, int, int]:
    """Return a check: a date written `MM-DD` or `YYYY-MM-DD`; it returns `(year or None, month, day)`."""
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
    """Return a check: the name of a variable."""
    if not isinstance(value, str) or VARIABLE_NAME.fullmatch(value) is None:
        raise Mismatch("a name of a-z, 0-9, _ and dots, at most 64 characters", value)
    return value


def timer_name(value: Value) -> str:
    """Return a check: the name of a timer, without the white space around it."""
    return strip_id(string(value))


def take_attribute(table: Table) -> str | None:
    """Read the field `attribute`: a capability, `presence`, or `custom.<adapter>.<field>`."""

    def check(value: Value) -> str:
        if text(value) in CAPABILITIES or value == PRESENCE_ATTRIBUTE or _CUSTOM.match(value):
            return value  # type: ignore[no-any-return]
        near = nearest(value, [*CAPABILITIES, PRESENCE_ATTRIBUTE])
        hint = "GET /capabilities lists all of them" if near is None else f"did you mean {near}"
        raise Invalid(f"{shown(value)} is not a capability or custom.<adapter>.<field>; {hint}")

    return table.take("attribute", check)


def take_matcher(table: Table, attribute: str | None) -> Matcher:
    """Read the fields `equals`, or `above` and `below`, as they fit the attribute; if all are missing, any value
    matches."""
    within = Matcher(above=_bound(table, "above", attribute), below=_bound(table, "below", attribute))
    if table.has("equals") and (table.has("above") or table.has("below")):
        table.fault("equals", "cannot be used together with above or below; choose one")
    if table.has("equals"):
        return take_equal(table, attribute)
    if within.is_any:
        table.raw("equals")
    elif within.above is not None and within.below is not None and not within.above < within.below:
        table.fault("below", f"must be greater than above ({within.above}), or no number lies between")
    elif _is_empty(within, CAPABILITIES.get(attribute or "")):
        table.fault("below" if within.above is None else "above", f"leaves no whole number for {attribute}")
    return within


def _is_empty(within: Matcher, entry: Capability | None) -> bool:
    """Return whether no value of the attribute is in the range, because its values are whole numbers or
    percentages."""
    if entry is None or entry.type not in ("percentage", "integer"):
        return False
    low = -math.inf if within.above is None else math.floor(within.above) + 1
    high = math.inf if within.below is None else math.ceil(within.below) - 1
    bounds = (0, 100) if entry.type == "percentage" else (-math.inf, math.inf)
    return max(low, bounds[0]) > min(high, bounds[1])


def take_equal(table: Table, attribute: str | None, default: Value = None) -> Matcher:
    """Read the field `equals`, a value that the attribute accepts; `default` replaces a missing one."""
    value = table.raw("equals")
    value = default if value is None else value
    if attribute is not None:
        try:
            value = check_equal(attribute, value)
        except Invalid as fault:
            table.fault("equals", f"{fault}, for {attribute}" if table.has("equals") else f"is missing: it {fault}")
    return Matcher(equals=value)


def _bound(table: Table, name: str, attribute: str | None) -> float | None:
    bound = table.take(name, number)
    entry = CAPABILITIES.get(attribute or "")
    if table.has(name) and entry is not None and entry.type not in NUMERIC:
        table.fault(name, f"needs an attribute with a number; {attribute} has none")
    return bound
