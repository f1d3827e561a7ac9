"""Timers that Lua starts: each is on the card before the call returns, and outlives the hub."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from appliance.automations.alarms import TimerHandle
from appliance.automations.brake import Brake
from appliance.automations.environment import Environment
from appliance.automations.running_timers import RunningTimer, check_timer
from appliance.automations.scheduler import Scheduler
from appliance.automations.states import read_instant
from appliance.clock import to_millis
from appliance.errors import Invalid, NotFound, StoreFailed
from appliance.home.events import TimerFired
from appliance.home.texts import strip_id
from appliance.home.values import Value, to_bytes
from appliance.tasks import Tasks

log = logging.getLogger("automations")

TIMER_PREFIX = "timer/"
"""Keys in the document: `timer/<name>` holds `{started_at, due_at, is_dated, payload}`, times in milliseconds since
1970; `is_dated`: whether the clock was trusted then."""

MAX_TIMERS = 10_000
MAX_BYTES_IN_ALL = 1 << 20
"""Of the payloads of all timers together, as JSON."""

MAX_LISTENER_WAIT_SECS = 86_400.0
"""How long a timer that is over waits for an automation that listens for it."""

MIN_DELAY_SECS = 0.1
"""A timer of less has no delay: what it sets off counts for the brake."""


class Timer(Struct, frozen=True, kw_only=True):
    """One timer. `due_at` is by the clock as it is now; `payload` is what its event bears, None for nothing."""

    name: str
    due_at: datetime
    payload: Value


NO_AUTOMATIONS, NO_DEVICES = "no automation listens", "the adapters have not started"
"""Why timers are paused: the hub stops or runs without automations, or it has just started."""


class Timers:
    """The timers by name. They run on real seconds; after a restart they are due by the clock, once it is trusted.

    Changes that come at the same time, ends too, are one record on the card. A timer that is over while no automation
    listens for it waits up to a day for one.

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
        self._changing: Counter[str] = Counter()
        self._undated: set[str] = set()
        self._paused_by: set[str] = set()
        self._over_in_pause: dict[str, RunningTimer] = {}
        self._starting = self._starting_bytes = 0
        self._over: list[RunningTimer] = []
        self._withheld: dict[str, RunningTimer] = {}
        self._awaiting_listener: dict[str, TimerHandle] = {}
        stored = environment.storage.stored.items(TIMER_PREFIX)
        self._running = {name: timer for name, raw in stored if (timer := RunningTimer.of(name, raw)) is not None}
        self._bytes = sum(len(timer.payload) for timer in self._running.values())
        environment.list_timers = lambda: {timer.name: timer.due_at for timer in self.list_all()}

    async def __aenter__(self) -> Timers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def begin(self, scheduler: Scheduler, has_listener: Callable[[str], bool]) -> None:
        """Set going what was under way at the last stop, and follow the clock from now on.

        `has_listener` says whether an automation that is switched on listens for the timer of a name.
        """
        self._scheduler, self._has_listener = scheduler, has_listener
        scheduler.on_step(self._date_anew)
        scheduler.when_trusted(self._resume_dated)
        for timer in self._running.values():
            if self._trust.is_trusted() and timer.is_dated:
                self._resume(timer)
            elif not timer.is_dated:  # how much of it is over is not known
                self._run(timer, timer.whole_secs)

    def pause(self, reason: str = NO_AUTOMATIONS) -> None:
        """Let none fire until `resume` was called for each reason; what falls due stays on the card."""
        self._paused_by.add(reason)

    def resume(self, reason: str = NO_AUTOMATIONS) -> None:
        """Let them fire again, if there was no other reason; what fell due meanwhile fires at once, late."""
        self._paused_by.discard(reason)
        if self._paused_by:
            return
        now, over, self._over_in_pause = self._clock.monotonic(), self._over_in_pause, {}
        for timer in over.values():
            if timer.alarm is not None:
                timer.late_secs = (timer.late_secs or 0.0) + now - timer.alarm.due
                self._end(timer)
        self._resume_waiting()

    def recheck(self) -> None:
        """Fire what is over and waited for an automation that listens for it, where there is one by now."""
        for name in [each for each in self._awaiting_listener if self._has_listener(each)]:
            timer = self._running[name]
            timer.late_secs = (self._clock.now() - self._due_at(timer)).total_seconds()
            self._stop_awaiting(name)
            self._end(timer)

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
        name = check_timer(name, secs, payload)
        started_at = to_millis(self._clock.now())
        due_at = started_at + round(secs * 1000)
        timer = RunningTimer(name, to_bytes(payload), started_at, due_at, self._trust.is_trusted())
        self._reserve(timer)
        try:
            await self._change(name, timer, source)
        finally:
            self._starting -= 1
            self._starting_bytes -= len(timer.payload)

    async def cancel(self, name: str) -> bool:
        """Cancel it; returns when that is on the card, and whether there was such a timer. Raises `StoreFailed`."""
        try:
            name = strip_id(name)
        except Invalid:
            return False
        if name not in self._running:
            return False
        await self._change(name)
        return True

    async def remove(self, name: str) -> None:
        """Cancel it; `NotFound` where there is no such timer, or `StoreFailed`."""
        if not await self.cancel(name):
            raise NotFound("timer", name)

    async def _change(self, name: str, timer: RunningTimer | None = None, source: str = "") -> None:
        """Put the timer, or None, in the place of the one that runs, once it is on the card.

        Until then the one that runs does not fire. Once begun this is finished even if the caller is cancelled.
        """
        self._changing[name] += 1
        work = self._store(name, timer, source, self._clock.monotonic())
        await self._tasks.finish(work, f"change of the timer {name}")

    async def _store(self, name: str, timer: RunningTimer | None, source: str, began: float) -> None:
        try:
            await self._put({TIMER_PREFIX + name: None if timer is None else timer.to_json()})
            self._replace(name, timer, self._clock.monotonic() - began)
        finally:
            self._changing[name] -= 1
            if not self._changing[name]:
                del self._changing[name]
                if name in self._undated:
                    self._undated.discard(name)
                    self._date(name)
            if name in self._withheld:
                self._end(self._withheld.pop(name))
        if timer is not None and timer.whole_secs < MIN_DELAY_SECS:
            self._brake.note_effect(source, "timer", name)

    def _replace(self, name: str, timer: RunningTimer | None = None, elapsed: float = 0.0) -> None:
        before = self._running.pop(name, None)
        self._over_in_pause.pop(name, None)
        self._stop_awaiting(name)
        if before is not None:
            self._bytes -= len(before.payload)
            if before.alarm is not None:
                self._scheduler.cancel(before.alarm)
        if timer is not None:
            self._running[name] = timer
            self._bytes += len(timer.payload)
            self._run(timer, timer.whole_secs - elapsed)

    def _reserve(self, timer: RunningTimer) -> None:
        """Count it among those that start; `Invalid` where there is no room for it."""
        name, before = timer.name, self._running.get(timer.name)
        if before is None and len(self._running) + self._starting >= MAX_TIMERS:
            raise Invalid(f"timer '{name}': {MAX_TIMERS} are under way already; cancel one first")
        size = len(timer.payload) - (0 if before is None else len(before.payload))
        if self._bytes + self._starting_bytes + size > MAX_BYTES_IN_ALL:
            raise Invalid(f"timer '{name}': the payloads of all would take over {MAX_BYTES_IN_ALL} bytes as JSON")
        self._starting += 1
        self._starting_bytes += len(timer.payload)

    def _resume(self, timer: RunningTimer) -> None:
        left = timer.due_at / 1000 - self._clock.now().timestamp()
        timer.late_secs = -left if left < 0 else None
        self._run(timer, min(left, timer.whole_secs))

    def _run(self, timer: RunningTimer, secs: float) -> None:
        """Let it be over so many seconds from now."""
        timer.alarm = self._scheduler.after(f"timer '{timer.name}'", max(0.0, secs), partial(self._end, timer))

    def _resume_dated(self) -> None:
        """The clock is trusted: those that waited for the time go on, and the others get their right times."""
        self._resume_waiting()
        self._date_anew()

    def _resume_waiting(self) -> None:
        for name, timer in self._running.items():
            if timer.alarm is None and name not in self._awaiting_listener:
                self._resume(timer)

    def _date_anew(self) -> None:
        """The clock was set: what runs, or waits for a listener, has other times by it.

        What is being changed gets them once that is on the card: until then it is open which timer it is.
        """
        self._undated.update(self._changing)
        for name in self._running.keys() - self._undated:
            self._date(name)

    def _date(self, name: str) -> None:
        """Have the timer, if there is one, on the card with its times by the clock as it is now."""
        timer, awaiting = self._running.get(name), self._awaiting_listener.get(name)
        if timer is None or (timer.alarm is None and awaiting is None):
            return
        if awaiting is None:
            shift = to_millis(self._due_at(timer)) - timer.due_at
        else:
            assert timer.unheard_since is not None
            since = to_millis(self._instant_of(awaiting)) - round(MAX_LISTENER_WAIT_SECS * 1000)
            shift, timer.unheard_since = since - timer.unheard_since, since
        timer.started_at, timer.due_at = timer.started_at + shift, timer.due_at + shift
        timer.is_dated = self._trust.is_trusted()
        self._remember(TIMER_PREFIX + name, timer.to_json())

    def _end(self, timer: RunningTimer, _: float = 0.0) -> None:
        """It is over; those that are over at the same time end together."""
        self._over.append(timer)
        if len(self._over) == 1:
            self._tasks.start(self._end_all(), "end of timers")

    async def _end_all(self) -> None:
        """Fire what is over, and in the same step take it off the card."""
        over, self._over = self._over, []
        stored = asyncio.Event()
        ended: dict[str, None] = {}
        for timer in over:
            if self._changing[timer.name]:
                self._withheld[timer.name] = timer
            elif self._fire(timer, stored):
                ended[TIMER_PREFIX + timer.name] = None
                self._remember(TIMER_PREFIX + timer.name, None)
        with suppress(StoreFailed):  # the home runs on; the next flush takes it off the card
            await self._put(ended)
        stored.set()

    def _fire(self, timer: RunningTimer, stored: asyncio.Event) -> bool:
        """Publish that the timer is over, if an automation listens for it; whether it was published.

        What runs because of it may act once `stored` is set.
        """
        name = timer.name
        if self._running.get(name) is not timer:
            return False
        if self._paused_by:  # it keeps its alarm, by which it is late however the clock is set
            self._over_in_pause[name] = timer
            return False
        timer.alarm = None
        if not self._has_listener(name):
            self._await_listener(timer)
            return False
        del self._running[name]
        self._bytes -= len(timer.payload)
        late = None if timer.late_secs is None else round(timer.late_secs, 3)
        payload, due_at = timer.load_payload(), read_instant(timer.due_at)
        assert due_at is not None  # as it was checked when it was read
        log.debug("timer '%s' is over", name)
        self._bus.publish(TimerFired(name=name, payload=payload, due_at=due_at, late_secs=late, stored=stored))
        return True

    def _await_listener(self, timer: RunningTimer) -> None:
        """Keep what is over up to a day from now, or from when it was over in an earlier run of the hub."""
        now = to_millis(self._clock.now())
        if timer.unheard_since is None or not self._trust.is_trusted():
            log.info("timer '%s' is over, and no automation that is switched on listens for it yet", timer.name)
            timer.unheard_since = now
            self._remember(TIMER_PREFIX + timer.name, timer.to_json())
        left = MAX_LISTENER_WAIT_SECS - max(0, now - timer.unheard_since) / 1000
        on_due = partial(self._give_up, timer)
        self._awaiting_listener[timer.name] = self._scheduler.after(f"timer '{timer.name}'", max(0.0, left), on_due)

    def _give_up(self, timer: RunningTimer, _: float) -> None:
        """Remove one that nobody has listened for; it is off the card with the next flush."""
        if self._changing[timer.name]:  # who cancels it, or starts it anew, has the last word
            return
        log.warning("timer '%s' is removed: for a day no automation has listened for it", timer.name)
        self._replace(timer.name)
        self._remember(TIMER_PREFIX + timer.name, None)

    def _stop_awaiting(self, name: str) -> None:
        handle = self._awaiting_listener.pop(name, None)
        if handle is not None:
            self._scheduler.cancel(handle)

    def _due_at(self, timer: RunningTimer) -> datetime:
        """When it is due by the clock as it is now."""
        if timer.alarm is not None:
            return self._instant_of(timer.alarm)
        due_at = read_instant(timer.due_at)
        assert due_at is not None
        return due_at

    def _instant_of(self, handle: TimerHandle) -> datetime:
        return self._clock.now() + timedelta(seconds=handle.due - self._clock.monotonic())
