"""Matcher: what a value must be, equal to something or within a range, and whether a value is so."""

from __future__ import annotations

from msgspec import Struct

from appliance.errors import Invalid
from appliance.home import values
from appliance.home.capabilities import CAPABILITIES
from appliance.home.values import Value
from appliance.tables.checks import integer, is_number, shown

WITH_UNIT = frozenset({"measurement", "accumulation", "color_temperature"})
"""The schema types of values that carry a unit and count by their `value`."""

NUMERIC = WITH_UNIT | {"number", "integer", "integer_or_string", "percentage"}
"""The schema types that `above` and `below` can be asked of."""


def same(one: Value, other: Value) -> bool:
    """Whether two JSON values are equal: `5` is `5.0`, `true` is not `1`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def number_in(value: Value) -> int | float | None:
    """The number that a value counts by: itself, or the `value` of one with a unit; None where there is none."""
    if isinstance(value, dict):
        value = value.get("value")
    return value if is_number(value) else None


def describe(value: Value) -> str:
    """A value as text for people, one with a unit as `21.5 celsius`."""
    number = number_in(value)
    if isinstance(value, dict) and number is not None and isinstance(value.get("unit"), str):
        return f"{number} {value['unit']}"
    return shown(value)


def check_equal(attribute: str, value: Value) -> Value:
    """The value in canonical form if the attribute's schema can take it; else `Invalid` says what it takes.

    Where values carry a unit a plain number will do; an attribute without a schema takes anything.
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
    """The colour temperature, in kelvin or mireds by its range; `Invalid` where it is in neither."""
    (low, high), (warm, cold) = values.KELVIN_RANGE, values.MIRED_RANGE
    number = integer(value)
    if not (low <= number <= high or warm <= number <= cold):
        ranges = f"{low} to {high} (kelvin) or {warm} to {cold} (mireds)"
        raise Invalid(f"must be from {ranges}, not {shown(value)}")
    return number


class Anything(Struct, frozen=True, kw_only=True):
    """Matches every value."""

    def holds(self, value: Value) -> bool:
        """Whether there is a value."""
        return value is not None

    def entered_from(self, previous: Value) -> bool:
        """Always: whatever a value was before, to change is enough."""
        return True

    def fields(self) -> dict[str, Value]:
        """The fields that state it."""
        return {}

    def __str__(self) -> str:
        return "any value"


class Equal(Struct, frozen=True, kw_only=True, eq=False):
    """Equal to this value; a plain number also equals a value with a unit whose number it is."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and same(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]

    def holds(self, value: Value) -> bool:
        """Whether the value is equal."""
        if isinstance(value, dict) and not isinstance(self.value, dict):
            return "value" in value and same(value["value"], self.value)
        return same(value, self.value)

    def entered_from(self, previous: Value) -> bool:
        """Whether a value that is equal now has become so: it was not before."""
        return not self.holds(previous)

    def fields(self) -> dict[str, Value]:
        """The fields that state it."""
        return {"equals": self.value}

    def __str__(self) -> str:
        return describe(self.value)


class Within(Struct, frozen=True, kw_only=True):
    """A number above the one and below the other bound, neither included; None is no bound."""

    above: float | None = None
    below: float | None = None

    def holds(self, value: Value) -> bool:
        """Whether the value counts by a number in the range."""
        number = number_in(value)
        return (
            number is not None
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def entered_from(self, previous: Value) -> bool:
        """Whether a value that is in the range now has entered it: it was a number outside."""
        return number_in(previous) is not None and not self.holds(previous)

    def fields(self) -> dict[str, Value]:
        """The fields that state it."""
        return {"above": self.above, "below": self.below}

    def __str__(self) -> str:
        ends = (("above", self.above), ("below", self.below))
        return " and ".join(f"{name} {bound}" for name, bound in ends if bound is not None)


Matcher = Anything | Equal | Within


def wanted(name: str, matcher: Matcher) -> str:
    """What must be so, `power = on` or `brightness above 50`."""
    if isinstance(matcher, Anything):
        return f"{name} = any value"
    return f"{name} {'= ' if isinstance(matcher, Equal) else ''}{matcher}"
