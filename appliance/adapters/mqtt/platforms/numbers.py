"""Numbers in messages: parsing, scaling, and rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from appliance.adapters.mqtt.platforms.payloads import UnknownValue, Update, is_unknown
from appliance.errors import Invalid
from appliance.home.units import RANGES
from appliance.home.values import Value
from appliance.tables.checks import is_number

_PERCENT = (0.0, 100.0)

_NO_TEMPERATURES = {"°C": (-127, 327.67, 655.35, 999), "°F": (-196.6,)}
"""Numbers of sensors without a temperature, by unit. A DS18B20 that is not connected reports -127 °C."""

RANGE_TOLERANCE = 0.1
"""A number may exceed its range by this part of the range. For example, a full battery can report 104 %."""


def read_number(text: str, key: str, convert: Callable[[float], Value] | None = None) -> Update:
    """Return the number, converted by `convert`. An empty text changes nothing. Raise `UnknownValue` for other
    texts."""
    if is_unknown(text):
        return {key: None}
    if text == "":
        return {}
    value = parse_number(text, key)
    return {key: value if convert is None else convert(value)}


def number_parser(key: str, convert: Callable[[float], Value] | None = None) -> Callable[[object, str], Update]:
    return lambda _, text: read_number(text, key, convert)


def parse_number(text: str, attribute: str = "") -> int | float:
    """Parse a number. Return an integer if the text is an integer. Raise `UnknownValue` for other texts."""
    try:
        value = math.nan if "_" in text else float(text)  # Python accepts 1_000
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e18:
        raise UnknownValue(text, "a number", attribute)
    return int(text) if text.strip().lstrip("+-").isdigit() else value


def number_within(value: float, low: float, high: float, attribute: str) -> float:
    """Return a number, clamped to the range `low` to `high`. `low` may be greater than `high`.

    Raise `UnknownValue` if the number is far outside the range. Many devices report an unknown value as -1 or 255.
    """
    low, high = sorted((low, high))
    if not low - 0.5 < value <= high + (high - low) * RANGE_TOLERANCE:
        expected = f"from {plain_number(low)} to {plain_number(high)}"
        raise UnknownValue(str(value), expected, attribute)
    return min(max(value, low), high)


def percentage_parser(attribute: str) -> Callable[[float], int]:
    """Return a function that converts a number to a percentage, or raises `UnknownValue`."""
    return lambda number: clamped(number_within(number, 0, 100, attribute))


def measured(attribute: str, number: float, unit: str) -> dict[str, Value]:
    """Return a measurement. Raise `UnknownValue` for a humidity outside 0 to 100 %, and for an impossible
    temperature, because many devices report an unknown value as such a number."""
    if attribute == "humidity":
        number_within(number, 0, 100, attribute)
    low, high = RANGES["°C"].get(unit, (-math.inf, math.inf))
    if attribute == "temperature" and (not low <= number <= high or number in _NO_TEMPERATURES.get(unit, ())):
        raise UnknownValue(str(number), f"a possible temperature in {unit}", attribute)
    return {"value": number, "unit": unit}


def stated_number(value: Any) -> int | float | None:
    """Return a JSON number, or the number in a text, because some devices send numbers as text. Return None for other
    values."""
    if not isinstance(value, str):
        return value if is_number(value) else None
    try:
        return parse_number(value)
    except Invalid:
        return None


def plain_number(value: float) -> int | float:
    """Convert a whole number to an integer, because devices expect no decimal point. Return any other number
    unchanged."""
    return int(value) if value == int(value) else value


def scaled(value: float, low: float, high: float, *, to: tuple[float, float]) -> float:
    """Scale a value from the range `low` to `high` to the range `to`. `low` may be greater than `high`."""
    share = (value - low) / (high - low) if high != low else 0.0
    return to[0] + share * (to[1] - to[0])


def clamped(value: float, low: int = 0, high: int = 100) -> int:
    """Clamp a value to the range, and round it."""
    return round(min(max(value, low), high))


class Scale:
    """The device's numbers for 0 and 100 percent. The first number can be the larger one."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def percent(self, raw: float) -> int:
        """Convert a device's number to a percentage from 0 to 100."""
        return clamped(scaled(raw, self.low, self.high, to=_PERCENT))

    def read(self, raw: float, attribute: str) -> int:
        """Convert a reported number. Raise `UnknownValue` if the number is far outside the device's range."""
        return self.percent(number_within(raw, self.low, self.high, attribute))

    def raw(self, percent: float) -> int | float:
        """Convert a percentage to the number that the device expects."""
        return plain_number(round(scaled(percent, *_PERCENT, to=(self.low, self.high))))
