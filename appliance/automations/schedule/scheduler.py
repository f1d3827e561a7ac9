"""The scheduler calls functions after a delay, at regular intervals, and at calendar times."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from appliance.automations.schedule.clock_watch import ClockWatch, do_safely
from appliance.automations.schedule.scheduled_calls import (
    MICROSECOND,
    CalendarCall,
    DelayedCall,
    DelayedCalls,
    Schedule,
)
from appliance.event_loop import in_steps
from appliance.tasks import Tasks

log = logging.getLogger("automations")

LATE_SECS = 1.0
"""Seconds of delay after which an occurrence is marked as late."""

MAX_ADJUSTMENT = timedelta(minutes=5)
"""If the clock is set back by less than this time, for example by NTP, no occurrence fires again."""

MAX_COUNTED = 100
"""Maximum number of missed occurrences that are counted for a call. Hundreds of calls may have missed weeks."""


class Scheduler:
    """Makes delayed calls and calendar calls when they are due. Callbacks run on the event loop and must not block.

    Delayed calls depend only on the monotonic clock. Calendar calls begin when the clock is trusted, and are computed
    again when the clock is set back.
    """

    def __init__(self, watch: ClockWatch) -> None:
        self._clock = watch.clock
        self._watch = watch
        self._delayed_calls = DelayedCalls()
        self._calendar_calls: dict[CalendarCall, None] = {}
        self._new_calls: deque[tuple[CalendarCall, datetime, bool]] = deque()
        """Calls without a first occurrence, with the arguments of `_begin`. A reload may add thousands of them."""
        self._is_starting = True
        """Only calls that are added before `_run` first finds the clock trusted find an occurrence shortly before the
        hub's start."""
        self._awaits_trust = False
        self._changed = asyncio.Event()
        self._tasks = Tasks()
        self._counting = asyncio.Lock()
        self._late = 0

    async def __aenter__(self) -> Scheduler:
        self._watch.report_start()
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
        if self._watch.was_trusted:
            self._new_calls.append((call, self._clock.now(), self._is_starting))
        self._changed.set()
        return call

    def cancel(self, what: DelayedCall | CalendarCall) -> None:
        """Cancel a call. If the call is already cancelled, do nothing."""
        if isinstance(what, CalendarCall):
            self._calendar_calls.pop(what, None)
        else:
            self._delayed_calls.cancel(what)

    def figures(self) -> dict[str, Any]:
        """Return the state of the clock and the number of late calls for the diagnostics."""
        return {**self._watch.figures(), "late": self._late}

    def await_trust(self) -> None:
        """Keep checking whether the clock can be trusted, even if nothing is scheduled."""
        self._awaits_trust = True
        self._changed.set()

    def recheck(self) -> None:
        """Check at once whether the clock can be trusted."""
        self._changed.set()

    def _start(self, call: DelayedCall) -> DelayedCall:
        if self._delayed_calls.add(call):
            self._changed.set()
        return call

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            await in_steps(self._clock, self._begin_new_calls())
            await in_steps(self._clock, self._check_clock())
            await in_steps(self._clock, self._fire_delayed_calls())
            await in_steps(self._clock, self._fire_calendar_calls())
            if self._delayed_calls or self._calendar_calls or (self._awaits_trust and not self._watch.was_trusted):
                await self._clock.wait(self._changed, self._secs_to_next())
            else:
                await self._changed.wait()
                self._watch.skip_check()

    def _begin_new_calls(self) -> Iterator[None]:
        """Begin the calls that were added while the clock was trusted, one per step."""
        while self._new_calls:
            call, since, is_at_start = self._new_calls.popleft()
            if call in self._calendar_calls:
                self._begin(call, since, is_at_start=is_at_start)
                yield

    def _check_clock(self) -> Iterator[None]:
        """Begin the calendar calls if the clock has become trusted. Compute them again if the clock was set back. A
        step concerns one call."""
        change = self._watch.check()
        if not self._watch.was_trusted:
            return
        is_at_start, self._is_starting = self._is_starting, False
        changed = tuple(self._calendar_calls) if change.became_trusted or change.step < timedelta() else ()
        for call in changed:
            if call not in self._calendar_calls:  # a reload has cancelled the call
                continue
            if change.became_trusted:
                self._begin(call, change.earliest, is_at_start=is_at_start)
            else:
                call.set_due(change.earliest, settles=change.step > -MAX_ADJUSTMENT)
            yield

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
                do_safely(partial(call.on_due, late))
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
                do_safely(partial(call.on_due, due))
            yield

    def _begin(self, call: CalendarCall, since: datetime, *, is_at_start: bool) -> None:
        """Find the call's first occurrence after `since`. At the hub's start, also find an occurrence shortly before
        the start, and count the occurrences that were missed while the hub was off."""
        if is_at_start:
            since = min(since, self._watch.find_start(self._clock.now()))
            if self._watch.left_at is not None:
                call.gap = self._watch.left_at, since + MICROSECOND
            if call.never_repeats and call.last is not None:
                self._note_missed(call, call.next_after(call.last), since + MICROSECOND)
        call.set_due(since)

    def _note_missed(self, call: CalendarCall, since: datetime | None, until: datetime) -> None:
        """Count the occurrences from `since` (inclusive) to `until` (exclusive) in the background, and log the
        number."""
        if since is not None and since < until:
            call.gap = since - MICROSECOND, until
            self._tasks.start(self._log_counted(call, since, until), f"count of missed times of {call.name}")

    async def _log_counted(self, call: CalendarCall, due: datetime | None, until: datetime) -> None:
        """Count missed occurrences up to `MAX_COUNTED`. Each turn of the loop computes one occurrence of one call."""
        count = 0
        async with self._counting:
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
