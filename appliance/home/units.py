"""The units of measurements, and the possible numbers in each unit."""

from __future__ import annotations

import math
from collections.abc import Mapping

from appliance.home.capabilities import UNITS
from appliance.home.values import Value, number_in
from appliance.tables.checks import format_value, nearest, rounded, suggest

_ANY = (-math.inf, math.inf)
_FROM_ZERO = (0.0, math.inf)
_SHARE = (0.0, 100.0)
_CELSIUS, _FAHRENHEIT = (-273.15, 2000.0), (-459.67, 3632.0)

RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "°C": {
        "°C": _CELSIUS,
        "°F": _FAHRENHEIT,
        "K": (0.0, 2273.0),
        **dict.fromkeys(("celsius", "C"), _CELSIUS),
        **dict.fromkeys(("fahrenheit", "F"), _FAHRENHEIT),
    },
    "%": dict.fromkeys(("%", "percent"), _SHARE),
    "hPa": dict.fromkeys(("hPa", "mbar", "kPa", "Pa", "bar", "mmHg", "inHg", "psi"), _FROM_ZERO),
    "ppm": dict.fromkeys(("ppm", "ppb", "mg/m³", "µg/m³"), _FROM_ZERO),
    "W": dict.fromkeys(("W", "kW", "mW", "MW"), _ANY),
    "V": dict.fromkeys(("V", "mV", "kV"), _ANY),
    "A": dict.fromkeys(("A", "mA"), _ANY),
    "kWh": dict.fromkeys(("kWh", "Wh", "MWh", "GWh", "MJ", "GJ"), _ANY),
    "m/s": dict.fromkeys(("m/s", "km/h", "mph", "kn", "ft/s"), _FROM_ZERO),
    "km": dict.fromkeys(("km", "m", "mi", "ft"), _FROM_ZERO),
    "mm": dict.fromkeys(("mm", "cm", "m", "in"), _FROM_ZERO),
    "lx": {"lx": _FROM_ZERO},
}
"""For the usual unit of a capability, all units of the same quantity, each with its lowest and highest number. The
usual unit is the first."""

FAHRENHEIT = ("°F", "fahrenheit", "F")

_SAME = {"celsius": "°C", "C": "°C", "percent": "%"}


def measure_fault(attribute: str, value: Value) -> str | None:
    """Return the fault if the value of this attribute has a unit of another quantity, or an impossible number."""
    usual, number = UNITS.get(attribute, ""), number_in(value)
    ranges = RANGES.get(usual)
    if ranges is None or number is None:
        return None
    unit = value["unit"] if isinstance(value, dict) else usual
    if unit not in ranges:
        hint = suggest(nearest(unit, ranges), f"use one of {', '.join(ranges)}")
        return f"has the unit {format_value(unit)}, which is not a unit of {attribute}{hint}"
    low, high = ranges[unit]
    if low <= number <= high:
        return None
    bounds = f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"
    return f"must be {bounds} {unit}, not {rounded(number)}"


def unusual_unit(attribute: str, value: Value) -> str | None:
    """Return the value's unit if it differs from the usual unit of the attribute."""
    usual = UNITS.get(attribute)
    unit = value.get("unit") if isinstance(value, dict) else None
    if usual not in RANGES or not isinstance(unit, str) or _SAME.get(unit, unit) == usual:
        return None
    return unit
