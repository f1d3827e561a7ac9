"""From one sort of value to another, as filters and functions of templates do it."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import orjson

from appliance.adapters.mqtt.templates.template_limits import (
    Rendering,
    TemplateFailed,
    Undefined,
    ValueMissing,
    checked,
)

NOT_GIVEN = object()
"""In the place of a default that was not given."""

_TRUE = ("true", "yes", "on", "enable", "1")
_FALSE = ("false", "no", "off", "disable", "0")


def or_default(value: Any, default: Any, wanted: str) -> Any:
    """The default if one was given; else a failure that names what was wanted."""
    if default is not NOT_GIVEN:
        return default
    if isinstance(value, Undefined):
        raise ValueMissing(f"needs {wanted} that is not there")
    raise TemplateFailed(f"needs {wanted}, not {type(value).__name__}")


def to_float(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """The value as a number with a point."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return or_default(value, default, "a number")


def to_int(run: Rendering, value: Any, default: Any = NOT_GIVEN, base: Any = 10) -> Any:
    """The value as a whole number."""
    try:
        if isinstance(value, str) and base != 10:
            return checked(int(value[:64], base))
        return checked(int(value[:64]) if isinstance(value, str) else int(value))
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        return checked(int(float(value)))
    except (TypeError, ValueError, OverflowError):
        return or_default(value, default, "a number")


def rounded(run: Rendering, value: Any, digits: Any = 0, method: Any = "common", default: Any = NOT_GIVEN) -> Any:
    """Without digits the result is a whole number, as Home Assistant's is."""
    try:
        number, places = float(value), int(digits)
        scale = 10.0 ** max(-20, min(places, 20))
        if method == "half":
            rounded = round(number * 2) / 2
        elif method in ("ceil", "floor"):
            rounded = (math.ceil if method == "ceil" else math.floor)(number * scale) / scale
        else:
            rounded = round(number, places)
        return checked(int(rounded)) if places == 0 else rounded
    except (TypeError, ValueError, OverflowError):
        return or_default(value, default, "a number")


def multiplied(run: Rendering, value: Any, amount: Any, default: Any = NOT_GIVEN) -> Any:
    """The product of two numbers."""
    try:
        return float(value) * float(amount)
    except (TypeError, ValueError, OverflowError):
        return or_default(value, default, "a number")


def to_bool(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """Yes or no, of a word or number that says so."""
    if isinstance(value, bool | int | float):
        return bool(value)
    word = str(value).strip().lower() if isinstance(value, str) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    return or_default(value, default, "true or false")


def to_json(run: Rendering, value: Any) -> Any:
    """JSON without spaces."""
    try:
        return run.bounded(orjson.dumps(run.weigh(value)).decode())
    except (TypeError, orjson.JSONEncodeError):
        return or_default(value, NOT_GIVEN, "something that JSON can hold")


def html_safe_json(run: Rendering, value: Any) -> Any:
    """JSON as Jinja's own filter writes it: spaces after `,` and `:`, keys in order, signs of HTML escaped."""
    try:
        text = json.dumps(run.weigh(value), sort_keys=True)
    except (TypeError, ValueError):
        return or_default(value, NOT_GIVEN, "something that JSON can hold")
    for sign in "<>&'":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return run.bounded(text)


def as_timestamp(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """Seconds since 1970 of a time."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.timestamp() if isinstance(moment, datetime) else float(moment)
    except (TypeError, ValueError, OverflowError):
        return or_default(value, default, "a time")


def timestamp_text(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """The time of so many seconds since 1970, in UTC."""
    try:
        return datetime.fromtimestamp(float(value), UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return or_default(value, default, "a number of seconds")


def is_number(run: Rendering, value: Any) -> bool:
    """Whether the value is a finite number or the text of one."""
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False
