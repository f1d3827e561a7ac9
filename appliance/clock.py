"""Time as a part that is handed in, so that tests and simulations own it; and whether it can be believed."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class Clock:
    """The machine's own time. Subclasses may invent theirs; nobody else in Lares asks the machine.

    `recheck_secs` is after how many seconds one who waits for an instant looks again, since the clock may be set.
    """

    recheck_secs = 1.0

    def now(self) -> datetime:
        """The present instant, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds on a clock that is never set and goes on while the machine sleeps; only differences count."""
        return time.clock_gettime(_REAL_TIME)

    def is_synchronised(self) -> bool:
        """Whether the kernel says that something, NTP as a rule, keeps the clock right; False if it cannot tell."""
        return _adjtimex() not in (_CLOCK_ERROR, _FAILED)

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
    """Simulated time: `wait` returns at once and advances the clock by `seconds`. `over` is set at the end."""

    recheck_secs = 86_400.0

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

    def is_synchronised(self) -> bool:
        """Always: simulated time is never wrong."""
        return True

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Let these seconds be over at once, unless the event has come; from the end on, let nothing be over."""
        await asyncio.sleep(0)
        if event.is_set():
            return True
        if self.now() + timedelta(seconds=seconds) >= self._until:
            self.over.set()
            await event.wait()
        self._elapsed += seconds
        return event.is_set()


_REAL_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_CLOCK_ERROR, _FAILED = 5, -1
"""What adjtimex(2) returns while the clock is not synchronised, and where it may not be asked."""

_TIMEX_BYTES = 512
"""More than a `struct timex` takes on any machine. All zero it changes nothing, and only the result is read."""


def _adjtimex() -> int:
    """The state of the kernel's clock; -1 where it cannot be asked."""
    try:
        import ctypes  # a part of Python that a router may lack

        adjtimex = ctypes.CDLL(None).adjtimex
    except (ImportError, AttributeError, OSError):
        return _FAILED
    state: int = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return state


class ClockTrust:
    """Whether the clock can be believed: a box without a clock chip starts in the past until the network tells it.

    It is trusted once the kernel says that it is synchronised, or once it shows a time later than `newest`, the
    newest that is known to have been; then it stays trusted. A `newest` ahead of a synchronised clock came from a
    wrong clock: it is `forgotten`, and `newest` is the present then.
    """

    def __init__(self, clock: Clock, newest: datetime) -> None:
        self.newest = newest
        self.forgotten: datetime | None = None
        self._clock = clock
        self._is_trusted = False

    def is_trusted(self) -> bool:
        """Whether the clock is trusted by now."""
        if not self._is_trusted:
            now = self._clock.now()
            if now > self.newest:
                self._is_trusted = True
            elif self._clock.is_synchronised():
                self.vouch()
        return self._is_trusted

    def vouch(self) -> None:
        """Trust the clock as it is, since somebody who knows says that it is right."""
        now = self._clock.now()
        if self.newest > now:
            self.forgotten, self.newest = self.newest, now
        self._is_trusted = True

    def doubt(self) -> str | None:
        """Why the clock is not trusted, and what to do; None where it is."""
        if self.is_trusted():
            return None
        now, newest = timestamp(self._clock.now()), timestamp(self.newest)
        return (
            f"the clock shows {now}, nothing synchronises it, and it was {newest} before; "
            "set it, or say `lares clock trust` if it is right"
        )


class ClockSteps:
    """Notices when somebody sets the clock."""

    TOLERANCE = timedelta(seconds=1)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._measure()

    def poll(self) -> timedelta:
        """How far the clock was set since the last time this was asked, negative when back; 0 for mere drift."""
        offset = self._measure()
        step, self._offset = offset - self._offset, offset
        return step if abs(step) >= self.TOLERANCE else timedelta()

    def _measure(self) -> timedelta:
        return self._clock.now() - datetime.fromtimestamp(0, UTC) - timedelta(seconds=self._clock.monotonic())


def timestamp(instant: datetime) -> str:
    """The instant as RFC 3339 in UTC with milliseconds, `2026-11-20T08:09:11.042Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
