"""The value types in capability schemas, and their checks.

A check returns a JSON value in canonical form (an integral float becomes an integer), or raises `Invalid` with the
expected value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson

from appliance.errors import Invalid
from appliance.tables.checks import Mismatch, boolean, format_value, integer, is_number, number, rounded, string
from appliance.tables.json_schema import BOOLEAN, INTEGER, NUMBER, TEXT, Check, between

Value = Any
"""A JSON value, as `orjson.loads` returns it."""

KELVIN_RANGE = (2200, 7000)
MIRED_RANGE = (153, 556)

_HEX_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")


MAX_JSON_DEPTH = 32
"""Maximum nesting of arrays and objects in a value without a schema."""


def to_bytes(value: Value, default: Callable[[Any], Any] | None = None) -> bytes:
    """Return the value as JSON. The result is a copy, because orjson's own bytes object occupies at least 4 KiB, and
    up to eight times its size. `default` converts the types that JSON does not have.

    Raise `TypeError` if JSON cannot represent the value.
    """
    return bytes(memoryview(orjson.dumps(value, default=default)))


def is_within(value: Value, levels: int) -> bool:
    """Return whether objects and arrays in the value are nested at most `levels` levels deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return all(levels > 1 and is_within(each, levels - 1) for each in inner if isinstance(each, dict | list | tuple))


def json_size(what: str, value: Value, max_bytes: int) -> int:
    """Return the value's size as JSON. Raise `Invalid` if the value is not JSON, too deep, or too large. The error
    begins with `what`."""
    if not is_within(value, MAX_JSON_DEPTH):
        raise Invalid(f"{what} is nested more than {MAX_JSON_DEPTH} levels deep")
    try:
        size = len(orjson.dumps(value))
    except orjson.JSONEncodeError:
        raise Invalid(f"{what} is not JSON") from None
    if size > max_bytes:
        raise Invalid(f"{what} has {size} bytes as JSON; at most {max_bytes} are allowed")
    return size


def number_in(value: Value) -> int | float | None:
    """Return a value's number: the value itself, or its field `value` if it has a unit. Return None for a value
    without a number."""
    if isinstance(value, dict):
        value = value.get("value")
    return value if is_number(value) else None


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
    """Return a value as text for people, such as `21.5 celsius`."""
    number = number_in(value)
    if isinstance(value, dict) and number is not None and isinstance(value.get("unit"), str):
        return f"{rounded(number)} {value['unit']}"
    return format_value(value)


