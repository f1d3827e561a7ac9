"""Times and durations in automations of Home Assistant."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from appliance.cli.homeassistant.not_translated import NotTranslated
from appliance.cli.homeassistant.values import contains_template, shown, words
from appliance.cli.homeassistant.yaml_parser import Base60

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

SECONDS: Mapping[str, float] = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1, "milliseconds": 0.001}


def seconds(value: Any) -> float:
    """Return the seconds of a duration: HH:MM:SS, a number, or a mapping. Raise `NotTranslated` for a template."""
    if isinstance(value, bool) or value is None:
        raise NotTranslated("the duration is missing")
    try:
        found = _seconds(value)
    except (KeyError, OverflowError, TypeError, ValueError):
        found = math.nan
    if math.isfinite(found):
        return found
    if contains_template(value):
        raise NotTranslated("the duration is a template")
    raise NotTranslated(f"{shown(value)} is not a duration; write a duration such as 00:05:00")


def _seconds(value: Any) -> float:
    if isinstance(value, Base60):
        return value.number
    if isinstance(value, Mapping):
        return sum(float(each) * SECONDS[str(unit)] for unit, each in value.items())
    if found := re.fullmatch(r"\s*([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d+)?))?\s*", str(value)):
        sign = -1 if found[1] == "-" else 1
        return sign * (int(found[2]) * 3600 + int(found[3]) * 60 + float(found[4] or 0))
    return float(value)


def duration(value: Mapping[str, Any]) -> float:
    """Return the seconds of `for`, or 0 if it is missing. Raise `NotTranslated` for a template."""
    return seconds(value["for"]) if value.get("for") is not None else 0.0


def offset_minutes(value: Any) -> int:
    """Return the minutes of an offset, or 0 if it is missing. Raise `NotTranslated` for a template."""
    return round(seconds(value) / 60) if value is not None else 0


def whole(secs: float) -> int | float:
    return int(secs) if float(secs).is_integer() else secs


def time_of_day(value: Any) -> str:
    """Return a time of day as HH:MM:SS. Raise `NotTranslated` for a helper or sensor."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = f"{value // 3600:02}:{value // 60 % 60:02}:{value % 60:02}"
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?", str(value)):
        raise NotTranslated(f"{value} is not a time of day; write a time such as 07:30")
    parts = [each.zfill(2) for each in str(value).split(":")]
    return ":".join([*parts, "00"][:3])


def weekdays(value: Any) -> list[str]:
    found = [each.lower()[:3] for each in words(value)]
    if not set(found) <= set(WEEKDAYS):
        raise NotTranslated(f"these weekdays are unknown: {', '.join(found)}")
    return found
