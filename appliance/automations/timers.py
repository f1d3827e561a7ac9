"""Timers that Lua starts: each is on the card before the call returns, and outlives the hub."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import orjson

from appliance.automations.brake import Brake
from appliance.automations.environment import Environment
from appliance.automations.policy import read_instant
from appliance.automations.running_timers import RunningTimer, TimerQueue
from appliance.automations.scheduler import Scheduler
from appliance.clock import to_millis
from appliance.errors import Invalid, NotFound, StoreFailed
from appliance.home.events import TimerFired
from appliance.home.texts import strip_id
from appliance.home.values import Value, to_bytes
from appliance.tables.checks import is_number
from appliance.tasks import Tasks

log = logging.getLogger("automations")

TIMER_PREFIX = "timer/"
"""Keys in the document: `timer/<name>` holds `{started_at, due_at, is_dated, payload}`, times in milliseconds since
1970; `is_dated`: whether the clock was trusted then."""

MAX_SECS = 400 * 86_400
MAX_TIMERS = 10_000
MAX_TIMER_PAYLOAD_BYTES = 16 << 10
MAX_BYTES_IN_ALL = 1 << 20
"""Of the payloads of all timers together, as JSON."""

MIN_DELAY_SECS = 0.1
"""A timer of less has no delay: what it sets off counts for the brake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One timer. `due_at` is by the clock as it is now; `payload` is what its event bears, None for nothing."""

    name: str
    due_at: datetime
    payload: Value


class Timers:
    """The timers by name. They run on real seconds; after a restart they are due by the clock, once it is trusted.

    One that is over fires, and in the same step of the loop its removal is handed to the card; what runs because of
    it can do nothing until the removal is durable. So a cut before that leaves a timer that has done nothing and
    fires after the start, and a cut behind it one whose runs had begun: none fires twice, and none never.
    Where the card takes nothing, the runs go on, and the timer fires again only if the hub dies before a flush.
    """

    def __init__(self, environment: Environment) -> None:
        self._remember = environment.storage.remember
        self._put = environment.storage.put
        self._clock = environment.clock
        self._trust = environment.trust
        self._bus = environment.bus
        self._brake: Brake = environment.brake
        self._tasks = Tasks()
        self._lock = asyncio.Lock()
        self._is_paused = False
        stored = environment.storage.stored.items(TIMER_PREFIX)
        self._running = {name: timer for name, raw in stored if (timer := RunningTimer.of(name, raw)) is not None}
        self._bytes = sum(len(timer.payload) for timer in self._running.values())

    async def __aenter__(self) -> Timers:
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._lock:  # a change that was begun is finished
            await self._tasks.__aexit__()

    def begin(self, scheduler: Scheduler) -> None:
        """Set going what was under way at the last stop, and follow the clock from now on."""
        self._queue = TimerQueue(self._clock, scheduler, self._on_due)
        scheduler.on_step(self._date_anew)
        scheduler.when_trusted(self._resume_dated)
        for timer in self._running.values():
            if self._trust.is_trusted() and timer.is_dated:
                self._resume(timer)
            elif not timer.is_dated:  # how much of it is over is not known
                self._queue.start(timer, timer.whole_secs)

    def pause(self) -> None:
        """Let none fire, since no automation listens: what falls due stays on the card, for `resume` or a start."""
        self._is_paused = True

    def resume(self) -> None:
        """Let them fire again; what fell due meanwhile fires at once, late."""
        self._is_paused = False
        self._resume_waiting()

    def list_all(self) -> list[Timer]:
        """Every timer that is under way, by name."""
        return [
            Timer(name=name, due_at=self._due_at(timer), payload=timer.load_payload())
            for name, timer in sorted(self._running.items())
        ]

    async def start(self, name: str, secs: float, payload: Value, source: str) -> None:
        """Start the timer, anew where it is under way; returns when it is on the card.

        `Invalid` where something is not allowed, `StoreFailed` where the card takes nothing now.
        """
        name = _check(name, secs, payload)
        await self._finish(partial(self._start, name, secs, payload, source), name)

    async def cancel(self, name: str) -> bool:
        """Cancel it; returns when that is on the card, and whether there was such a timer. Raises `StoreFailed`."""
        try:
            name = strip_id(name)
        except Invalid:
            return False
        if name not in self._running:
            return False
        await self._finish(partial(self._cancel, name), name)
        return True

    async def remove(self, name: str) -> None:
        """Cancel it; `NotFound` where there is no such timer, or `StoreFailed`."""
        if not await self.cancel(name):
            raise NotFound("timer", name)

    async def _finish(self, change: Callable[[], Awaitable[None]], name: str) -> None:
        """Make the change; it is finished even if the caller is cancelled."""
        await self._tasks.finish(self._make(change), f"change of the timer {name}")

    async def _make(self, change: Callable[[], Awaitable[None]]) -> None:
        async with self._lock:
            await change()

    async def _start(self, name: str, secs: float, payload: Value, source: str) -> None:
        if name not in self._running and len(self._running) >= MAX_TIMERS:
            raise Invalid(f"timer '{name}': {MAX_TIMERS} are under way already; cancel one first")
        started_at, began = to_millis(self._clock.now()), self._clock.monotonic()
        due_at = started_at + round(secs * 1000)
        timer = RunningTimer(name, to_bytes(payload), started_at, due_at, self._trust.is_trusted())
        before = self._running.get(name)
        if self._bytes + len(timer.payload) - (0 if before is None else len(before.payload)) > MAX_BYTES_IN_ALL:
            raise Invalid(f"timer '{name}': the payloads of all would take over {MAX_BYTES_IN_ALL} bytes as JSON")
        await self._put({TIMER_PREFIX + name: timer.to_json()})
        self._drop(name)
        self._running[name] = timer
        self._bytes += len(timer.payload)
        self._queue.start(timer, secs - (self._clock.monotonic() - began))
        if secs < MIN_DELAY_SECS:
            self._brake.note_effect(source, "timer", name)

    async def _cancel(self, name: str) -> None:
        if name in self._running:
            await self._put({TIMER_PREFIX + name: None})
            self._drop(name)

    def _drop(self, name: str) -> None:
        timer = self._running.pop(name, None)
        if timer is not None:
            self._bytes -= len(timer.payload)
            self._queue.remove(timer)

    def _resume(self, timer: RunningTimer) -> None:
        left = timer.due_at / 1000 - self._clock.now().timestamp()
        timer.late_secs = -left if left < 0 else None
        self._queue.start(timer, min(left, timer.whole_secs))

    def _resume_dated(self) -> None:
        """The clock is trusted: those that waited for the time go on, and the others get their right times."""
        self._resume_waiting()
        self._date_anew()

    def _resume_waiting(self) -> None:
        for timer in self._running.values():
            if timer.due is None:
                self._resume(timer)

    def _date_anew(self) -> None:
        """The clock was set: what runs is due at another time by it."""
        for name, timer in self._running.items():
            if timer.due is not None:
                due_at = to_millis(self._due_at(timer))
                timer.started_at, timer.due_at = due_at - (timer.due_at - timer.started_at), due_at
                timer.is_dated = self._trust.is_trusted()
                self._remember(TIMER_PREFIX + name, timer.to_json())

    def _on_due(self, timer: RunningTimer) -> None:
        self._tasks.start(self._fire(timer), f"end of the timer {timer.name}")

    async def _fire(self, timer: RunningTimer) -> None:
        name = timer.name
        async with self._lock:
            if self._is_paused or self._running.get(name) is not timer:
                return
            del self._running[name]
            self._bytes -= len(timer.payload)
            late = None if timer.late_secs is None else round(timer.late_secs, 3)
            payload, due_at = timer.load_payload(), read_instant(timer.due_at)
            assert due_at is not None  # as it was checked when it was read
            stored = asyncio.Event()
            log.debug("timer '%s' is over", name)
            self._bus.publish(TimerFired(name=name, payload=payload, due_at=due_at, late_secs=late, stored=stored))
            await self._delete_stored(name, stored)  # in the same step: nothing that follows is stored before it

    async def _delete_stored(self, name: str, stored: asyncio.Event) -> None:
        """Take the timer off the card; then what runs because of it may act."""
        self._remember(TIMER_PREFIX + name, None)
        try:
            await self._put({TIMER_PREFIX + name: None})
        except StoreFailed:
            return  # the home runs on; the next flush takes it off the card
        finally:
            stored.set()

    def _due_at(self, timer: RunningTimer) -> datetime:
        """When it is due by the clock as it is now."""
        if timer.due is not None:
            return self._clock.now() + timedelta(seconds=timer.due - self._clock.monotonic())
        due_at = read_instant(timer.due_at)
        assert due_at is not None
        return due_at


def _check(name: str, secs: float, payload: Value) -> str:
    """The name without white space around it; `Invalid` where name, seconds or payload are not allowed."""
    name = strip_id(name)
    if not is_number(secs) or not 0 <= secs <= MAX_SECS:
        raise Invalid(f"timer '{name}': must take 0 to {MAX_SECS} seconds (400 days), not {secs!r}")
    try:
        size = len(orjson.dumps(payload))
    except (orjson.JSONEncodeError, RecursionError):
        raise Invalid(f"timer '{name}': the payload is no JSON") from None
    if size > MAX_TIMER_PAYLOAD_BYTES:
        raise Invalid(
            f"timer '{name}': the payload takes {size} bytes as JSON; {MAX_TIMER_PAYLOAD_BYTES} are allowed"
        )
    return name
