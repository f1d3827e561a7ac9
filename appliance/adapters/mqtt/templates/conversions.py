"""Conversions between types of values, as the filters and functions of templates do them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
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


def or_default(value: Any, default: Any, expected: str) -> Any:
    """The default if one was given; otherwise raises `TemplateFailed` with what the filter needs."""
    if default is not NOT_GIVEN:
        return default
    if isinstance(value, Undefined):
        raise ValueMissing(f"needs {expected} that is not there")
    raise TemplateFailed(f"needs {expected}, not {type(value).__name__}")


def _converted(value: Any, default: Any, expected: str, convert: Callable[[], Any]) -> Any:
    """What `convert` returns; where Python cannot convert, as `or_default`."""
    try:
        return checked(convert())
    except (TypeError, ValueError, OverflowError, OSError):
        return or_default(value, default, expected)


def to_float(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """The value as a float."""
    return _converted(value, default, "a number", lambda: float(value))


def to_int(run: Rendering, value: Any, default: Any = NOT_GIVEN, base: Any = 10) -> Any:
    """The value as an integer, the fraction cut off."""

    def convert() -> int:
        if not isinstance(value, str):
            return int(value)
        try:
            return int(value[:64], base)
        except ValueError:
            return int(float(value))

    return _converted(value, default, "a number", convert)


def rounded(run: Rendering, value: Any, digits: Any = 0, method: Any = "common", default: Any = NOT_GIVEN) -> Any:
    """The value rounded; without digits an integer, as Home Assistant's filter gives."""

    def convert() -> float:
        number, places = float(value), int(digits)
        scale = 10.0 ** max(-20, min(places, 20))
        if method == "half":
            result = round(number * 2) / 2
        elif method in ("ceil", "floor"):
            result = (math.ceil if method == "ceil" else math.floor)(number * scale) / scale
        else:
            result = round(number, places)
        return int(result) if places == 0 else result

    return _converted(value, default, "a number", convert)


def multiplied(run: Rendering, value: Any, amount: Any, default: Any = NOT_GIVEN) -> Any:
    """The product of two numbers."""
    return _converted(value, default, "a number", lambda: float(value) * float(amount))


def to_bool(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """The boolean of a word or number."""
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
    """JSON as Jinja's own filter writes it: spaces after `,` and `:`, keys sorted, `<`, `>`, `&`, `'` escaped."""
    try:
        text = json.dumps(run.weigh(value), sort_keys=True)
    except (TypeError, ValueError):
        return or_default(value, NOT_GIVEN, "something that JSON can hold")
    for char in "<>&'":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return run.bounded(text)


def as_timestamp(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """Seconds since 1970 of a time."""

    def convert() -> float:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.timestamp() if isinstance(moment, datetime) else float(moment)

    return _converted(value, default, "a time", convert)


def timestamp_text(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """The time of so many seconds since 1970, in UTC."""
    return _converted(
        value, default, "a number of seconds", lambda: datetime.fromtimestamp(float(value), UTC).isoformat()
    )


def is_number(run: Rendering, value: Any) -> bool:
    """Whether the value is a finite number or the text of one."""
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False
