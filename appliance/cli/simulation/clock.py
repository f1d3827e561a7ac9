"""Simulated time, which jumps from one awaited instant to the next."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta

from appliance.clock import Clock

SETTLE_ITERATIONS = 20
"""Number of event loop iterations in which ready tasks run before simulated time advances."""

MAX_WAKINGS_AT_ONCE = 2_000
"""Maximum number of consecutive waits that end at the same simulated instant."""

BUSY_POLL_SECS = 0.001
"""Real seconds between calls of `is_busy`."""


class SimulatedClock(Clock):
    """Simulated time, which advances only within `run`."""

    recheck_secs = 86_400.0

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._is_stopped = False

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the simulated seconds since the clock was created."""
        return self._elapsed

    def is_synchronised(self) -> bool:
        return True

    async def sleep(self, seconds: float) -> None:
        await self._alarm(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event for at most `seconds` of simulated time; return whether the event was set."""
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
        """Advance simulated time to `until`, from one awaited instant to the next.

        Time does not advance while `is_busy()` is true, because work takes real time. Return False if `stop` was
        called, or if too many waits ended at one instant.
        """
        end, wakings, instant = (until - self._start).total_seconds(), 0, self._elapsed
        while not self._is_stopped and wakings < MAX_WAKINGS_AT_ONCE:
            for _ in range(SETTLE_ITERATIONS):
                await super().sleep(0)
            if is_busy():
                await super().sleep(BUSY_POLL_SECS)
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
        self._is_stopped = True

    def _alarm(self, seconds: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self._elapsed + max(0.0, seconds), next(self._numbers), future))
        return future
