"""Background tasks with an owner: they end with their owner, and every failure is logged. Also runs the event
loop."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import selectors
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct

from appliance.clock import Clock
from appliance.errors import LaresError

T = TypeVar("T")

CANCEL_GRACE_SECS = 1.0
"""Seconds for a cancelled task to end."""

STALL_SECS = 0.25
"""The length of a step of a `time_limit`; a step that is later than this does not count."""

STEP_SECS = 0.001
"""Seconds of work before other tasks run; after a much longer step, they get as much time as it took."""

REQUEST_TURNS = 3
"""Turns of the loop that a request takes; it gets them together, without a step of work in each."""

MAX_EVENTS_PER_TURN = 32
"""Sockets that one turn of the loop serves; hundreds that are ready together would block everything else for 30
ms."""

MIN_LAG_SECS = 0.05
"""Shorter waits for the loop are too short to notice."""

LAG_WINDOW_SECS = 10.0

log = logging.getLogger("tasks")


class LoopLag:
    """How long ready callbacks wait for the loop: for the end of its turn, and for the processor.

    `max_secs` is the longest wait since the start, `last_secs` the longest of the last ten seconds, and `total_secs`
    the sum of waits longer than `MIN_LAG_SECS`. `turns` counts the turns.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.last_secs = self.max_secs = self.total_secs = 0.0
        self.least_secs = self.ends_at = 0.0
        self._longest = 0.0

    def note(self, now: float, secs: float) -> None:
        """Note a wait that has just ended. A wait of at most `least_secs` need not be noted before the time
        `ends_at`."""
        self._longest, self.max_secs = max(self._longest, secs), max(self.max_secs, secs)
        self.total_secs += secs if secs > MIN_LAG_SECS else 0.0
        if now >= self.ends_at:
            self.last_secs, self._longest, self.ends_at = self._longest, 0.0, now + LAG_WINDOW_SECS
        self.last_secs = max(self.last_secs, self._longest)
        self.least_secs = min(self._longest, MIN_LAG_SECS)


_Events = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.EpollSelector):
    """Returns at most `MAX_EVENTS_PER_TURN` events per call; the next call returns the others.

    The time between two calls is a turn of the loop. `lag` measures it; a separate timer would wake an idle hub.
    """

    def __init__(self, lag: LoopLag) -> None:
        super().__init__()
        self._lag = lag
        self._waiting: _Events = []
        self._returned_at = time.perf_counter()

    def select(self, timeout: float | None = None) -> _Events:
        """Return the sockets that are ready; if none is, wait for the first."""
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
    """A loop whose turns are measured, and stay short even if many sockets are ready."""

    def __init__(self) -> None:
        self.lag = LoopLag()
        super().__init__(_Selector(self.lag))

    @property
    def has_waiting(self) -> bool:
        """Whether other callbacks wait for the one that runs now, those of sockets that became ready included."""
        return bool(self._ready)  # type: ignore[attr-defined]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do the same as `asyncio.run`, on a loop whose turns stay short even if many sockets are ready."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


def loop_lag() -> LoopLag:
    """Return the lag of the running loop; only loops started by `run` are measured."""
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


class _Result(Struct, Generic[T], frozen=True):
    """The return value of work that raised nothing."""

    value: T


