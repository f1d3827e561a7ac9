"""Background tasks that end with their owner, time limits, and back-off. Task failures are always logged."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from appliance.errors import LaresError

T = TypeVar("T")

CANCEL_GRACE_SECS = 1.0
"""Seconds until the owner stops waiting for a cancelled task."""

STALL_SECS = 0.25
"""`time_limit` measures time in steps of this length. If a step takes more than twice as long, the process was
stalled, and the limit ignores that step."""


log = logging.getLogger("tasks")


class _Result(Struct, Generic[T], frozen=True):
    """The return value of successful work."""

    value: T


class Tasks:
    """Owns the tasks that it starts. Leaving the context cancels running tasks and waits until they end."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run the work in the background. Log a failure under `name`."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Return the result of the work. The work continues even if the caller is cancelled.

        If the work fails, raise its exception, and log exceptions other than `LaresError`.
        """
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._finished)
        try:
            return await asyncio.shield(task)
        finally:
            del task  # a variable that refers to a raised exception forms a cycle with the exception's traceback

    async def __aenter__(self) -> Tasks:
        return self

    async def __aexit__(self, *_: object) -> None:
        while remaining := [task for task in self._running if not task.done()]:
            self.cancel()
            await asyncio.wait(remaining)

    def cancel(self) -> None:
        for task in tuple(self._running):
            task.cancel()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and isinstance(task.exception(), LaresError):  # the caller handles the error
            self._running.discard(task)
        else:
            self._ended(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if (error := _retrieve_exception(task)) is not None:
            log.error("%s ended: %s: %s", task.get_name(), type(error).__name__, error, exc_info=error)


_stop_ends: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""The end of all time limits of a loop whose hub is stopping."""


def end_limits_within(seconds: float) -> None:
    """End all present and future time limits of this loop within these seconds, because the hub is stopping. One
    deadline for all steps of the stop is more reliable than a sum of limits."""
    loop = asyncio.get_running_loop()
    _stop_ends[loop] = loop.time() + seconds


def _secs_to_stop_end() -> float:
    loop = asyncio.get_running_loop()
    return max(_stop_ends.get(loop, inf) - loop.time(), 0.0)


