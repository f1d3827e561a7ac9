"""The clock. Tests and simulations use their own clock, whose time they control."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
log = logging.getLogger("hub")
_REAL_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The machine's time. All code reads the time from an instance of this class, so that subclasses can simulate
    time.

    Code that waits for an instant checks the clock every `recheck_secs` seconds, because users and NTP may set the
    clock.
    """

    recheck_secs = 1.0

    now: Callable[[], datetime] = staticmethod(partial(datetime.now, UTC))
    """The current instant, in UTC."""

    monotonic: Callable[[], float] = staticmethod(partial(time.clock_gettime, _REAL_TIME))
    """Seconds on a clock that nobody can set, and that continues while the machine sleeps. Only the difference of
    two values is meaningful."""

    def is_synchronised(self) -> bool:
        """Return whether the kernel reports a synchronised clock, usually by NTP. Return False if the state is
        unknown."""
        return _adjtimex() not in (_CLOCK_ERROR, _FAILED)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event for at most `seconds`; return whether the event was set."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


_CLOCK_ERROR, _FAILED = 5, -1

_TIMEX_BYTES = 512
"""Size of the buffer for adjtimex(2), larger than `struct timex` on any machine. If all bytes of the buffer are zero,
adjtimex(2) only reads the clock's state."""


def _adjtimex() -> int:
    """Return the state of the kernel's clock, or -1 if the state cannot be read."""
    try:
        import ctypes  # Python builds for routers may lack ctypes

        adjtimex = ctypes.CDLL(None).adjtimex
    except (ImportError, AttributeError, OSError):
        return _FAILED
    state: int = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return state


class ClockSteps:
    """Detects changes of the system clock by comparing it with monotonic time, and corrects earlier times.

    `began` is the creation time of this object; each `poll` corrects it. All parts that store times share one object.
    After a change, the first call of `poll` or `now` notifies all listeners. A listener that corrects its stored
    times must get these times from `now`; otherwise, it would also correct a time from after the change.
    """

    TOLERANCE = timedelta(seconds=1)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()
        self.began = clock.now()
        self._listeners: list[Callable[[timedelta], None]] = []

    def listen(self, on_step: Callable[[timedelta], None]) -> None:
        """Register a function that receives each later change of the clock. The change is negative if the clock was
        set back."""
        self._listeners.append(on_step)

    def poll(self) -> None:
        """If the clock was set by at least `TOLERANCE` since the last call, notify the listeners."""
        offset = self._measure()
        step, self._offset = offset - self._offset, offset
        if abs(step) < self.TOLERANCE:
            return
        self.began += step
        for on_step in self._listeners:
            try:
                on_step(step)
            except Exception as error:  # one failure must not stop the others
                log.error("a clock change was not applied: %s: %s", type(error).__name__, error, exc_info=error)

    def now(self) -> datetime:
        """Return the current instant to store, after a call of `poll`."""
        self.poll()
        return self._clock.now()

    def redate(self, at: datetime, step: timedelta) -> datetime:
        """Correct a past time after the clock was set by `step`.

        Return `at` unchanged if the corrected time would be before `began` or in the future.
        """
        return at + step if self.began <= at + step <= self._clock.now() else at

    def _measure(self) -> timedelta:
        return self._clock.now() - EPOCH - timedelta(seconds=self._clock.monotonic())


def timestamp(instant: datetime) -> str:
    """Return the instant as RFC 3339 in UTC with milliseconds, `2026-11-20T08:09:11.042Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_millis(instant: datetime) -> int:
    """Return the whole milliseconds since 1970 in UTC."""
    return (instant - EPOCH) // _MILLISECOND


def from_millis(milliseconds: float) -> datetime:
    """Return the UTC instant for milliseconds since 1970. Raise `OverflowError` or `ValueError` if the result is out
    of range."""
    return EPOCH + milliseconds * _MILLISECOND
