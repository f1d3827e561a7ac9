"""An event loop that measures its turns (iterations), and keeps turns short if many sockets are ready or a task works
for long."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from appliance.clock import Clock

T = TypeVar("T")

STEP_SECS = 0.001
"""Seconds of work before other tasks run. After a much longer step, other tasks get the same time as the step."""

REQUEST_TURNS = 3
"""Loop turns that a request needs. Long work waits for this number of turns, so that it does not delay a request in
each turn."""

MAX_EVENTS_PER_TURN = 32
"""Sockets that one turn of the loop serves. Hundreds of sockets in one turn would block all tasks for 30 ms."""

MIN_LAG_SECS = 0.05
"""Waits for the loop below this duration are ignored."""

LAG_WINDOW_SECS = 10.0


class LoopLag:
    """The time that ready callbacks wait for the end of a turn, and for the processor.

    `max_secs` is the longest wait since the start, `last_secs` the longest of the last ten seconds, and `total_secs`
    the sum of waits longer than `MIN_LAG_SECS`. `turns` is the number of turns.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.last_secs = self.max_secs = self.total_secs = 0.0
        self.least_secs = self.ends_at = 0.0
        self._longest = 0.0

    def note(self, now: float, secs: float) -> None:
        """Record a wait that has just ended. Until the time `ends_at`, callers need not report waits of at most
        `least_secs`."""
        self._longest, self.max_secs = max(self._longest, secs), max(self.max_secs, secs)
        self.total_secs += secs if secs > MIN_LAG_SECS else 0.0
        if now >= self.ends_at:
            self.last_secs, self._longest, self.ends_at = self._longest, 0.0, now + LAG_WINDOW_SECS
        self.last_secs = max(self.last_secs, self._longest)
        self.least_secs = min(self._longest, MIN_LAG_SECS)


_Events = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.EpollSelector):
    """Returns at most `MAX_EVENTS_PER_TURN` events per call; the next call returns the others.

    A turn of the loop is the time between two calls. The selector measures turns in `lag`, because a separate timer
    would wake an idle hub.
    """

    def __init__(self, lag: LoopLag) -> None:
        super().__init__()
        self._lag = lag
        self._waiting: _Events = []
        self._returned_at = time.perf_counter()

    def select(self, timeout: float | None = None) -> _Events:
        """Return the ready sockets; wait if no socket is ready."""
        asked_at, lag = time.perf_counter(), self._lag
        lag.turns += 1
        if (secs := asked_at - self._returned_at) > lag.least_secs or asked_at >= lag.ends_at:
            lag.note(asked_at, secs)
        if len(found := self._waiting or super().select(timeout)) > MAX_EVENTS_PER_TURN or self._waiting:
            found, self._waiting = found[:MAX_EVENTS_PER_TURN], found[MAX_EVENTS_PER_TURN:]
            registered = self.get_map()
            found = [each for each in found if registered.get(each[0].fd) is each[0]]
        self._returned_at = now = time.perf_counter()
        if timeout is not None and (secs := now - asked_at - max(timeout, 0.0)) > lag.least_secs:
            lag.note(now, secs)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.lag = LoopLag()
        super().__init__(_Selector(self.lag))

    @property
    def has_waiting(self) -> bool:
        """Whether other callbacks wait for the present callback, including callbacks of sockets that are ready."""
        return bool(self._ready)  # type: ignore[attr-defined]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine as `asyncio.run` does, on a loop with measured, short turns."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


def loop_lag() -> LoopLag:
    """Return the lag of the running loop. The lag is empty unless `run` started the loop."""
    loop = asyncio.get_running_loop()
    return loop.lag if isinstance(loop, _Loop) else LoopLag()


async def in_steps(clock: Clock, work: Iterable[object]) -> None:
    """Do long work that yields after each step; pause for other tasks after every `STEP_SECS`."""
    loop, began = asyncio.get_running_loop(), clock.monotonic()
    for _ in work:
        if (took := clock.monotonic() - began) >= STEP_SECS:
            if took > 2 * STEP_SECS:
                await clock.sleep(took)
            for _ in range(REQUEST_TURNS):
                await clock.sleep(0)
                if isinstance(loop, _Loop) and not loop.has_waiting:
                    break
            began = clock.monotonic()
