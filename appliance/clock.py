"""Time, passed in as a `Clock` so that tests and simulations can control it; and whether the clock can be trusted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_REAL_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The machine's time; all code reads time from an instance. Subclasses may simulate it.

    Waits for an instant check the clock every `recheck_secs` seconds, because it may be set.
    """

    recheck_secs = 1.0

    now: Callable[[], datetime] = staticmethod(partial(datetime.now, UTC))
    """The present instant, in UTC."""

    monotonic: Callable[[], float] = staticmethod(partial(time.clock_gettime, _REAL_TIME))
    """Seconds on a clock that is never set and that continues while the machine sleeps; only differences have a
    meaning."""

    def is_synchronised(self) -> bool:
        """Return whether the kernel states that the clock is synchronised, usually by NTP. Return False if that is
        unknown.
        """
        return _adjtimex() not in (_CLOCK_ERROR, _FAILED)

    async def sleep(self, seconds: float) -> None:
        """Return after this many seconds."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most this many seconds; return whether it was set."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


_CLOCK_ERROR, _FAILED = 5, -1
"""Results of adjtimex(2): the clock is not synchronised; the call is not allowed."""

_TIMEX_BYTES = 512
"""More than the size of `struct timex` on any machine. If all bytes are zero, the call only reads and changes
nothing."""


def _adjtimex() -> int:
    """Return the state of the kernel's clock; -1 if it cannot be read."""
    try:
        import ctypes  # a part of Python that a router may lack

        adjtimex = ctypes.CDLL(None).adjtimex
    except (ImportError, AttributeError, OSError):
        return _FAILED
    state: int = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return state


class ClockSteps:
    """Detects that the clock was set, by comparison with monotonic time, and converts earlier times.

    `began` is when this object was made, by the clock at the last `poll`.
    """

    TOLERANCE = timedelta(seconds=1)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()
        self.began = clock.now()

    def poll(self) -> timedelta:
        """Return how far the clock was set since the last call, negative if it was set back. Return 0 for drift
        within `TOLERANCE`.
        """
        offset = self._measure()
        step, self._offset = offset - self._offset, offset
        if abs(step) < self.TOLERANCE:
            return timedelta()
        self.began += step
        return step

    def redate(self, at: datetime, step: timedelta) -> datetime:
        """Return the time corrected for the clock, which has just been set by `step`.

        A time before this object was made is unchanged.
        """
        return at + step if self.began <= at + step <= self._clock.now() else at

    def _measure(self) -> timedelta:
        return self._clock.now() - EPOCH - timedelta(seconds=self._clock.monotonic())


def timestamp(instant: datetime) -> str:
    """Return the instant as RFC 3339 in UTC with milliseconds, `2026-11-20T08:09:11.042Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_millis(instant: datetime) -> int:
    """Return whole milliseconds since 1970."""
    return (instant - EPOCH) // _MILLISECOND


def from_millis(milliseconds: float) -> datetime:
    """Return the instant, in UTC, this many milliseconds after 1970 began; raises `OverflowError` or `ValueError`."""
    return EPOCH + milliseconds * _MILLISECOND