def last_known(value: Value, known: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the earlier values to keep, newest first. If the newest value is None (a gap), keep all earlier
    values. If the newest value is not a number, keep the last number."""
    if value is None:
        return known
    if number_in(value) is not None:
        return ()
    return tuple(each for each in known if number_in(each) is not None)[:1]


def percent_of(level: float, highest: float) -> int:
    """Return a device's level as percent, from 0 to 100. Any level above 0 is at least 1 %."""
    return min(max(round(level * 100 / highest), 1), 100) if level > 0 else 0


def level_of(percent: float, highest: float) -> int:
    """Return the device's level for a percentage. Any percentage above 0 is at least level 1."""
    return max(round(percent * highest / 100), 1) if percent > 0 else 0


def kelvin_of(mired: float) -> int:
    """Return the colour temperature in kelvin: one million divided by the mireds."""
    return round(1_000_000 / mired)


def clamped_kelvin(kelvin: float) -> int:
    """Return whole kelvin within `KELVIN_RANGE`."""
    return round(min(max(kelvin, KELVIN_RANGE[0]), KELVIN_RANGE[1]))


def mireds_of(kelvin: float) -> int:
    """Return the colour temperature in mireds; see `kelvin_of`."""
    return kelvin_of(kelvin)  # the conversion is its own inverse


def kelvin_in(value: Mapping[str, Value]) -> int:
    """Return a canonical colour temperature in kelvin."""
    return int(value["value"]) if value["unit"] == "kelvin" else kelvin_of(value["value"])


def mireds_in(value: Mapping[str, Value]) -> int:
    """Return a canonical colour temperature in mireds."""
    return int(value["value"]) if value["unit"] == "mireds" else mireds_of(value["value"])


def json_copy(value: Value, levels: int = MAX_JSON_DEPTH) -> Value:
    """Return a deep copy of the value. Raise `Invalid` if JSON cannot represent the value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and _is_unicode(value):
        return str(value)
    if is_number(value):
        return float(value) if isinstance(value, float) else int(value)
    if levels > 0 and isinstance(value, list | tuple):
        return [json_copy(each, levels - 1) for each in value]
    if levels > 0 and isinstance(value, Mapping):
        return {_key(key): json_copy(each, levels - 1) for key, each in value.items()}
    raise Mismatch(f"a JSON value of at most {MAX_JSON_DEPTH} levels", value)


def _key(key: Any) -> str:
    if not isinstance(key, str) or not _is_unicode(key):
        raise Invalid(f"must have strings as keys, not {format_value(key)}")
    return str(key)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _integer_or_string(value: Value) -> int | str:
    return value if isinstance(value, str) else integer(value)


def _unit_interval(value: Value) -> float:
    if not 0 <= number(value) <= 1:
        raise Mismatch("a number from 0 to 1", value)
    return value  # type: ignore[no-any-return]


def _hex_color(value: Value) -> str:
    if not isinstance(value, str) or _HEX_COLOR.match(value) is None:
        raise Mismatch("a colour like #ffa500", value)
    return value


def _integer_between(low: int, high: int) -> Check:
    return Check(schema=between(low, high), run=partial(integer, low=low, high=high))


def _object(title: str, /, **fields: Check) -> Check:
    """Return a check for an object with these fields. The check drops other fields."""
    checks = {name: check.run for name, check in fields.items()}

    def run(value: Value) -> dict[str, Value]:
        stated = _fields(value, *checks)
        try:
            return {name: check(stated[name]) for name, check in checks.items()}
        except Invalid:
            return {name: _in(name, check, stated) for name, check in checks.items()}  # an error names the field

    properties = {name: check.schema for name, check in fields.items()}
    schema = {"title": title, "type": "object", "required": [*fields], "properties": properties}
    return Check(schema=schema, run=run)


def _in_unit(title: str, unit: str, low: int, high: int) -> Check:
    return _object(title, value=_integer_between(low, high), unit=Check(schema={"const": unit}, run=string))


_TEMPERATURES: Mapping[Value, Check] = {
    "kelvin": _in_unit("Kelvin", "kelvin", *KELVIN_RANGE),
    "mireds": _in_unit("Mireds", "mireds", *MIRED_RANGE),
}

_TEMPERATURE_STEPS: Mapping[Value, Check] = {
    "kelvin": _in_unit("KelvinStep", "kelvin", 0, KELVIN_RANGE[1]),
    "mireds": _in_unit("MiredStep", "mireds", 0, MIRED_RANGE[1]),
}


def _color_temperature(value: Value, checks: Mapping[Value, Check] = _TEMPERATURES) -> Value:
    unit = _fields(value, "value", "unit")["unit"]
    if not isinstance(unit, str) or unit not in checks:
        raise Invalid(f"unit must be kelvin or mireds, not {format_value(unit)}")
    return checks[unit](value)


_NUMBER = Check(schema=NUMBER, run=number)
_TEXT = Check(schema=TEXT, run=string)
_FRACTION = Check(schema=between(0, 1, NUMBER), run=_unit_interval)
_BYTE = _integer_between(0, 255)

CHECKS: Mapping[str, Check] = {
    "measurement": _object("Measurement", value=_NUMBER, unit=_TEXT),
    "accumulation": _object("Accumulation", value=_NUMBER, unit=_TEXT, period=_TEXT),
    "number": _NUMBER,
    "integer": Check(schema=INTEGER, run=integer),
    "string": _TEXT,
    "boolean": Check(schema=BOOLEAN, run=boolean),
    "integer_or_string": Check(schema={"type": ["integer", "string"]}, run=_integer_or_string),
    "percentage": _integer_between(0, 100),
    "rgb_color": _object("RgbColor", r=_BYTE, g=_BYTE, b=_BYTE),
    "hex_color": Check(schema={**TEXT, "pattern": "^#[0-9a-fA-F]{6}$"}, run=_hex_color),
    "xy_color": _object("XyColor", x=_FRACTION, y=_FRACTION),
    "hs_color": _object("HsColor", hue=_integer_between(0, 360), saturation=_integer_between(0, 100)),
    "color_temperature": Check(
        schema={"title": "ColorTemperature", "oneOf": [each.schema for each in _TEMPERATURES.values()]},
        run=_color_temperature,
    ),
}
"""The check of each schema type except `enum`; a capability lists the values of an enum."""

STEP_CHECKS: Mapping[str, Callable[[Value], Value]] = {
    "color_temperature": lambda value: _color_temperature(value, _TEMPERATURE_STEPS)
}
"""The check of the step in `increase` and `decrease`, for types whose steps and values have different ranges."""


def _fields(value: Value, *names: str) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise Mismatch(f"an object with {', '.join(names)}", value)
    for name in names:
        if name not in value:
            raise Invalid(f"lacks the field {name}")
    return value


def _in(name: str, check: Callable[[Value], Value], fields: Mapping[str, Value]) -> Value:
    try:
        return check(fields[name])
    except Invalid as fault:
        raise Invalid(f"{name} {fault}") from None
