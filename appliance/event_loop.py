"""An event loop with short turns (iterations), even if many sockets are ready or a task runs for long."""

from __future__ import annotations

import asyncio
import itertools
import selectors
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple, overload

from appliance.clock import Clock
from appliance.loop_lag import LoopLag

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEP_SECS = 0.001
"""Seconds of work before `in_steps` lets other tasks run. If a step needs much more processor time and other tasks
wait, they get as much processor time in the next pause."""

HURRIED_STEP_SECS = 0.02
"""The same as `STEP_SECS`, but while the hub stops. Few other tasks need the loop then."""

REQUEST_TURNS = 3
"""Number of loop turns that a request needs. `in_steps` pauses for this many turns, so that it delays a request
only once."""

SHORT_TURN_SECS = 0.005

MAX_RESUMED_PER_TURN = 16
"""Maximum number of tasks that `wait_in_line` resumes per loop turn. If hundreds of tasks were resumed, for example
only to wait again, they would make each turn long."""

MAX_EVENTS_PER_TURN = 32
"""Maximum number of sockets per loop turn. Hundreds of sockets in one turn would block all tasks for 30 ms."""

POLL_SECS = 0.0005
"""While callbacks are ready, the loop checks the sockets at most once in this time."""

_Events = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.EpollSelector):
    """A selector that returns at most `MAX_EVENTS_PER_TURN` events per call. The next call returns the remaining
    events.

    A turn of the loop is the time between two calls. Measuring turns here avoids a separate timer, which would wake
    an idle hub.
    """

    def __init__(self, lag: LoopLag) -> None:
        super().__init__()
        self._lag = lag
        self._waiting: _Events = []
        self._returned_at = time.perf_counter()
        self._polled_at = 0.0

    @property
    def is_turn_long(self) -> bool:
        """Whether the present turn has taken more than `SHORT_TURN_SECS`."""
        return time.perf_counter() - self._returned_at > SHORT_TURN_SECS

    def select(self, timeout: float | None = None) -> _Events:
        asked_at, lag = time.perf_counter(), self._lag
        lag.turns += 1
        if (secs := asked_at - self._returned_at) > lag.least_secs or asked_at >= lag.ends_at:
            lag.note(asked_at, secs)
        if timeout is not None and timeout <= 0 and asked_at - self._polled_at < POLL_SECS and not self._waiting:
            self._returned_at = asked_at
            return []
        if len(found := self._waiting or super().select(timeout)) > MAX_EVENTS_PER_TURN or self._waiting:
            found, self._waiting = found[:MAX_EVENTS_PER_TURN], found[MAX_EVENTS_PER_TURN:]
            registered = self.get_map()
            found = [each for each in found if registered.get(each[0].fd) is each[0]]
        self._returned_at = self._polled_at = now = time.perf_counter()
        if timeout is not None and (secs := now - asked_at - max(timeout, 0.0)) > lag.least_secs:
            lag.note(now, secs)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.lag = LoopLag()
        self._line: deque[asyncio.Future[None]] = deque()
        self.is_hurried = False
        """Whether the hub is stopping. If so, `in_steps` pauses only for the next turn."""
        self.continued_at = 0
        """The number of the turn in which `wait_for_short_turn` last returned after a wait."""
        super().__init__(_Selector(self.lag))

    @property
    def is_turn_long(self) -> bool:
        return self._selector.is_turn_long  # type: ignore[attr-defined,no-any-return]

    @property
    def has_waiting(self) -> bool:
        """Return whether other callbacks or ready sockets are waiting for the current callback to end."""
        return bool(self._ready)  # type: ignore[attr-defined]

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Like the base class, but with fewer calls, because every step of every task calls this method."""
        if self._debug or self._closed:  # type: ignore[attr-defined]
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    async def wait_in_line(self) -> None:
        """Wait for a later turn of the loop. Callers resume in the order of their calls, at most
        `MAX_RESUMED_PER_TURN` per turn."""
        if not self._line:
            self.call_soon(self._resume_some)
        place: asyncio.Future[None] = self.create_future()
        self._line.append(place)
        await place

    def _resume_some(self) -> None:
        for _ in range(min(MAX_RESUMED_PER_TURN, len(self._line))):
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
        if self._line:
            self.call_soon(self._resume_some)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine like `asyncio.run`, on a loop with short, measured turns."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


def loop_lag() -> LoopLag:
    """Return the lag of the running loop. If `run` did not start the loop, the lag is always zero."""
    loop = asyncio.get_running_loop()
    return loop.lag if isinstance(loop, _Loop) else LoopLag()


async def next_turn() -> None:
    """Wait for the next turn of the loop. Callbacks that are ready now run first."""
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()


async def wait_in_line() -> None:
    """Wait for a later turn of the loop. Callers resume in the order of their calls, and only some per turn."""
    loop = asyncio.get_running_loop()
    await (loop.wait_in_line() if isinstance(loop, _Loop) else next_turn())


async def wait_for_short_turn() -> None:
    """Wait for a loop turn that has so far taken at most `SHORT_TURN_SECS`. Otherwise, hundreds of clients might
    request long work in one turn. In each turn, one waiting task continues, because all turns of a busy loop may be
    long."""
    loop = asyncio.get_running_loop()
    while isinstance(loop, _Loop) and loop.is_turn_long:
        await loop.wait_in_line()
        if loop.continued_at != loop.lag.turns:
            loop.continued_at = loop.lag.turns
            return


def is_turn_long() -> bool:
    """Return whether the present turn of the loop has taken more than `SHORT_TURN_SECS`."""
    loop = asyncio.get_running_loop()
    return isinstance(loop, _Loop) and loop.is_turn_long


def hurry() -> None:
    """From now on, `in_steps` pauses rarely and briefly, because the hub is stopping."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, _Loop):
        loop.is_hurried = True


@overload
async def in_steps(clock: Clock, work: Generator[object, None, T]) -> T: ...
@overload
async def in_steps(clock: Clock, work: Iterable[object]) -> object: ...
async def in_steps(clock: Clock, work: Iterable[object]) -> object:
    """Run all steps of `work`; pause for other tasks after every `STEP_SECS`. Return the result of a generator."""
    loop, began, steps = asyncio.get_running_loop(), clock.monotonic(), iter(work)
    worked = time.thread_time()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        if isinstance(loop, _Loop) and loop.is_hurried:
            if clock.monotonic() - began >= HURRIED_STEP_SECS:
                await clock.sleep(0)
                began = clock.monotonic()
        elif clock.monotonic() - began >= STEP_SECS:
            took = time.thread_time() - worked
            await _let_others_run(clock, took if took > 2 * STEP_SECS else 0.0)
            began, worked = clock.monotonic(), time.thread_time()


async def _let_others_run(clock: Clock, secs: float) -> None:
    """Pause while other tasks wait, for at least `REQUEST_TURNS` turns and at most for these seconds of processor
    time.

    Real time would also include the work of other processes. A timer would also pause if no task waits. On a busy
    machine, it would expire much too late.
    """
    loop, paused_at = asyncio.get_running_loop(), time.thread_time()
    for turn in itertools.count(1):
        await clock.sleep(0)
        is_over = turn >= REQUEST_TURNS and time.thread_time() - paused_at >= secs
        if is_over or (isinstance(loop, _Loop) and not loop.has_waiting):
            return
