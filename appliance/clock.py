"""Time as a part that is handed in, so that tests and simulations own it; and whether it can be believed."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class Clock:
    """The machine's own time. Subclasses may invent theirs; nobody else in Lares asks the machine.

    `looks_every` is after how many seconds one who waits for an instant should look again: it may have been set.
    """

    looks_every = 15.0

    def now(self) -> datetime:
        """The present instant, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds on a clock that is never set and goes on while the machine sleeps; only differences count."""
        return time.clock_gettime(_REAL_TIME)

    async def sleep(self, seconds: float) -> None:
        """Return after this many seconds."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most this many seconds; tell whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


class SimulatedClock(Clock):
    """A clock for one who waits: every wait is over at once, and its time has passed. `over` is set at the end."""

    looks_every = 86_400.0

    def __init__(self, start: datetime, until: datetime) -> None:
        self._start = start
        self._until = until
        self._elapsed = 0.0
        self.over = asyncio.Event()

    def now(self) -> datetime:
        """The simulated instant."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Simulated seconds since the start."""
        return self._elapsed

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Let these seconds be over at once, unless the event has come; behind the end, let nothing be over."""
        await asyncio.sleep(0)
        if event.is_set():
            return True
        if self.now() + timedelta(seconds=seconds) > self._until:
            self.over.set()
            await event.wait()
        self._elapsed += seconds
        return event.is_set()


_REAL_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Trust:
    """Whether the clock can be believed: a box without a clock chip starts in the past until the network tells it.

    It is believed once it shows a time later than both the newest that was ever stored and the time when this
    version was made; from then on it stays believed.
    """

    def __init__(self, clock: Clock, since: datetime) -> None:
        self.since = since
        self._clock = clock
        self._is_given = False

    def is_given(self) -> bool:
        """Whether the clock is believed by now."""
        self._is_given = self._is_given or self._clock.now() > self.since
        return self._is_given


class Steps:
    """Notices when somebody sets the clock."""

    TOLERANCE = timedelta(seconds=1)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()

    def take(self) -> timedelta:
        """How far the clock was set since the last time this was asked, negative when back; 0 for mere drift."""
        offset = self._measure()
        step, self._offset = offset - self._offset, offset
        return step if abs(step) >= self.TOLERANCE else timedelta()

    def _measure(self) -> timedelta:
        return self._clock.now() - datetime.fromtimestamp(0, UTC) - timedelta(seconds=self._clock.monotonic())


def timestamp(instant: datetime) -> str:
    """The instant as RFC 3339 in UTC with milliseconds, `2026-11-20T08:09:11.042Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
