"""Timers that Lua starts. A timer is stored before the call returns, and survives restarts of the hub."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Annotated, Any
from weakref import WeakValueDictionary

import orjson
from msgspec import Meta, Struct, convert

from appliance.automations.brake import Brake
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.schedule.scheduled_calls import DelayedCall
from appliance.automations.schedule.scheduler import Scheduler
from appliance.clock import from_millis
from appliance.errors import Invalid, NotFound, StoreFailed
from appliance.event_loop import wait_in_line
from appliance.home.bus import Bus
from appliance.home.events import TimerFired
from appliance.home.texts import strip_id
from appliance.home.values import Value, json_size, to_bytes
from appliance.store.record_keys import TIMER_PREFIX
from appliance.store.records import OnFault, read_all, skip
from appliance.store.storage import DocumentReader, Storage
from appliance.tables.checks import is_number
from appliance.tasks import Tasks

log = logging.getLogger("automations")

MAX_TIMERS = 10_000
MAX_SECS = 400 * 86_400
MAX_TIMER_PAYLOAD_BYTES = 16 << 10
MAX_BYTES_IN_ALL = 1 << 20
"""Maximum total size of all timers' payloads, as JSON."""

MAX_LISTENER_WAIT_SECS = 86_400.0
"""Maximum time for which an expired timer waits for an automation with a trigger for this timer."""

MAX_ENDED_AT_ONCE = 100
"""Maximum number of timers that end in one turn of the loop. Thousands can have the same end."""

MIN_DELAY_SECS = 0.1
"""The brake treats a shorter timer as an immediate effect."""

_UNCLAIMED = "timer '%s' is removed, because no automation had a trigger for it within a day"

NO_AUTOMATIONS, NO_DEVICES = "no automation listens", "the adapters have not started"


class Timer(Struct, frozen=True, kw_only=True):
    """A timer, as the API and Lua show it. `due_at` is the timer's end by the current clock. `payload` is part of
    the timer's event."""

    name: str
    due_at: datetime
    payload: Value


_Millis = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
"""A time in milliseconds since 1970, up to the end of the year 9999."""


class StoredTimer(Struct, frozen=True, kw_only=True):
    """A stored timer. `is_dated` is true if the clock was trusted when the timer was written."""

    started_at: _Millis
    due_at: _Millis
    is_dated: bool = True
    payload: Any = None
    unheard_since: _Millis | None = None


class RunningTimer(Struct, eq=False, kw_only=True):
    """A timer in progress. `due` and `unclaimed_since` are in seconds of the monotonic clock.

    - `stored`: the stored times, until the clock is trusted. Until then, `due` is unknown.
    - `is_over`: whether the timer has expired. An expired timer waits for the end of a pause or for a listener.
    - `is_late`: whether the timer could not fire on time.
    - `unclaimed_since`: the time at which the timer began to wait for a listener.
    - `call`: ends the timer or, after expiry, the timer's wait for a listener.
    """

    name: str
    payload: bytes
    secs: float
    due: float = 0.0
    stored: StoredTimer | None = None
    is_over: bool = False
    is_late: bool = False
    unclaimed_since: float | None = None
    call: DelayedCall | None = None

    @staticmethod
    def load(name: str, raw: Any) -> RunningTimer:
        """Decode a stored timer. If the data has another form, raise `ValueError`."""
        stored = convert(raw, StoredTimer)
        secs = (stored.due_at - stored.started_at) / 1000
        return RunningTimer(name=name, payload=to_bytes(stored.payload), secs=secs, stored=stored)


