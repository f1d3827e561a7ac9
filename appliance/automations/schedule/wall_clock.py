"""Computes the instants at which the home's clocks show a time, also when the clocks are changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from appliance.errors import Invalid
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.checks import format_value

_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\Z")

_SECOND = timedelta(seconds=1)

MAX_DAYS_AHEAD = 21
"""Maximum number of days until the next accepted weekday. The limit is larger than seven, because a time zone may
skip a day."""


def parse_time(value: Value) -> time:
    """Check a time of day, `HH:MM`, from 00:00 to 23:59."""
    match = _TIME.match(value) if isinstance(value, str) else None
    if match is None:
        hint = "; midnight is 00:00" if value == "24:00" else ""
        raise Invalid(f"must be a time like 07:30, not {format_value(value)}{hint}")
    return time(int(match[1]), int(match[2]))


def instant_of(day: date, at: time, zone: ZoneInfo) -> datetime | None:
    """Return the first instant, in UTC, when clocks in the zone show this time on this date. For a skipped time,
    return the first instant after the gap. Return None if the zone skips the whole date, because the zone has moved
    across the date line."""
    local = datetime.combine(day, at)
    instant = local.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    after_gap = _end_of_gap(local, zone)
    is_whole_day = after_gap.astimezone(zone).date() > day and _is_skipped(datetime.combine(day, time()), zone)
    return None if is_whole_day else after_gap


def next_wall_clock(
    at: time, locale: Locale, instant: datetime, accepts_day: Callable[[date], bool] = lambda day: True
) -> datetime | None:
    """Return the first instant after `instant` when the home's clocks show this time on an accepted day. Return None
    if no day within three weeks is accepted."""
    for day in locale.days_around(instant, 2, MAX_DAYS_AHEAD):
        if accepts_day(day):
            found = instant_of(day, at, locale.timezone)
            if found is not None and found > instant:
                return found
    return None


def next_time_back(zone: ZoneInfo, instant: datetime) -> datetime | None:
    """Return the instant, in UTC, when the zone's clocks are next set back. Return None if the clocks are not set
    back within 26 hours."""
    low, high = instant.replace(microsecond=0), instant.replace(microsecond=0) + timedelta(hours=26)
    if _offset(zone, high) >= (before := _offset(zone, low)):
        return None
    while high - low > _SECOND:
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (low, middle) if _offset(zone, middle) < before else (middle, high)
    return high


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def end_of_repeated(local: datetime) -> datetime:
    """Return the end of the repeated hour that contains this local time. The argument and the result have no time
    zone."""
    shown = local.replace(tzinfo=None, fold=0)
    low, high = shown, shown + timedelta(days=1)
    while high - low > _SECOND:
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if _is_repeated(middle.replace(tzinfo=local.tzinfo)) else (low, middle)
    return high


def _is_repeated(local: datetime) -> bool:
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


def _is_skipped(local: datetime, zone: ZoneInfo) -> bool:
    return local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local


def _end_of_gap(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first second after the gap that contains this local time."""
    either = sorted(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    before, after = either[0] - _SECOND, either[1]
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).replace(tzinfo=None) < local:
            before = middle
        else:
            after = middle
    return after
