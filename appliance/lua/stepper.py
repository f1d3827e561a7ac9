"""The stepper: takes one Lua state on, step by step, on the pool's threads, and cleans up behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from appliance.lua.limits import GRACE, Limits, Reason, Watch
from appliance.lua.pool import Job, Pool
from appliance.lua.state import State, Step, Stopped


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

    async def step(self, function: Callable[[], Step]) -> Step:
        """Run the function of the state on a thread. One that is lost there for too long is given up."""
        self._is_busy = True
        job = self._pool.submit(lambda: self._run(function))
        look = asyncio.get_running_loop().call_later(self._patience, self._look, job)
        try:
            return await job.future
        finally:
            look.cancel()

    def leave(self) -> None:
        """Dispose of the state: on a thread, and if Lua is running, when it has stopped."""
        self.watch.is_cancelled = True
        with self._lock:
            self._is_left = True
            is_busy = self._is_busy
        if not is_busy:
            self._pool.submit(self._state.dispose)

    def _run(self, function: Callable[[], Step]) -> Step:
        self.watch.begin()
        try:
            return Stopped(Reason.CANCELLED, "") if self.watch.is_cancelled else function()
        finally:
            self.watch.pause()
            with self._lock:
                self._is_busy = False
                is_left = self._is_left
            if is_left:
                self._state.dispose()

    def _look(self, job: Job[Step]) -> None:
        if job.future.done():
            return
        if self.watch.is_lost:
            self._pool.abandon(job)
            job.future.set_result(Stopped(Reason.STUCK, ""))
        else:
            asyncio.get_running_loop().call_later(GRACE / 4, self._look, job)
