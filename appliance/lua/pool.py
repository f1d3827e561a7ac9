"""The threads that Lua runs on: as many as there is work, up to a cap; daemons, so that none can hold up the exit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from appliance.clock import Clock

T = TypeVar("T")

CAP = 64
KEPT = 4
IDLE_SECS = 10.0
STACK_BYTES = 1 << 20
"""Enough for Lua's deepest recursion in C; a quarter of it is not."""

LOOK_SECS = 0.01
NICE = 10
"""How far a long script stands back behind the event loop and short ones where all want the processor."""

_own = threading.local()


def stand_back() -> None:
    """Let all others come before the calling thread from now on. There is no way back: it ends with its job."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    _own.stands_back = True


class Job(Generic[T]):
    """One function on its way; `future` gets what it returns or raises. `after` follows, when the loop knows."""

    def __init__(
        self, function: Callable[[], T], after: Callable[[], None] | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._function = function
        self._after = after
        self._loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.is_lost = False
        self.is_over = False

    def run(self) -> None:
        """Do it here and now, and let the loop know."""
        result: Any = None
        failure: BaseException | None = None
        try:
            result = self._function()
        except BaseException as error:
            failure = error
        self.tell_loop(partial(_settle, self.future, result, failure))
        if self._after is not None:
            self._after()
        del self._function, self._after  # the thread keeps its last job until there is another

    def tell_loop(self, function: Callable[[], None]) -> None:
        """Have the loop call this, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(function)


class Pool:
    """Runs functions on its threads. Idle ones end after `idle_secs`, but a few; a lost one is written off."""

    def __init__(self, *, cap: int = CAP, idle_secs: float = IDLE_SECS) -> None:
        self._cap = cap
        self._idle_secs = idle_secs
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._waiting: deque[Job[Any]] = deque()
        self._count = 0
        self._alive = 0
        self.abandoned = 0

    @property
    def threads(self) -> int:
        """How many threads there are now, without those written off."""
        return self._count

    def submit(self, function: Callable[[], T], after: Callable[[], None] | None = None) -> Job[T]:
        """Run the function on a thread, for the running loop, and then `after`. Never waits."""
        job = Job(function, after, asyncio.get_running_loop())
        self._give(job)
        return job

    def abandon(self, job: Job[Any]) -> bool:
        """Write off the thread that the job is lost on: another takes its place, and it ends if it comes back.

        False if the job has just come back.
        """
        with self._lock:
            if job.is_over:
                return False
            job.is_lost = True
            self.abandoned += 1
            self._count -= 1
        self._replace()
        return True

    def close(self) -> None:
        """Let the idle threads end; those at work end when they are done."""
        with self._lock:
            idle, self._idle, self._idle_secs = self._idle, [], 0.0
            self._count -= len(idle)
        for worker in idle:
            worker.jobs.put(None)

    async def join(self, clock: Clock, patience: float) -> None:
        """Wait until every thread has ended, but only so many seconds: an interpreter that ends under Lua crashes."""
        deadline = clock.monotonic() + patience
        while self._alive and clock.monotonic() < deadline:
            await clock.sleep(LOOK_SECS)

    def _give(self, job: Job[Any]) -> None:
        with self._lock:
            if self._idle:
                self._idle.pop().jobs.put(job)
                return
            if self._count >= self._cap:
                self._waiting.append(job)
                return
            self._count += 1
        self._begin(job)

    def _begin(self, job: Job[Any]) -> None:
        with self._lock:
            self._alive += 1
        Worker(self).start(job)

    def ended(self) -> None:
        """For workers: the thread has left Lua for good."""
        with self._lock:
            self._alive -= 1

    def next_job(self, worker: Worker, done: Job[Any]) -> Job[Any] | None:
        """For workers: what to do next, once there is something; None when the thread should end."""
        with self._lock:
            done.is_over = True
            if done.is_lost:
                return None
            stands_back = getattr(_own, "stands_back", False)
            if self._waiting and not stands_back:
                return self._waiting.popleft()
            if stands_back or self._idle_secs == 0.0:
                self._count -= 1
                if self._waiting:
                    done.tell_loop(self._replace)  # a thread that this one began would stand back, too
                return None
            self._idle.append(worker)
        return self._wait(worker)

    def _replace(self) -> None:
        with self._lock:
            if not self._waiting or self._count >= self._cap:
                return
            job = self._waiting.popleft()
            self._count += 1
        self._begin(job)

    def _wait(self, worker: Worker) -> Job[Any] | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return worker.jobs.get(timeout=self._idle_secs)
            with self._lock:
                if worker in self._idle and self._count > KEPT:
                    self._idle.remove(worker)
                    self._count -= 1
                    return None


class Worker:
    """One thread. The one that became idle last is the first to work again, so that the others can end."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()

    def start(self, job: Job[Any]) -> None:
        """Begin with this job."""
        before = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=self._work, args=([job],), daemon=True, name="lua").start()
        finally:
            threading.stack_size(before)

    def _work(self, first: list[Job[Any]]) -> None:
        job: Job[Any] | None = first.pop()
        while job is not None:
            job.run()
            done, job = job, None
            job = self._pool.next_job(self, done)
        self._pool.ended()


def _settle(future: asyncio.Future[T], result: T, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(result)
