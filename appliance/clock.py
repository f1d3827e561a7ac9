"""Time, passed in as a `Clock` so that tests and simulations can control it; and whether the clock can be trusted."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_REAL_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

SETTLE_ITERATIONS = 20
"""Iterations of the event loop for tasks that are ready, before simulated time advances."""

MAX_WAKINGS_AT_ONCE = 2_000
"""Consecutive waits without an advance of simulated time, before `run` gives up."""

BUSY_POLL_SECS = 0.001
"""Real seconds between two calls of `is_busy`."""

MAX_BACK_OFF_SECS = 60.0
"""Maximum number of seconds between two tries, unless another maximum is given."""

JITTER = 0.25
"""The random part of a back-off, so that parts that failed together do not retry together."""


def back_off(failures: int, first: float = 1.0, most: float = MAX_BACK_OFF_SECS) -> float:
    """Return the seconds to wait after this many consecutive failures: `first`, doubled with each further failure up
    to `most`, less a random part of up to a quarter.
    """
    return min(first * 2.0 ** min(max(failures - 1, 0), 16), most) * (1 - JITTER * random.random())


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


MAX_SIMULATED_HOURS = 24 * 366
"""The longest simulation."""


class SimulatedClock(Clock):
    """Simulated time, which passes only within `run`."""

    recheck_secs = 86_400.0

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._is_stopped = False

    def now(self) -> datetime:
        """Return the simulated instant."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the simulated seconds since the start."""
        return self._elapsed

    def is_synchronised(self) -> bool:
        """Return True: simulated time is always right."""
        return True

    async def sleep(self, seconds: float) -> None:
        """Return after this many simulated seconds."""
        await self._alarm(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most this many simulated seconds; return whether it was set."""
        if event.is_set():
            return True
        alarm = self._alarm(seconds)
        try:
            async with asyncio.timeout(None) as limit:
                alarm.add_done_callback(lambda done: None if done.cancelled() else limit.reschedule(0))
                await event.wait()
        except TimeoutError:
            return event.is_set()
        finally:
            alarm.cancel()
        return True

    async def run(self, until: datetime, is_busy: Callable[[], bool]) -> bool:
        """Advance from one awaited instant to the next until `until`, and stop there.

        No time passes while `is_busy()` is true, because work takes real time. Return False if `until` was not
        reached, because `stop` was called, or too many waits ended at one instant.
        """
        end, wakings, instant = (until - self._start).total_seconds(), 0, self._elapsed
        while not self._is_stopped and wakings < MAX_WAKINGS_AT_ONCE:
            for _ in range(SETTLE_ITERATIONS):
                await asyncio.sleep(0)
            if is_busy():
                await asyncio.sleep(BUSY_POLL_SECS)
                continue
            while self._waiting and self._waiting[0][2].done():
                heapq.heappop(self._waiting)
            if not self._waiting or self._waiting[0][0] >= end:
                self._elapsed = max(self._elapsed, end)
                return True
            due, _, future = heapq.heappop(self._waiting)
            self._elapsed = max(self._elapsed, due)
            wakings, instant = (wakings + 1, instant) if self._elapsed == instant else (0, self._elapsed)
            future.set_result(None)
        return False

    def stop(self) -> None:
        """Stop the simulated time."""
        self._is_stopped = True

    def _alarm(self, seconds: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._elapsed + max(0.0, seconds), next(self._numbers), future))
        return future


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


class ClockTrust:
    """Whether the clock is right: a box without a clock chip starts with a time in the past, until NTP sets the
    clock.

    It is trusted once the kernel reports that it is synchronised, or once it shows a time after `newest`, the newest
    stored time; from then on it stays trusted. A `newest` in the future of a synchronised clock came from a wrong
    clock: it is `forgotten`, and `newest` becomes the present.
    """

    def __init__(self, clock: Clock, newest: datetime) -> None:
        self.newest = newest
        self.forgotten: datetime | None = None
        self._clock = clock
        self._is_trusted = False

    def is_trusted(self) -> bool:
        """Return whether the clock is trusted by now."""
        if not self._is_trusted:
            now = self._clock.now()
            if now > self.newest:
                self._is_trusted = True
            elif self._clock.is_synchronised():
                self.trust_now()
        return self._is_trusted

    def trust_now(self) -> None:
        """Trust the clock as it is, because a person confirmed it."""
        now = self._clock.now()
        if self.newest > now:
            self.forgotten, self.newest = self.newest, now
        self._is_trusted = True

    def distrust_reason(self) -> str | None:
        """Return why the clock is not trusted, and what to do; None if it is trusted."""
        if self.is_trusted():
            return None
        now, newest = timestamp(self._clock.now()), timestamp(self.newest)
        return (
            f"the clock shows {now}, nothing synchronises it, and {newest} was stored before; set it, or run `lares "
            f"clock trust` if it is right"
        )


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