class Tasks:
    """Owns the tasks that it starts. Leaving the context cancels running ones and waits for their end."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run the work in the background; failures are logged under `name`."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Return the result of the work, which continues even if the caller is cancelled.

        If the work raises an exception, raise the same exception; log it, like `start`, unless it is a `LaresError`.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    async def __aenter__(self) -> Tasks:
        return self

    async def __aexit__(self, *_: object) -> None:
        while remaining := [task for task in self._running if not task.done()]:
            self.cancel()
            await asyncio.wait(remaining)

    def cancel(self) -> None:
        """Ask every task that runs to end."""
        for task in tuple(self._running):
            task.cancel()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and isinstance(task.exception(), LaresError):  # the caller gets it
            self._running.discard(task)
        else:
            self._ended(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s ended: %s: %s", task.get_name(), type(error).__name__, error, exc_info=error)


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Like `asyncio.timeout`, for answers from outside: time in which this process was stalled does not count.

    Data that arrived during a stall is read after it, and is in time. Stalls are subtracted until their sum exceeds
    the limit; all later time counts, so that a loop that is always late at most doubles a limit.
    """
    loop = asyncio.get_running_loop()
    timer: asyncio.Handle
    async with asyncio.timeout(None) as limit:

        def wait(left: float, spare: float) -> None:
            nonlocal timer
            due = loop.time() + min(left, STALL_SECS)
            timer = loop.call_at(due, step, left, spare, due)

        def step(left: float, spare: float, due: float) -> None:
            now = loop.time()
            took = STALL_SECS + now - due
            counts = took if spare <= 0 else STALL_SECS if took <= 2 * STALL_SECS else 0.0
            if left > counts:
                wait(left - counts, spare - (took - counts))
            else:
                limit.reschedule(now)

        wait(seconds, seconds)
        try:
            yield
        finally:
            timer.cancel()


async def end_within(work: Awaitable[T], seconds: float) -> T:
    """Return the result of the work or raise its exception; raise `TimeoutError` after a `time_limit`.

    The work is cancelled then, or when the caller is; after `CANCEL_GRACE_SECS`, it is left to itself. If the work
    returns a value although it is cancelled, that value is the result.
    """
    loop = asyncio.get_running_loop()
    task, has_ended = loop.create_task(_ending_of(work)), loop.create_future()
    task.add_done_callback(lambda ended: None if has_ended.done() else has_ended.set_result(None))
    try:
        with suppress(TimeoutError):
            async with time_limit(seconds):
                await has_ended
        is_in_time = task.done()
    finally:
        await end(task)
    ending = task.result() if task.done() else None
    if isinstance(ending, _Result):
        return ending.value
    raise ending if is_in_time and ending is not None else TimeoutError


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait `CANCEL_GRACE_SECS` for its end."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_GRACE_SECS)


async def _ending_of(work: Awaitable[T]) -> _Result[T] | BaseException:
    """Return the result of the work or its exception.

    Never raise: if the exception were one that ends the process, the caller's task could not catch it.
    """
    try:
        return _Result(await work)
    except BaseException as error:
        return error


async def run_together(*works: Coroutine[Any, Any, None]) -> None:
    """Run the works concurrently until all have ended; if one fails, cancel the others and raise its exception.

    Does not use `asyncio.TaskGroup`: in Python 3.11.2, which Debian 12 has, it leaves the caller counted as cancelled
    after a failure, and the caller's next `asyncio.timeout` then ends it instead of raising `TimeoutError`.
    """
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work, name=getattr(work, "__qualname__", None)) for work in works]  # shows a long turn
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failures = [each.exception() for each in tasks if each.done() and not each.cancelled()]
        for failure in filter(None, failures):
            raise failure
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
        for each in tasks:
            _ = each.cancelled() or each.exception()  # asyncio logs exceptions that were not retrieved


FIRST_ANSWER_SECS = 0.05
"""Seconds in which imports leave the processor to clients that waited for the hub."""


@contextmanager
def frozen_imports() -> Iterator[None]:
    """Collect no garbage while importing, which creates almost none, then freeze existing objects."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


async def import_ahead(modules: Iterable[str]) -> None:
    """Import the modules on a thread, one after another, so that the loop continues meanwhile.

    Libraries that the first response does not need, and that take long to import (aiohttp, aiomqtt, argon2, astral,
    croniter, defusedxml, jinja2, watchfiles), are imported inside functions, at their first use. Otherwise, they
    would multiply the start time. This function imports some of them once the hub answers requests, so that no
    request waits for them.
    """
    for module in modules:
        await asyncio.to_thread(importlib.import_module, module)
