"""Conversions, calculations, points in time, and durations, which behave like Home Assistant's filters and
functions."""

from __future__ import annotations

import base64
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import jinja2
import orjson
from jinja2.utils import htmlsafe_json_dumps

from appliance.adapters.mqtt.templates.template_limits import (
    WEIGHT_PER_STEP,
    Rendering,
    TemplateFailed,
    ValueMissing,
    weight,
    whole,
)

MAX_NUMBER_CHARS = 100
"""Maximum length of a text that is converted to a number or a time."""

MAX_SLUG_CHARS = 1_000
"""Maximum length of a text that becomes a slug. Separating accents takes quadratic time."""

MAX_QUICK_WEIGHT = 1_000
"""Maximum weight of a value that orjson writes. orjson reserves eight times the memory of a text."""

NOT_GIVEN = object()
"""Marks a missing default."""


class Undefined(jinja2.Undefined):
    """A missing value, which templates can use as an empty string, as false, or as an empty list. Any other use
    raises `ValueMissing`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__("reads a missing value", exc=ValueMissing)  # type: ignore[arg-type]


UNDEFINED = Undefined()

_FORMAT = re.compile(r"(?:[^%]|%-?[a-zA-Z%]){0,200}")
_TRUE = ("true", "yes", "on", "enable", "1")
_FALSE = ("false", "no", "off", "disable", "0")


def or_default(value: Any, default: Any, expected: str) -> Any:
    """Return the default, if given. Otherwise raise `TemplateFailed`. `expected` is the required kind of value."""
    if default is not NOT_GIVEN:
        return default
    if isinstance(value, Undefined):
        raise ValueMissing(f"needs {expected}, which is missing")
    raise TemplateFailed(f"needs {expected}, not {type(value).__name__}")


def converted(value: Any, default: Any, expected: str, convert: Callable[[], Any]) -> Any:
    """Return the result of `convert`. If the conversion fails, behave like `or_default`."""
    try:
        return whole(convert())
    except (TypeError, ValueError, ArithmeticError, OSError, ValueMissing):
        return or_default(value, default, expected)


def number(value: Any) -> float:
    """Convert a value to a float. Raise ValueError for more than `MAX_NUMBER_CHARS` characters, and the exceptions of
    `float`."""
    return float(value if not isinstance(value, str) or len(value) <= MAX_NUMBER_CHARS else "")


def defaulting(expected: str, count: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator. The decorated filter gets `count` values, and then an optional default for values that
    cannot be converted."""

    def decorate(work: Callable[..., Any]) -> Callable[..., Any]:
        def convert(run: Rendering, *given: Any, default: Any = NOT_GIVEN, **named: Any) -> Any:
            values, (default, *more) = given[:count], given[count:] or (default,)
            return converted(given[0], default, expected, lambda: work(run, *values, *more, **named))

        return convert

    return decorate


@defaulting("a number")
def to_float(run: Rendering, value: Any) -> Any:
    return number(value)


@defaulting("a number")
def to_int(run: Rendering, value: Any, base: Any = 10) -> Any:
    """Convert a value to an integer, without its fraction."""
    if not isinstance(value, str):
        return int(value)
    try:
        return int(value if len(value) <= MAX_NUMBER_CHARS else "", base)
    except ValueError:
        return int(number(value))


@defaulting("a number", 3)
def rounded(run: Rendering, value: Any, digits: Any = 0, method: Any = "common") -> Any:
    """Round a value. If `digits` is 0 or missing, return an integer, as Home Assistant's filter does."""
    found, places = number(value), max(-20, min(int(digits), 20))
    scale = 10.0**places
    if method == "half":
        result = round(found * 2) / 2
    elif method in ("ceil", "floor"):
        result = (math.ceil if method == "ceil" else math.floor)(found * scale) / scale
    else:
        result = round(found, places)
    return int(result) if places == 0 else result


def calculated(work: Callable[..., float], count: int = 1) -> Callable[..., Any]:
    """Return a filter whose arguments are `count` numbers, followed by an optional default."""
    return defaulting("a number", count)(lambda run, *given: work(*map(number, given)))


@defaulting("a number", 2)
def logarithm(run: Rendering, value: Any, base: Any = math.e) -> Any:
    return math.log(number(value), number(base))


