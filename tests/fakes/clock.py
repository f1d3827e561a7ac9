"""A clock that only the test moves."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from appliance.clock import Clock

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

PATIENCE = 30.0
"""If a test waits for sleepers for longer than this number of real seconds, the test fails."""

T = TypeVar("T")


class VirtualClock(Clock):
    """A clock that only `advance` moves."""

    recheck_secs = 15.0

    def __init__(self, start: datetime = START, *, is_synchronised: bool = False) -> None:
        self.synchronised = is_synchronised
        self._start = start
        self._elapsed = 0.0
        self._numbers = itertools.count()
        self._heap: list[tuple[float, int, asyncio.Future[None]]] = []
        self._stirred = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def is_synchronised(self) -> bool:
        """Return the value that the test has set."""
        return self.synchronised

    def set(self, instant: datetime) -> None:
        """Set the clock, as NTP or a person would do. Setting the clock wakes no sleeper."""
        self._start += instant - self.now()

    def suspend(self, seconds: float) -> None:
        """Suspend the machine. Time passes, but the sleepers on this clock wake later by the same time."""
        self._elapsed += seconds
        self._heap = [(due + seconds, number, future) for due, number, future in self._heap]

    @property
    def sleepers(self) -> int:
        """Number of waits on this clock."""
        return sum(not future.done() for _, _, future in self._heap)

    @property
    def waits(self) -> list[float]:
        """The remaining seconds of each wait."""
        return [due - self._elapsed for due, _, future in self._heap if not future.done()]

    async def sleep(self, seconds: float) -> None:
        """Return once the clock has advanced by this duration."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._alarm(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, for at most these virtual seconds."""
        if event.is_set():
            return True
        if seconds <= 0:
            await asyncio.sleep(0)
            return event.is_set()
        either: list[asyncio.Future[Any]] = [self._alarm(seconds), asyncio.ensure_future(event.wait())]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in either:
                each.cancel()
        return event.is_set()

    async def advance(self, seconds: float, *, sleepers: int) -> None:
        """Advance the clock. After waking a task, wait in real time until `sleepers` tasks are asleep again."""
        target = self._elapsed + seconds
        await self._settle(sleepers)
        while self._heap and self._heap[0][0] <= target:
            if self._wake_next():
                await self._settle(sleepers)
        self._elapsed = target

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work. Whenever all tasks sleep, advance to the next alarm. Return the result of the work."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._stirred.set())
        async with asyncio.timeout(PATIENCE):
            while not task.done():
                self._stirred.clear()
                if not (self._heap and self._wake_next()):
                    await self._stirred.wait()
        return task.result()

    def _wake_next(self) -> bool:
        """Advance to the next alarm and fire it. Return False if no task waits for an alarm."""
        due, _, future = heapq.heappop(self._heap)
        if future.done():
            return False
        self._elapsed = max(self._elapsed, due)
        future.set_result(None)
        return True

    async def _settle(self, sleepers: int) -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.sleep(0)
            while self.sleepers < sleepers:
                self._stirred.clear()
                await self._stirred.wait()

    def _alarm(self, seconds: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._heap, (self._elapsed + seconds, next(self._numbers), future))
        self._stirred.set()
        return future


class SteppingClock(Clock):
    """A clock on which each step takes long enough to cause a pause."""

    def __init__(self, step_secs: float = 0.0015) -> None:
        self._now = 0.0
        self._step_secs = step_secs

    def monotonic(self) -> float:
        self._now += self._step_secs
        return self._now


class BusyClock(VirtualClock):
    """A clock on which, while `is_busy` is true, each step takes long enough to cause a pause."""

    is_busy = False

    def monotonic(self) -> float:
        self._elapsed += 0.0015 * self.is_busy
        return self._elapsed
