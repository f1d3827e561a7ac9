"""What the clocks in the home show: once a day at a time, and windows of the day."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from appliance.errors import Invalid
from appliance.home.values import Value
from appliance.home_locale import Locale
from appliance.tables.checks import shown

_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])\Z")

_SECOND = timedelta(seconds=1)

MAX_DAYS_AHEAD = 21
"""How far ahead a time of day is looked for: a weekday comes within a week, though a zone may skip it once."""


def parse_time(value: Value) -> time:
    """A time of day written `HH:MM`, from 00:00 to 23:59."""
    match = _TIME.match(value) if isinstance(value, str) else None
    if match is None:
        hint = "; midnight is 00:00" if value == "24:00" else ""
        raise Invalid(f"must be a time like 07:30, not {shown(value)}{hint}")
    return time(int(match[1]), int(match[2]))


def instant_of(day: date, at: time, zone: ZoneInfo) -> datetime | None:
    """When the zone's clocks come to show this time on this date, in UTC.

    A time that they skip is the first instant after the gap, one that they show twice is the first. None where the
    whole date is skipped, as one that lies between the sides of the date line.
    """
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
    """The first instant after the given one at which the home's clocks show this time, on a day that `accepts_day`
    accepts; None where it accepts no day within three weeks.
    """
    for day in locale.days_around(instant, 2, MAX_DAYS_AHEAD):
        if accepts_day(day):
            found = instant_of(day, at, locale.timezone)
            if found is not None and found > instant:
                return found
    return None


def _is_skipped(local: datetime, zone: ZoneInfo) -> bool:
    return local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local


def _end_of_gap(local: datetime, zone: ZoneInfo) -> datetime:
    """The first second at which the zone's clocks show more than the skipped time."""
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
