"""The scheduler calls functions after a delay, at regular intervals, and at calendar times."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from appliance.automations.scheduled_calls import (
    MAX_LATE,
    MICROSECOND,
    CalendarCall,
    DelayedCall,
    DelayedCalls,
    Schedule,
)
from appliance.clock import Clock, ClockSteps, timestamp
from appliance.event_loop import in_steps
from appliance.store.clock_trust import ClockTrust
from appliance.tasks import Tasks

log = logging.getLogger("automations")

LATE_SECS = 1.0
"""Seconds of delay after which an occurrence is marked as late."""

MAX_ADJUSTMENT = timedelta(minutes=1)
"""If the clock is set back by less than this time, for example by NTP, no occurrence is repeated."""

MAX_COUNTED = 1000
"""Maximum number of missed occurrences that are counted."""


class Scheduler:
    """Makes delayed calls and calendar calls when they are due. Callbacks run on the event loop and must not block.

    For `began`, `stopped_at`, and `left_at`, see `Environment`.
    """

    def __init__(
        self,
        clock: Clock,
        trust: ClockTrust,
        steps: ClockSteps,
        *,
        began: float | None = None,
        stopped_at: datetime | None = None,
        left_at: datetime | None = None,
    ) -> None:
        self._clock = clock
        self._trust = trust
        self._began = clock.monotonic() if began is None else began
        self._stopped_at = stopped_at
        self._left_at = left_at
        self._is_starting = True
        self._steps = steps
        self._step = timedelta()
        self._steps.listen(self._note_step)
        self._delayed_calls = DelayedCalls()
        self._calendar_calls: dict[CalendarCall, None] = {}
        self._is_trusted = trust.is_trusted()
        self._on_trust: list[Callable[[], None]] = []
        self._awaits_trust = False
        self._changed = asyncio.Event()
        self._tasks = Tasks()
        self._stepped: list[dict[str, Any]] = []
        self._late = 0
        self._checked_at = clock.monotonic()

    async def __aenter__(self) -> Scheduler:
        if (distrust_reason := self._trust.distrust_reason()) is not None:
            log.warning("%s; schedules wait until the clock is trusted", distrust_reason)
        self._report_forgotten()
        self._tasks.start(self._run(), "scheduler")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()

    def after(self, name: str, seconds: float, on_due: Callable[[float], None]) -> DelayedCall:
        """Call `on_due` once after this number of real seconds. The argument of `on_due` is the delay in seconds."""
        return self._start(DelayedCall(name, self._clock.monotonic() + seconds, on_due))

    def every(
        self, name: str, seconds: float, on_due: Callable[[float], None], *, first: float | None = None
    ) -> DelayedCall:
        """Call `on_due` at this interval of real seconds. Make the first call after `first` seconds, or after one
        interval if `first` is missing."""
        due = self._clock.monotonic() + (seconds if first is None else first)
        return self._start(DelayedCall(name, due, on_due, seconds))

    def at(
        self,
        name: str,
        schedule: Schedule,
        on_due: Callable[[datetime], None],
        *,
        never_repeats: bool = False,
        last: datetime | None = None,
    ) -> CalendarCall:
        """Call `on_due` with each occurrence of the schedule from now on. For the other arguments, see
        `CalendarCall`."""
        call = CalendarCall(name=name, schedule=schedule, on_due=on_due, never_repeats=never_repeats, last=last)
        self._calendar_calls[call] = None
        if self._is_trusted:
            now = self._clock.now()
            self._begin(call, self._start_instant(now) if self._is_starting else now)
        self._changed.set()
        return call

    def cancel(self, what: DelayedCall | CalendarCall) -> None:
        """Cancel a call. If the call is already cancelled, do nothing."""
        if isinstance(what, CalendarCall):
            self._calendar_calls.pop(what, None)
        else:
            self._delayed_calls.cancel(what)

    def when_trusted(self, do: Callable[[], None]) -> None:
        """Call `do` when the clock becomes trusted. Never call `do` if the clock is already trusted."""
        if not self._is_trusted:
            self._on_trust.append(do)

    def await_trust(self) -> None:
        """Keep checking whether the clock is trusted, even if nothing is scheduled."""
        self._awaits_trust = True
        self._changed.set()

    def figures(self) -> dict[str, Any]:
        """Return the clock's state for the diagnostics."""
        forgotten = self._trust.forgotten
        return {
            "now": timestamp(self._clock.now()),
            "synchronised": self._clock.is_synchronised(),
            "trusted": self._trust.is_trusted(),
            "trusted_after": timestamp(self._trust.newest),
            "waits_because": self._trust.distrust_reason(),
            "forgotten": None if forgotten is None else timestamp(forgotten),
            "steps": list(self._stepped),
            "late": self._late,
        }

    def recheck(self) -> None:
        self._changed.set()

    def _start_instant(self, now: datetime) -> datetime:
        """Return the hub's start or the time of the previous stop, whichever is earlier."""
        if self._stopped_at is not None and timedelta() <= now - self._stopped_at <= MAX_LATE:
            return self._stopped_at
        since_start = timedelta(seconds=self._clock.monotonic() - self._began)
        return now - since_start if since_start <= MAX_LATE else now

    def _report_forgotten(self) -> None:
        if self._trust.forgotten is not None:
            stored = timestamp(self._trust.forgotten)
            log.warning("the stored time %s is in the future, because the clock was wrong; it is ignored", stored)

    def _start(self, call: DelayedCall) -> DelayedCall:
        if self._delayed_calls.add(call):
            self._changed.set()
        return call

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            self._check_clock()
            self._is_starting = False
            self._left_at = None if self._is_trusted else self._left_at
            await in_steps(self._clock, self._fire_delayed_calls())
            await in_steps(self._clock, self._fire_calendar_calls())
            if self._delayed_calls or self._calendar_calls or (self._awaits_trust and not self._is_trusted):
                await self._clock.wait(self._changed, self._secs_to_next())
            else:
                await self._changed.wait()
                self._checked_at = self._clock.monotonic()

    def _note_step(self, step: timedelta) -> None:
        self._step += step
        log.warning("the clock was changed by %+.1f s", step.total_seconds())
        changed = {"at": timestamp(self._clock.now()), "seconds": step.total_seconds()}
        self._stepped = [*self._stepped[-9:], changed]

    def _check_clock(self) -> None:
        """Recompute every occurrence if the clock was set back, or has become trusted for the first time.

        Search from the earliest time that the clock may have shown since the last check.
        """
        self._steps.poll()
        step, self._step = self._step, timedelta()
        now, checked_at = self._clock.now(), self._clock.monotonic()
        earliest = now - timedelta(seconds=checked_at - self._checked_at)
        self._checked_at = checked_at
        becomes_trusted = self._trust.is_trusted() and not self._is_trusted
        if becomes_trusted:
            log.info("the clock is trusted now: schedules begin")
            self._report_forgotten()
            self._is_trusted = True
            earliest = min(earliest, self._start_instant(now))
        if self._is_trusted and (becomes_trusted or step < timedelta()):
            for call in self._calendar_calls:
                if becomes_trusted:
                    self._begin(call, earliest)
                else:
                    call.set_due(earliest, settles=step > -MAX_ADJUSTMENT)
        if becomes_trusted:
            waiting, self._on_trust = self._on_trust, []
            for do in waiting:
                _safely(do)

    def _fire_delayed_calls(self) -> Iterator[None]:
        """Make the due delayed calls, one per step."""
        now = self._clock.monotonic()
        while (call := self._delayed_calls.take_due(now)) is not None:
            late, passed = call.advance(now)
            if call.every is not None:
                self._start(call)
            _report_passed(call.name, passed)
            if late is not None:
                self._late += late > LATE_SECS
                _safely(partial(call.on_due, late))
            yield

    def _fire_calendar_calls(self) -> Iterator[None]:
        """Make the due calendar calls, one per step."""
        now = self._clock.now()
        ready = [call for call in self._calendar_calls if call.due is not None and call.due <= now]
        for call in ready:
            first, due = call.due, call.advance(now)
            self._note_missed(call, first, now + MICROSECOND if due is None else due)
            if due is not None and call in self._calendar_calls:
                self._late += (now - due).total_seconds() > LATE_SECS
                _safely(partial(call.on_due, due))
            yield

    def _begin(self, call: CalendarCall, now: datetime) -> None:
        """Find the call's first occurrence, and count the occurrences missed before this start."""
        if self._left_at is not None:
            call.gap = self._left_at, now + MICROSECOND
        if call.never_repeats and call.last is not None:
            self._note_missed(call, call.next_after(call.last), now + MICROSECOND)
        call.set_due(now)

    def _note_missed(self, call: CalendarCall, since: datetime | None, until: datetime) -> None:
        """Count the occurrences from `since` (inclusive) to `until` (exclusive) in the background, and log the
        number."""
        if since is not None and since < until:
            call.gap = since - MICROSECOND, until
            self._tasks.start(self._log_counted(call, since, until), f"count of missed times of {call.name}")

    async def _log_counted(self, call: CalendarCall, due: datetime | None, until: datetime) -> None:
        """Count missed occurrences up to `MAX_COUNTED`, in small steps so that the event loop is not blocked."""
        count = 0
        while due is not None and due < until and count < MAX_COUNTED:
            count, due = count + 1, call.next_after(due)
            await self._clock.sleep(0)
        _report_passed(call.name, count)

    def _secs_to_next(self) -> float:
        """Return the seconds until the next call or check of the clock."""
        waits = [self._clock.recheck_secs, self._delayed_calls.next_due - self._clock.monotonic()]
        soonest = min((call.due for call in self._calendar_calls if call.due is not None), default=None)
        if soonest is not None:
            waits.append((soonest - self._clock.now()).total_seconds())
        return max(0.0, min(waits))


def _report_passed(name: str, passed: int) -> None:
    if passed:
        count = f"{MAX_COUNTED} or more" if passed >= MAX_COUNTED else passed
        log.warning("%s: missed runs that will not be repeated: %s", name, count)


def _safely(do: Callable[[], None]) -> None:
    try:
        do()
    except Exception as error:  # a fault in one schedule must not stop other schedules
        log.error("a schedule failed: %s: %s", type(error).__name__, error, exc_info=error)