class _StallTimer:
    """Calls `expire` after a number of seconds, but ignores the time in which this process was stalled.

    The process cannot read data during a stall, so data that arrives during a stall is treated as if it had arrived
    in time. The sum of ignored stalls is at most `seconds`, so an overloaded loop at most doubles the limit.
    """

    def __init__(self, seconds: float, expire: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._expire = expire
        # the work first sends its request, because creating the timer takes time
        self._timer: asyncio.Handle = self._loop.call_soon(self._wait, seconds, seconds)

    def cancel(self) -> None:
        self._timer.cancel()

    def _wait(self, left: float, spare: float) -> None:
        due = self._loop.time() + min(left, STALL_SECS, _secs_to_stop_end())
        self._timer = self._loop.call_at(due, self._step, left, spare, due)

    def _step(self, left: float, spare: float, due: float) -> None:
        took = STALL_SECS + self._loop.time() - due
        counts = took if spare <= 0 else STALL_SECS if took <= 2 * STALL_SECS else 0.0
        if left > counts and _secs_to_stop_end() > 0:
            self._wait(left - counts, spare - (took - counts))
        else:
            self._expire()


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[None]:
    """Limit the time to wait for an external answer, like `asyncio.timeout`, but ignore stalls of this process."""
    async with asyncio.timeout(None) as limit:
        timer = _StallTimer(seconds, lambda: limit.reschedule(asyncio.get_running_loop().time()))
        try:
            yield
        finally:
            timer.cancel()


async def end_within(work: Awaitable[T], seconds: float) -> T:
    """Return the result of the work or raise its exception. Raise `TimeoutError` after `seconds`, not including
    stalls of this process.

    After the timeout, or when the caller is cancelled, the work is cancelled and has `CANCEL_GRACE_SECS` to end. If
    the cancelled work returns a value, return this value. The exception of the cancelled work is the cause of the
    `TimeoutError`.
    """
    loop = asyncio.get_running_loop()
    is_over = loop.create_future()
    endings: list[_Result[T] | BaseException] = []

    def wake() -> None:
        if not is_over.done():
            is_over.set_result(None)

    task = loop.create_task(_await_ending(work, endings, wake))
    timer = _StallTimer(seconds, wake)
    try:
        await is_over
        is_in_time = task.done()
    finally:
        timer.cancel()
        await end(task)
    ending = endings.pop() if endings else None
    if isinstance(ending, _Result):
        return ending.value
    try:
        if is_in_time and ending is not None:
            raise ending
        raise TimeoutError from ending
    finally:
        del ending, task  # a variable that refers to a raised exception forms a cycle with the exception's traceback


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end, at most `CANCEL_GRACE_SECS`."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=min(CANCEL_GRACE_SECS, _secs_to_stop_end()))


async def wait_for_end(task: asyncio.Task[Any]) -> None:
    """Wait until the task has ended, like `asyncio.wait` for one task, but faster."""
    if task.done():
        return
    has_ended = asyncio.get_running_loop().create_future()

    def wake(_: asyncio.Task[Any]) -> None:
        if not has_ended.done():
            has_ended.set_result(None)

    task.add_done_callback(wake)
    await has_ended


async def _await_ending(
    work: Awaitable[T], endings: list[_Result[T] | BaseException], on_end: Callable[[], None]
) -> None:
    """Append the result of the work, or the exception that the work raised, to `endings`. Then call `on_end`.

    Never raise an exception. Some exceptions, such as `KeyboardInterrupt`, end the process, and a caller cannot catch
    them from a task. Do not return the exception either: its traceback can contain an `asyncio.timeout` that refers
    to the task, and a task refers to its result.
    """
    try:
        endings.append(_Result(await work))
    except BaseException as error:
        endings.append(error)
    finally:
        del endings  # this frame is part of the exception's traceback
        on_end()


async def run_together(*works: Coroutine[Any, Any, None]) -> None:
    """Run the coroutines concurrently until all have ended. If one coroutine fails, cancel the others and raise the
    exception of the failed coroutine.

    `asyncio.TaskGroup` is not used, because in Python 3.11.2 (Debian 12), a failed group leaves the caller marked as
    cancelled. The caller's next `asyncio.timeout` would then cancel the caller instead of raising `TimeoutError`.
    """
    loop = asyncio.get_running_loop()
    tasks = [
        loop.create_task(work, name=getattr(work, "__qualname__", None)) for work in works
    ]  # the names identify long turns in debug mode
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failures = [each.exception() for each in tasks if each.done() and not each.cancelled()]
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
        for each in tasks:
            _retrieve_exception(each)  # otherwise, asyncio would log it
    failure = next(filter(None, failures), None)
    if failure is not None:
        try:
            raise failure
        finally:
            del each, failure, failures, tasks  # as in `end_within`


def _retrieve_exception(task: asyncio.Task[Any]) -> BaseException | None:
    """Return the exception of an ended task. Return None if the task succeeded or was cancelled.

    A cancelled task keeps its `CancelledError` until it is retrieved. The traceback can contain an `asyncio.timeout`
    that refers to the task, and this cycle would keep all objects of the task in memory.
    """
    try:
        return task.exception()
    except asyncio.CancelledError:
        return None


class SharedRun(Generic[T]):
    """Runs the work at most once at a time. Callers that arrive during a run share the next run, so that every result
    is newer than its request. `tasks` owns the runs."""

    def __init__(self, work: Callable[[], Awaitable[T]], tasks: Tasks, name: str) -> None:
        self._work = work
        self._tasks = tasks
        self._name = name
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    @property
    def is_busy(self) -> bool:
        """Return whether a run is running or waiting to begin."""
        return self._running is not None or self._next is not None

    def start(self) -> asyncio.Task[T]:
        """Return a run that has not begun yet."""
        if self._next is None:
            self._next = self._tasks.start(self._run(self._running), self._name)
        return self._next

    async def result(self) -> T:
        """Return the result of a run that has not begun yet. The run continues even if the caller is cancelled."""
        return await asyncio.shield(self.start())

    async def _run(self, earlier: asyncio.Task[T] | None) -> T:
        if earlier is not None:
            await asyncio.wait({earlier})
        own, self._next = self._next, None
        self._running = own
        try:
            return await self._work()
        finally:
            if self._running is own:
                self._running = None  # otherwise, the task would keep its result in memory


MAX_BACK_OFF_SECS = 60.0
"""The default maximum of seconds between two attempts."""

JITTER = 0.25
"""The random share of a back-off. Randomness prevents parts that failed together from retrying together."""


def back_off(failures: int, first: float = 1.0, most: float = MAX_BACK_OFF_SECS) -> float:
    """Return the seconds to wait after a number of consecutive failures: `first`, doubled with each further failure
    up to `most`, and reduced at random by up to a quarter."""
    return min(first * 2.0 ** min(max(failures - 1, 0), 16), most) * (1 - JITTER * random.random())
