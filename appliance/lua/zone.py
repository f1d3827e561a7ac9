"""Local time for Lua, in whole numbers: nothing else may be handed from Python to a running state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from appliance.clock import Clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def functions_of(zone: ZoneInfo, clock: Clock) -> dict[bytes, Callable[..., int | None]]:
    """What `os.time` and `os.date` ask, by the names that the prelude knows. They never raise; None: out of range."""

    def instant() -> int:
        return int(clock.now().timestamp())

    def ahead_at(seconds: int) -> int | None:
        try:
            local = (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
        except (OverflowError, ValueError):
            return None
        offset = local.utcoffset() or timedelta()
        return 2 * int(offset.total_seconds()) + bool(local.dst())

    def instant_of(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
        try:
            first = datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)  # noqa: DTZ001 - local by definition
            local = first + timedelta(days=day - 1, hours=hour, minutes=minute, seconds=second)
            return int(local.replace(tzinfo=zone).timestamp())
        except (OverflowError, ValueError):
            return None

    return {b"instant": instant, b"ahead_at": ahead_at, b"instant_of": instant_of}