class Timers:
    """The timers by name.

    Timers run in real seconds. After a restart, timers end at their stored clock times once the clock is trusted.
    Timers that start, change, or end at the same moment are stored in a single write. A write contains at most
    `MAX_ENDED_AT_ONCE` ends.

    When a timer ends, it is removed from storage and then fires. If the power fails before the removal, the timer
    fires again after the restart. If the removal fails, the timer fires nevertheless. Such a timer fires again only
    if the hub stops before the next flush. A timer without a listener waits for up to a day.
    """

    def __init__(
        self,
        storage: Storage,
        bus: Bus,
        watch: ClockWatch,
        scheduler: Scheduler,
        brake: Brake,
    ) -> None:
        self._storage = storage
        self._bus = bus
        self._clock = watch.clock
        self._watch = watch
        self._scheduler = scheduler
        self._brake = brake
        self._tasks = Tasks()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._paused_by: set[str] = set()
        self._starting = self._starting_bytes = 0
        self._over: dict[RunningTimer, None] = {}
        self._rewrites = 0
        self._timers = read_timers(storage)
        self._bytes = sum(len(timer.payload) for timer in self._timers.values())

    async def __aenter__(self) -> Timers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def begin(self, has_listener: Callable[[str], bool]) -> None:
        """Resume the stored timers of the previous run, and follow changes of the clock from now on. `has_listener`
        returns whether an enabled automation has a trigger for a timer name."""
        self._has_listener = has_listener
        self._watch.steps.listen(lambda _: self._write_all())
        self._watch.when_trusted(self._on_trusted)
        for timer in self._timers.values():
            if timer.stored is not None and not timer.stored.is_dated:  # the time of the start is unknown
                self._run(timer, self._clock.monotonic() + timer.secs)
        if self._watch.trust.is_trusted():
            self._resume_stored()
        elif any(timer.stored is not None for timer in self._timers.values()):
            self._scheduler.await_trust()

    def pause(self, reason: str = NO_AUTOMATIONS) -> None:
        """Pause all timers until `resume` has been called for each reason. Due timers remain stored."""
        self._paused_by.add(reason)

    def resume(self, reason: str = NO_AUTOMATIONS) -> None:
        """End the pause for this reason. If no other reason remains, fire the expired timers, marked as late."""
        self._paused_by.discard(reason)
        self.recheck()

    def recheck(self, names: Collection[str] | None = None) -> None:
        """Fire expired timers that now have a listener. The others continue to wait for one. If `names` is given,
        check only the timers with these names."""
        for name in self._timers if names is None else self._timers.keys() & names:
            timer = self._timers[name]
            is_waiting = timer.unclaimed_since is not None and self._may_wait(timer)
            if timer.is_over and (not is_waiting or self._has_listener(timer.name)):
                self._end(timer)

    def list_all(self) -> Iterator[Timer]:
        """Return every running timer, sorted by name. Each timer is computed on demand."""
        return (
            Timer(name=name, due_at=from_millis(self._due_at(timer)), payload=orjson.loads(timer.payload))
            for name, timer in sorted(self._timers.items())
        )

    def list_names(self) -> list[str]:
        """Return the names of all running timers, unsorted."""
        return [*self._timers]

    def find_end(self, name: str) -> datetime | None:
        """Return the end of a running timer by the current clock, or None."""
        timer = self._timers.get(name)
        return None if timer is None else from_millis(self._due_at(timer))

    async def start(self, name: str, secs: float, payload: Value, source: str) -> None:
        """Start or restart the timer. Return after the timer is stored. Raise `Invalid` for wrong arguments, and
        `StoreFailed` if storage fails."""
        name = check_timer(name, secs, payload)
        due = self._clock.monotonic() + secs
        timer = RunningTimer(name=name, payload=to_bytes(payload), secs=secs, due=due)
        self._reserve(timer)
        try:
            await self._tasks.finish(self._start(timer), f"start of the timer {name}")
        finally:
            self._starting -= 1
            self._starting_bytes -= len(timer.payload)
        if secs < MIN_DELAY_SECS:
            self._brake.note_effect(source, "timer", name)

    async def cancel(self, name: str) -> bool:
        """Cancel the timer. After the removal is stored, return whether the timer existed. Raise `StoreFailed` if
        storage fails."""
        try:
            name = strip_id(name)
        except Invalid:
            return False
        return name in self._timers and await self._tasks.finish(self._cancel(name), f"end of the timer {name}")

    async def remove(self, name: str) -> None:
        """Cancel the timer. Raise `NotFound` if the timer does not exist, and `StoreFailed` if storage fails."""
        if not await self.cancel(name):
            raise NotFound("timer", name)

    async def _start(self, timer: RunningTimer) -> None:
        name = timer.name
        async with self._changing(name):
            await self._storage.put_many({TIMER_PREFIX + name: self._encode(timer)})
            self._drop(name)
            self._timers[name] = timer
            self._bytes += len(timer.payload)
            self._run(timer, timer.due)

    async def _cancel(self, name: str) -> bool:
        async with self._changing(name):
            if name not in self._timers:
                return False
            await self._storage.put_many({TIMER_PREFIX + name: None})
            self._drop(name)
        return True

    @asynccontextmanager
    async def _changing(self, name: str) -> AsyncIterator[None]:
        """Hold the timer's lock. If the clock was set while the lock was held, write the timer again."""
        async with self._lock(name):
            steps = self._rewrites
            try:
                yield
            finally:
                if steps != self._rewrites and name in self._timers:
                    self._write(self._timers[name])

    def _lock(self, name: str) -> asyncio.Lock:
        """Return the timer's lock. While the lock is held, the timer neither fires nor is written."""
        lock = self._locks.get(name)
        if lock is None:
            lock = self._locks[name] = asyncio.Lock()
        return lock

    def _drop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            self._bytes -= len(timer.payload)
            if timer.call is not None:
                self._scheduler.cancel(timer.call)

    def _reserve(self, timer: RunningTimer) -> None:
        """Reserve room for the timer. Raise `Invalid` if there are too many timers or payloads."""
        name, before = timer.name, self._timers.get(timer.name)
        if before is None and len(self._timers) + self._starting >= MAX_TIMERS:
            raise Invalid(f"timer '{name}': {MAX_TIMERS} timers are already running; cancel one first")
        size = len(timer.payload) - (0 if before is None else len(before.payload))
        if self._bytes + self._starting_bytes + size > MAX_BYTES_IN_ALL:
            raise Invalid(f"timer '{name}': the payloads of all timers exceed {MAX_BYTES_IN_ALL} bytes as JSON")
        self._starting += 1
        self._starting_bytes += len(timer.payload)

    def _on_trusted(self) -> None:
        self._resume_stored()
        self._write_all()

    def _resume_stored(self) -> None:
        """Start the timers whose ends are known only as clock times."""
        now, monotonic = self._clock.now().timestamp(), self._clock.monotonic()
        for timer in self._timers.values():
            if (stored := timer.stored) is None:
                continue
            left = stored.due_at / 1000 - now
            timer.is_late = left < 0
            if stored.unheard_since is not None:
                timer.unclaimed_since = monotonic - max(0.0, now - stored.unheard_since / 1000)
            self._run(timer, monotonic + min(left, timer.secs))

    def _run(self, timer: RunningTimer, due: float) -> None:
        timer.stored, timer.due = None, due
        self._end_at(timer, due)

    def _end_at(self, timer: RunningTimer, due: float) -> None:
        if timer.call is not None:
            self._scheduler.cancel(timer.call)
        left = max(0.0, due - self._clock.monotonic())
        timer.call = self._scheduler.after(f"timer '{timer.name}'", left, partial(self._end_named, timer.name))

    def _end_named(self, name: str, _: float) -> None:
        self._end(self._timers[name])

    def _end(self, timer: RunningTimer) -> None:
        """End the timer. Timers that end at the same moment are ended together."""
        timer.is_over = True
        self._over[timer] = None
        if len(self._over) == 1:
            self._tasks.start(self._end_all(), "end of timers")

    async def _end_all(self) -> None:
        """End all expired timers, some in each turn of the loop."""
        over, self._over = [*self._over], {}
        for first in range(0, len(over), MAX_ENDED_AT_ONCE):
            await self._end_together(over[first : first + MAX_ENDED_AT_ONCE])
            await wait_in_line()

    async def _end_together(self, over: Sequence[RunningTimer]) -> None:
        """Remove the expired timers from storage, then fire them. Timers that must still wait remain stored."""
        async with AsyncExitStack() as stack:
            for name in sorted({timer.name for timer in over}):  # in one order, so that no two calls block each other
                await stack.enter_async_context(self._lock(name))
            firing, unclaimed = [], []
            for timer in over:
                if self._timers.get(timer.name) is not timer:
                    continue  # restarted or cancelled in the meantime
                if self._paused_by:
                    timer.is_late = True
                elif not self._may_wait(timer):
                    unclaimed.append(timer)
                elif self._has_listener(timer.name):
                    firing.append(timer)
                else:
                    self._wait_for_listener(timer)
            await self._remove_ended([*firing, *unclaimed])
        for timer in unclaimed:
            log.warning(_UNCLAIMED, timer.name)
        for timer in firing:
            self._fire(timer)

    def _may_wait(self, timer: RunningTimer) -> bool:
        """Return whether the expired timer may still wait for a listener."""
        since = timer.unclaimed_since
        return since is None or self._clock.monotonic() < since + MAX_LISTENER_WAIT_SECS

    def _wait_for_listener(self, timer: RunningTimer) -> None:
        """Keep the expired timer until an automation listens for the timer, but not longer than a day."""
        timer.is_late = True
        if timer.unclaimed_since is None:
            log.info("timer '%s' has ended, but no enabled automation has a trigger for it yet", timer.name)
            timer.unclaimed_since = self._clock.monotonic()
            self._write(timer)
        self._end_at(timer, timer.unclaimed_since + MAX_LISTENER_WAIT_SECS)

    async def _remove_ended(self, timers: Sequence[RunningTimer]) -> None:
        """Remove the timers from storage and from memory. If the removal fails, the next flush repeats it."""
        try:
            await self._storage.put_many({TIMER_PREFIX + timer.name: None for timer in timers})
        except StoreFailed:
            for timer in timers:
                self._storage.put_later(TIMER_PREFIX + timer.name, None)
        except asyncio.CancelledError:  # the hub is stopping; the timers fire after the next start
            for timer in timers:
                self._write(timer)
            raise
        for timer in timers:
            self._drop(timer.name)

    def _fire(self, timer: RunningTimer) -> None:
        late = round(self._clock.monotonic() - timer.due, 3) if timer.is_late else None
        payload, due_at = orjson.loads(timer.payload), from_millis(self._due_at(timer))
        log.debug("timer '%s' has ended", timer.name)
        self._bus.publish(TimerFired(name=timer.name, payload=payload, due_at=due_at, late_secs=late))

    def _write_all(self) -> None:
        """Write the times of all timers again, because the clock was set or became trusted. Changes in progress write
        their timers themselves."""
        self._rewrites += 1
        for name, timer in self._timers.items():
            if timer.stored is None and not self._lock(name).locked():
                self._write(timer)

    def _write(self, timer: RunningTimer) -> None:
        self._storage.put_later(TIMER_PREFIX + timer.name, self._encode(timer))

    def _encode(self, timer: RunningTimer) -> dict[str, Any]:
        due_at = self._due_at(timer)
        started_at = due_at - round(timer.secs * 1000)
        unclaimed = {} if timer.unclaimed_since is None else {"unheard_since": self._millis_at(timer.unclaimed_since)}
        times = {"started_at": started_at, "due_at": due_at, "is_dated": self._watch.trust.is_trusted(), **unclaimed}
        return {**times, "payload": orjson.loads(timer.payload)}

    def _due_at(self, timer: RunningTimer) -> int:
        """Return the timer's end by the current clock, in milliseconds since 1970."""
        return self._millis_at(timer.due) if timer.stored is None else timer.stored.due_at

    def _millis_at(self, monotonic: float) -> int:
        return round((self._clock.now().timestamp() + monotonic - self._clock.monotonic()) * 1000)


def read_timers(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, RunningTimer]:
    """Decode the stored timers by name."""
    return read_all(stored, TIMER_PREFIX, RunningTimer.load, on_fault)


def check_timer(name: str, secs: float, payload: Value) -> str:
    """Return the trimmed name. Raise `Invalid` for a wrong name, duration, or payload."""
    try:
        name = strip_id(name)
    except Invalid as fault:
        raise Invalid(f"the timer's name {fault}") from None
    if not is_number(secs) or not 0 <= secs <= MAX_SECS:
        raise Invalid(f"timer '{name}': the duration must be 0 to {MAX_SECS} seconds (400 days), not {secs!r}")
    json_size(f"timer '{name}': the payload", payload, MAX_TIMER_PAYLOAD_BYTES)
    return name
