"""Compares values with the requirements of triggers, conditions, and `ctx:wait_for`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType

from appliance.errors import Invalid
from appliance.home import values
from appliance.home.capabilities import KNOWN_ATTRIBUTES, Capability
from appliance.home.values import Value, describe, number_in, same
from appliance.tables.checks import format_value, integer, is_number, number
from appliance.tables.fields import Table

WITH_UNIT = frozenset({"measurement", "accumulation", "color_temperature"})
"""The schema types of values with a unit. Comparisons use the field `value` of such values."""

NUMERIC = WITH_UNIT | {"number", "integer", "integer_or_string", "percentage"}
"""The schema types that allow `above` and `below`."""


def check_equal(attribute: str, value: Value) -> Value:
    """Return the value in canonical form. Raise `Invalid` if the attribute's schema does not accept the value. If
    the attribute has a unit, a number without a unit is also accepted. If the attribute has no schema, any value
    is accepted."""
    entry = KNOWN_ATTRIBUTES.get(attribute)
    if entry is None:
        return value
    if entry.type == "color_temperature" and is_number(value):
        return _color_temperature(value)
    if entry.type in WITH_UNIT and is_number(value):
        return value
    return entry.check(value)


def _color_temperature(value: Value) -> int:
    """Return the colour temperature in canonical form. Decide between kelvin and mireds by the number's range. Raise
    `Invalid` if the number is in neither range."""
    (low, high), (warm, cold) = values.KELVIN_RANGE, values.MIRED_RANGE
    number = integer(value)
    if not (low <= number <= high or warm <= number <= cold):
        ranges = f"{low} to {high} (kelvin) or {warm} to {cold} (mireds)"
        raise Invalid(f"must be from {ranges}, not {format_value(value)}")
    return number


class Requirement(Struct, frozen=True, kw_only=True, eq=False):
    """The requirement for a value: equal to `equals`, or a number between the exclusive bounds. If none of these
    is set, every value matches. A number without a unit is treated as equal to the same number with any unit."""

    equals: Value | UnsetType = UNSET
    above: float | None = None
    below: float | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirement) and same(self.fields(), other.fields())

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_any(self) -> bool:
        return self.equals is UNSET and self.above is None and self.below is None

    @property
    def is_range(self) -> bool:
        return self.above is not None or self.below is not None

    def holds(self, value: Value) -> bool:
        """Return whether the value matches. None never matches."""
        if self.is_any:
            return value is not None
        if self.equals is UNSET:
            number = number_in(value)
            return number is not None and self.contains(number)
        if isinstance(value, dict) and not isinstance(self.equals, dict):
            return "value" in value and same(value["value"], self.equals)
        return same(value, self.equals)

    def contains(self, number: float) -> bool:
        """Return whether the number is between the bounds."""
        return (self.above is None or number > self.above) and (self.below is None or number < self.below)

    def is_usable(self, value: Value) -> bool:
        """Return whether the value can be compared. A missing value cannot be compared. A range can be compared only
        with a number."""
        return value is not None and (not self.is_range or number_in(value) is not None)

    def last_usable(self, known: Iterable[Value]) -> Value:
        """Return the newest value that can be compared, or None. `known` is sorted, newest first."""
        return next(filter(self.is_usable, known), None)

    def is_entered(self, value: Value, previous: Value) -> bool:
        """Return whether the value matches although the previous value did not match. The previous value may be
        None."""
        return self.holds(value) and not same(value, previous) and (self.is_any or not self.holds(previous))

    def must_change(self, value: Value) -> bool:
        """Return whether the current value already matches. If so, the value must change before the trigger can
        fire."""
        return not self.is_any and self.holds(value)

    def fields(self) -> dict[str, Value]:
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


def describe_requirement(name: str, requirement: Requirement) -> str:
    """Describe the requirement in words: `power = on`, `brightness above 50`, or `any change of power`."""
    if requirement.is_any:
        return f"any change of {name}"
    return f"{name} {'' if requirement.equals is UNSET else '= '}{requirement}"


MUST_CHANGE = ", so the value must change first"


def take_requirement(table: Table, attribute: str | None) -> Requirement:
    """Read `equals`, or `above` and `below`, and check that they fit the attribute. If all are missing, any value
    matches."""
    within = Requirement(above=_bound(table, "above", attribute), below=_bound(table, "below", attribute))
    if table.has("equals") and (table.has("above") or table.has("below")):
        table.fault("equals", "cannot be used together with above or below; choose one")
    if table.has("equals"):
        return take_equal(table, attribute)
    if within.is_any:
        table.raw("equals")
    elif within.above is not None and within.below is not None and not within.above < within.below:
        table.fault("below", f"must be greater than {within.above}, the value of above")
    elif _is_empty(within, KNOWN_ATTRIBUTES.get(attribute or "")):
        table.fault("below" if within.above is None else "above", f"excludes every possible value of {attribute}")
    return within


def _is_empty(within: Requirement, entry: Capability | None) -> bool:
    """Return whether the attribute has no possible value in the range. For example, there is no integer between 1
    and 2."""
    if entry is None or entry.type not in ("percentage", "integer"):
        return False
    low = -math.inf if within.above is None else math.floor(within.above) + 1
    high = math.inf if within.below is None else math.ceil(within.below) - 1
    bounds = (0, 100) if entry.type == "percentage" else (-math.inf, math.inf)
    return max(low, bounds[0]) > min(high, bounds[1])


def take_equal(table: Table, attribute: str | None, default: Value = None) -> Requirement:
    """Read the field `equals`, which must be a value that the attribute accepts."""
    value = table.raw("equals")
    value = default if value is None else value
    if attribute is not None:
        try:
            value = check_equal(attribute, value)
        except Invalid as fault:
            table.fault("equals", f"for {attribute} {fault}" if table.has("equals") else f"is missing; it {fault}")
    return Requirement(equals=value)


def _bound(table: Table, name: str, attribute: str | None) -> float | None:
    bound = table.take(name, number)
    entry = KNOWN_ATTRIBUTES.get(attribute or "")
    if table.has(name) and entry is not None and entry.type not in NUMERIC:
        table.fault(name, f"needs a numeric attribute, but {attribute} is not numeric")
    return bound
