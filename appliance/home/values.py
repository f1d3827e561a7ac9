"""The shapes a value may take: the types that capability schemas name, and how each is checked.

A check takes a JSON value and returns it in canonical form (an integral float becomes an integer), or
raises `Invalid` with a sentence that says what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from appliance.errors import Invalid
from appliance.tables.checks import Mismatch, boolean, integer, is_number, number, shown, string

Value = Any
"""A JSON value: what `orjson.loads` can return."""

KELVIN_RANGE = (2200, 7000)
MIRED_RANGE = (153, 556)

_HEX_COLOR = re.compile(r"#[0-9a-fA-F]{6}\Z")


MAX_JSON_DEPTH = 32
"""How deep arrays and objects may be nested in a value that no schema describes."""


def to_bytes(value: Value) -> bytes:
    """The value as JSON, in bytes to be kept. What orjson itself returns holds on to 4 KiB, however short it is.

    Raises `TypeError` for what JSON cannot hold.
    """
    return bytes(memoryview(orjson.dumps(value)))


def kelvin_of(mired: float) -> int:
    """Colour temperature in kelvin; one mired is a millionth of a reciprocal kelvin."""
    return round(1_000_000 / mired)


def json_copy(value: Value, levels: int = MAX_JSON_DEPTH) -> Value:
    """The value again, in lists, dicts and scalars of its own; `Invalid` for what JSON cannot hold."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and _is_unicode(value):
        return str(value)
    if isinstance(value, Mapping | list | tuple) and levels > 0:
        if isinstance(value, Mapping):
            return {_key(key): json_copy(each, levels - 1) for key, each in value.items()}
        return [json_copy(each, levels - 1) for each in value]
    if is_number(value):
        return float(value) if isinstance(value, float) else int(value)
    raise Mismatch(f"a JSON value, at most {MAX_JSON_DEPTH} levels deep", value)


def _key(key: Any) -> str:
    if not isinstance(key, str) or not _is_unicode(key):
        raise Invalid(f"must have strings as keys, not {shown(key)}")
    return str(key)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def integer_or_string(value: Value) -> int | str:
    """An integer or a string."""
    return value if isinstance(value, str) else integer(value)


def percentage(value: Value) -> int:
    """An integer from 0 to 100."""
    return integer(value, 0, 100)


def measurement(value: Value) -> dict[str, Value]:
    """A number with its unit: `{value, unit}`."""
    fields = _fields(value, "value", "unit")
    return {"value": _in("value", number, fields), "unit": _in("unit", string, fields)}


def accumulation(value: Value) -> dict[str, Value]:
    """A number with its unit and the period over which it was gathered: `{value, unit, period}`."""
    fields = _fields(value, "value", "unit", "period")
    return {**measurement(fields), "period": _in("period", string, fields)}


def rgb_color(value: Value) -> dict[str, int]:
    """Red, green and blue, each an integer from 0 to 255."""
    fields = _fields(value, "r", "g", "b")
    return {key: _in(key, lambda v: integer(v, 0, 255), fields) for key in ("r", "g", "b")}


def hex_color(value: Value) -> str:
    """A colour written `#rrggbb`."""
    if not isinstance(value, str) or _HEX_COLOR.match(value) is None:
        raise Mismatch("a colour like #ffa500", value)
    return value


def xy_color(value: Value) -> dict[str, float]:
    """A point of the CIE 1931 chromaticity plane: `x` and `y`, numbers from 0 to 1."""
    fields = _fields(value, "x", "y")
    return {key: _in(key, _unit_interval, fields) for key in ("x", "y")}


def hs_color(value: Value) -> dict[str, int]:
    """Hue in degrees, 0 to 360, and saturation in percent, 0 to 100; both integers."""
    fields = _fields(value, "hue", "saturation")
    return {
        "hue": _in("hue", lambda v: integer(v, 0, 360), fields),
        "saturation": _in("saturation", percentage, fields),
    }


def color_temperature(value: Value) -> dict[str, Value]:
    """`{value, unit}` in `kelvin` (2200 to 7000) or `mireds` (153 to 556), `value` an integer."""
    fields = _fields(value, "value", "unit")
    unit = fields["unit"]
    if unit not in ("kelvin", "mireds"):
        raise Invalid(f"unit must be kelvin or mireds, not {shown(unit)}")
    low, high = KELVIN_RANGE if unit == "kelvin" else MIRED_RANGE
    return {"value": _in("value", lambda v: integer(v, low, high), fields), "unit": unit}


CHECKS: Mapping[str, Callable[[Value], Value]] = {
    "measurement": measurement,
    "accumulation": accumulation,
    "number": number,
    "integer": integer,
    "string": string,
    "boolean": boolean,
    "integer_or_string": integer_or_string,
    "percentage": percentage,
    "rgb_color": rgb_color,
    "hex_color": hex_color,
    "xy_color": xy_color,
    "hs_color": hs_color,
    "color_temperature": color_temperature,
}
"""The check of each schema type but `enum`, whose values its capability lists."""


def _unit_interval(value: Value) -> float:
    if not 0 <= number(value) <= 1:
        raise Mismatch("a number from 0 to 1", value)
    return value  # type: ignore[no-any-return]


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