def averaged(choose: Callable[[list[float]], float]) -> Callable[..., Any]:
    """Return a function of several numbers or of the numbers in a list. The function can also be used as a filter."""

    def average(run: Rendering, *values: Any, default: Any = NOT_GIVEN) -> Any:
        if values and isinstance(values[0], list | tuple):
            default = values[1] if len(values) > 1 else default
            values = tuple(run.elements(values[0]))
        missing = next((each for each in values if isinstance(each, Undefined)), values)
        return converted(missing, default, "numbers", lambda: choose([number(each) for each in values]))

    return average


def bitwise(work: Callable[[int, int], int]) -> Callable[..., Any]:
    """Return a function of two integers. The function can also be used as a filter."""

    def calculate(run: Rendering, first: Any, second: Any) -> Any:
        for each in (first, second):
            if not isinstance(each, int):
                or_default(each, NOT_GIVEN, "a whole number")
        return work(first, second)

    return calculate


def to_bool(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    if isinstance(value, bool | int | float):
        return bool(value)
    word = value[:20].strip().lower() if isinstance(value, str) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    return or_default(value, default, "true or false")


def iif(run: Rendering, value: Any, yes: Any = True, no: Any = False, none: Any = NOT_GIVEN) -> Any:
    """Return `yes` if the value is true, otherwise `no`. For None, return `none` if it is given."""
    if value is None and none is not NOT_GIVEN:
        return none
    return yes if value else no


def to_json(run: Rendering, value: Any, ensure_ascii: Any = False, pretty_print: Any = False,
            sort_keys: Any = False) -> Any:  # fmt: skip
    """Convert a value to JSON without spaces."""
    parts = weight(value)
    run.charge(parts // WEIGHT_PER_STEP)
    try:
        if ensure_ascii or parts > MAX_QUICK_WEIGHT:
            gaps = (", ", ": ") if ensure_ascii or pretty_print else (",", ":")
            return run.bounded(json.dumps(value, ensure_ascii=bool(ensure_ascii), indent=2 if pretty_print else None,
                                          sort_keys=bool(sort_keys), separators=gaps))  # fmt: skip
        option = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
        option |= (orjson.OPT_INDENT_2 if pretty_print else 0) | (orjson.OPT_SORT_KEYS if sort_keys else 0)
        return run.bounded(orjson.dumps(value, option=option).decode())
    except (TypeError, ValueError):
        return or_default(value, NOT_GIVEN, "a JSON value")


def html_safe_json(run: Rendering, value: Any) -> Any:
    """Convert a value to JSON like Jinja's own filter: with spaces after `,` and `:`, sorted keys, and escaped `<`,
    `>`, `&`, and `'`."""
    try:
        return run.bounded(str(htmlsafe_json_dumps(run.weighed(value), sort_keys=True)))
    except (TypeError, ValueError):
        return or_default(value, NOT_GIVEN, "a JSON value")


@defaulting("JSON")
def from_json(run: Rendering, value: Any) -> Any:
    return run.made(orjson.loads(run.bounded(value) if isinstance(value, str) else b""))


def base64_text(run: Rendering, value: Any) -> str:
    return run.bounded(base64.b64encode(run.text(value).encode()).decode())


def text_of_base64(run: Rendering, value: Any, encoding: Any = "utf-8") -> str:
    return run.bounded(base64.b64decode(run.text(value)).decode("utf-8" if encoding != "ascii" else "ascii"))


def slug(run: Rendering, value: Any, separator: Any = "_") -> str:
    """Return the text in lower-case ASCII letters and digits, without accents. The separator replaces all other
    characters."""
    if len(text := run.text(value)) > MAX_SLUG_CHARS:
        raise TemplateFailed(f"creates a slug of more than {MAX_SLUG_CHARS:,} characters")
    text = run.bounded(unicodedata.normalize("NFKD", text.replace("ß", "ss")))
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=\d),(?=\d)", "", text.encode("ascii", "ignore").decode().lower()))
    return run.bounded(run.text(separator)[:10].join(words)) or ("unknown" if text else "")


def is_number(run: Rendering, value: Any) -> bool:
    """Return whether the value is a finite number, or the text of a finite number."""
    try:
        return math.isfinite(number(value))
    except (TypeError, ValueError, OverflowError, ValueMissing):
        return False


def _moment(text: str) -> datetime:
    """Parse ISO 8601. Raise ValueError for any other text."""
    return datetime.fromisoformat(text[: MAX_NUMBER_CHARS + 1])


def as_datetime(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """Convert a text in ISO 8601 to a point in time. Also convert seconds since 1970, as a number or text. Return
    None for other texts."""
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromtimestamp(number(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError, ValueMissing):
        pass
    if default is NOT_GIVEN and isinstance(value, str):
        default = None
    return converted(value, default, "a time", lambda: _moment(value))


def as_local(run: Rendering, value: Any) -> Any:
    """Convert a time to the home's zone. A time without a zone is local."""
    if not isinstance(value, datetime):
        return or_default(value, NOT_GIVEN, "a time")
    return value.replace(tzinfo=run.now.tzinfo) if value.tzinfo is None else value.astimezone(run.now.tzinfo)


@defaulting("a time")
def as_timestamp(run: Rendering, value: Any) -> Any:
    """Convert a point in time to seconds since 1970."""
    moment = _moment(value) if isinstance(value, str) else value
    return as_local(run, moment).timestamp() if isinstance(moment, datetime) else number(moment)


def shown(run: Rendering, moment: date, pattern: Any) -> str:
    """Format a time with a `strftime` pattern. A pattern with a width is rejected."""
    if not isinstance(pattern, str) or not _FORMAT.fullmatch(pattern):
        raise TemplateFailed("has an unsupported time pattern")
    return run.bounded(moment.strftime(pattern))


@defaulting("a number of seconds", 3)
def timestamp_custom(run: Rendering, value: Any, pattern: Any = "%Y-%m-%d %H:%M:%S", local: Any = True) -> Any:
    """Format seconds since 1970 with a pattern, in the home's zone or in UTC."""
    return shown(run, datetime.fromtimestamp(number(value), run.now.tzinfo if local else UTC), pattern)


@defaulting("a number of seconds")
def timestamp_local(run: Rendering, value: Any) -> Any:
    """Format seconds since 1970 as ISO 8601, in the home's zone."""
    return datetime.fromtimestamp(number(value), run.now.tzinfo).isoformat()


@defaulting("a number of seconds")
def timestamp_utc(run: Rendering, value: Any) -> Any:
    """Format seconds since 1970 as ISO 8601, in UTC."""
    return datetime.fromtimestamp(number(value), UTC).isoformat()


@defaulting("a time and a pattern as texts of at most 100 characters", 2)
def parsed(run: Rendering, text: Any, pattern: Any) -> Any:
    """Parse a text with a `strptime` pattern."""
    if not isinstance(text, str) or len(text) > 100 or not isinstance(pattern, str) or len(pattern) > 100:
        raise ValueError
    run.charge(50)
    return datetime.strptime(text, pattern)  # noqa: DTZ007


def duration(run: Rendering, *given: Any, **named: Any) -> timedelta:
    """Return a duration. The arguments are days, seconds, microseconds, milliseconds, minutes, hours, and weeks."""
    return timedelta(*given, **named)


def today_at(run: Rendering, text: Any = "00:00") -> datetime:
    """Return today's point in time at this time of day, in the home's zone."""
    match = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d))?", run.text(text)[:20])
    if match is None:
        raise TemplateFailed("needs a time of day such as 07:30")
    hour, minute, second = (int(each or 0) for each in match.groups())
    return run.now.replace(hour=hour, minute=minute, second=second, microsecond=0)


def isoformat(run: Rendering, moment: datetime, sep: str = "T", timespec: str = "auto") -> str:
    return moment.isoformat(sep, timespec)


TIME_FIELDS = {
    date: ("year", "month", "day"),
    datetime: ("year", "month", "day", "hour", "minute", "second", "microsecond"),
    timedelta: ("days", "seconds", "microseconds"),
}
"""Attributes of dates, points in time, and durations that templates may read."""

DATE_METHODS: Mapping[str, Callable[..., Any]] = {
    "isoformat": lambda run, day: day.isoformat(),
    "isoweekday": lambda run, day: day.isoweekday(),
    "strftime": shown,
    "weekday": lambda run, day: day.weekday(),
}
"""Methods of dates that templates may call."""

DATETIME_METHODS: Mapping[str, Callable[..., Any]] = {
    **DATE_METHODS,
    "date": lambda run, moment: moment.date(),
    "isoformat": isoformat,
    "replace": lambda run, moment, **fields: moment.replace(**{key: int(each) for key, each in fields.items()}),
    "timestamp": as_timestamp,
}
"""Methods of points in time that templates may call."""
