"""The stepper: takes one Lua state on, step by step, on the pool's threads, and cleans up behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

from appliance.lua.limits import GRACE, Limits, Reason, Watch
from appliance.lua.pool import Job, Pool
from appliance.lua.state import Asks, State, Step, Stopped


class Stepper:
    """One state, which no two threads touch at once. Whoever has begun to use it must `leave` it."""

    def __init__(self, pool: Pool, state: State, watch: Watch, limits: Limits) -> None:
        self.watch = watch
        self._pool = pool
        self._state = state
        self._patience = limits.max_cpu_secs + GRACE
        self._lock = threading.Lock()
        self._is_busy = False
        self._is_left = False
        self._is_over = False
        self._is_disposed = False

    async def step(self, function: Callable[[], Step]) -> Step:
        """Run the function of the state on a thread. One that is lost there for too long is given up."""
        self._is_busy = True
        job = self._pool.submit(partial(self._run, function), self._dispose)
        look = asyncio.get_running_loop().call_later(self._patience, self._look, job)
        try:
            return await job.future
        finally:
            look.cancel()

    def leave(self) -> None:
        """Nothing more is wanted of the state: it is disposed of on a thread, once Lua has stopped."""
        with self._lock:
            self._is_left = True
            self.watch.is_cancelled |= self._is_busy
            is_cared_for = self._is_busy or self._is_over
            self._is_over = self._is_over or not self._is_busy
        if not is_cared_for:
            self._pool.submit(self._dispose)

    def _run(self, function: Callable[[], Step]) -> Step:
        step: Step | None = None
        self.watch.begin()
        try:
            step = Stopped(Reason.CANCELLED, "") if self.watch.is_cancelled else function()
        finally:
            self.watch.pause()
            with self._lock:
                self._is_busy = False
                self._is_over = self._is_left or not isinstance(step, Asks)
        return step

    def _dispose(self) -> None:
        """Once, when all is over; so no thread is at work on the state."""
        with self._lock:
            is_due = self._is_over and not self._is_disposed
            self._is_disposed = self._is_disposed or is_due
        if is_due:
            self._state.dispose()

    def _look(self, job: Job[Step]) -> None:
        if job.future.done():
            return
        if self.watch.is_lost and self._pool.abandon(job):
            job.future.set_result(Stopped(Reason.STUCK, ""))
        else:
            asyncio.get_running_loop().call_later(GRACE / 4, self._look, job)
