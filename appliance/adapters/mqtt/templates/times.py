"""Points in time and durations in templates, in the zone of the home."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from appliance.adapters.mqtt.templates.conversions import MAX_NUMBER_CHARS, NOT_GIVEN, converted, number, or_default
from appliance.adapters.mqtt.templates.template_limits import Rendering, TemplateFailed

_FORMAT = re.compile(r"(?:[^%]|%-?[a-zA-Z%]){0,200}")


def _moment(text: str) -> datetime:
    """The point in time that a text in ISO 8601 says; `ValueError` for any other."""
    return datetime.fromisoformat(text[: MAX_NUMBER_CHARS + 1])


def as_datetime(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """The point in time of seconds since 1970, as number or text, or of a text in ISO 8601; None for another text."""
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromtimestamp(number(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        pass
    if default is NOT_GIVEN and isinstance(value, str):
        default = None
    return converted(value, default, "a time", lambda: _moment(value))


def as_local(run: Rendering, value: Any) -> Any:
    """The point in time on the home's clocks; one without a zone is taken as theirs."""
    if not isinstance(value, datetime):
        return or_default(value, NOT_GIVEN, "a time")
    return value.replace(tzinfo=run.now.tzinfo) if value.tzinfo is None else value.astimezone(run.now.tzinfo)


def as_timestamp(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
    """Seconds since 1970 of a point in time."""

    def convert() -> float:
        moment = _moment(value) if isinstance(value, str) else value
        if not isinstance(moment, datetime):
            return number(moment)
        return float(as_local(run, moment).timestamp())

    return converted(value, default, "a time", convert)


def shown(run: Rendering, moment: datetime, pattern: Any) -> str:
    """The point in time as a pattern of `strftime` shows it; a pattern with a width is refused."""
    if not isinstance(pattern, str) or not _FORMAT.fullmatch(pattern):
        raise TemplateFailed("has a pattern of a time that is not supported")
    return run.bounded(moment.strftime(pattern))


def timestamp_custom(run: Rendering, value: Any, pattern: Any = "%Y-%m-%d %H:%M:%S", local: Any = True,
                     default: Any = NOT_GIVEN) -> Any:  # fmt: skip
    """Seconds since 1970 as a pattern shows them, in the home's zone or in UTC."""
    zone = run.now.tzinfo if local else UTC
    return converted(
        value,
        default,
        "a number of seconds",
        lambda: shown(run, datetime.fromtimestamp(number(value), zone), pattern),
    )


def _iso(*, local: bool) -> Callable[..., Any]:
    def convert(run: Rendering, value: Any, default: Any = NOT_GIVEN) -> Any:
        zone = run.now.tzinfo if local else UTC
        return converted(
            value, default, "a number of seconds", lambda: datetime.fromtimestamp(number(value), zone).isoformat()
        )

    return convert


timestamp_local = _iso(local=True)
timestamp_utc = _iso(local=False)


def parsed(run: Rendering, text: Any, pattern: Any, default: Any = NOT_GIVEN) -> Any:
    """The point in time that a text shows by a pattern of `strptime`."""
    if not isinstance(text, str) or len(text) > 100 or not isinstance(pattern, str) or len(pattern) > 100:
        return or_default(text, default, "a short text of a time")
    run.charge(50)
    return converted(text, default, "a time of that pattern", lambda: datetime.strptime(text, pattern))  # noqa: DTZ007


def duration(run: Rendering, *given: Any, **named: Any) -> timedelta:
    """A duration of days, seconds, microseconds, milliseconds, minutes, hours and weeks."""
    return timedelta(*given, **named)


def today_at(run: Rendering, text: Any = "00:00") -> datetime:
    """Today at a time of day on the home's clocks."""
    match = re.fullmatch(r"(\d{1,2}):(\d\d)(?::(\d\d))?", run.text(text)[:20])
    if match is None:
        raise TemplateFailed("needs a time of day such as 07:30")
    hour, minute, second = (int(each or 0) for each in match.groups())
    return run.now.replace(hour=hour, minute=minute, second=second, microsecond=0)


TIME_FIELDS = {
    datetime: ("year", "month", "day", "hour", "minute", "second", "microsecond"),
    timedelta: ("days", "seconds", "microseconds"),
}
"""The attributes of points in time and durations that templates may read."""

DATETIME_METHODS: Mapping[str, Callable[..., Any]] = {
    "isoformat": lambda run, moment: moment.isoformat(),
    "isoweekday": lambda run, moment: moment.isoweekday(),
    "replace": lambda run, moment, **fields: moment.replace(**{key: int(each) for key, each in fields.items()}),
    "strftime": shown,
    "timestamp": as_timestamp,
    "weekday": lambda run, moment: moment.weekday(),
}
"""The methods of a point in time that templates may call."""
