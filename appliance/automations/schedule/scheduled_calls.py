"""The calls that the scheduler makes: after a delay, at intervals, and at calendar times."""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

log = logging.getLogger("automations")

MAX_STALE = 64
"""Maximum number of cancelled calls in the queue."""

MAX_LATE = timedelta(minutes=5)
"""A missed occurrence fires at once if it is at most this old. Older occurrences are only counted."""

MAX_AHEAD = timedelta(days=1)
"""A stored occurrence is ignored if it is further in the future than this, because the clock was wrong when the
occurrence fired."""

MICROSECOND = timedelta(microseconds=1)


class Schedule(Protocol):
    """A sequence of calendar times."""

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first occurrence after the instant, or None."""


class DelayedCall(Struct, eq=False):
    """A callback after a real duration. If `every` (in seconds) is set, the call repeats."""

    name: str
    due: float
    on_due: Callable[[float], None]
    every: float | None = None
    is_cancelled: bool = False

    def advance(self, now: float) -> tuple[float | None, int]:
        """Return the delay in seconds and the number of missed times. The delay is None if nothing is called
        now."""
        if self.every is None:
            return now - self.due, 0
        passed, late = divmod(now - self.due, self.every)
        self.due = now - late + self.every
        return (late, int(passed)) if late <= MAX_LATE.total_seconds() else (None, int(passed) + 1)


class DelayedCalls:
    """The waiting delayed calls, sorted by due time. A cancelled call remains in the queue until it is due, or until
    too many calls are cancelled."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, DelayedCall]] = []
        self._numbers = itertools.count()
        self._stale = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def next_due(self) -> float:
        """Return the due time of the first call, or infinity."""
        return self._queue[0][0] if self._queue else math.inf

    def add(self, call: DelayedCall) -> bool:
        """Add the call. Return whether the call is now the first call."""
        heapq.heappush(self._queue, (call.due, next(self._numbers), call))
        return self._queue[0][2] is call

    def cancel(self, call: DelayedCall) -> None:
        if call.is_cancelled:
            return
        call.is_cancelled = True
        self._stale += 1
        if self._stale > max(MAX_STALE, len(self._queue) // 2):
            self._queue = [each for each in self._queue if not each[2].is_cancelled]
            heapq.heapify(self._queue)
            self._stale = 0

    def take_due(self, now: float) -> DelayedCall | None:
        """Remove and return the first call that is due, or return None."""
        while self.next_due <= now:
            call = heapq.heappop(self._queue)[2]
            if not call.is_cancelled:
                return call
            self._stale -= 1
        return None


class CalendarCall(Struct, eq=False, kw_only=True):
    """A callback at the occurrences of a schedule.

    - `name`: the name in the log.
    - `due`: the next occurrence; None while the clock is not trusted, and after the last occurrence.
    - `never_repeats`: whether an occurrence fires only once, even if the clock is set back.
    - `last`: the occurrence that fired most recently.
    - `gap`: the period after `last` in which occurrences were skipped.
    """

    name: str
    schedule: Schedule
    on_due: Callable[[datetime], None]
    never_repeats: bool
    last: datetime | None
    due: datetime | None = None
    gap: tuple[datetime, datetime] | None = None

    def set_due(self, now: datetime, *, settles: bool = False) -> None:
        """Set `due` to the next occurrence after this instant. `settles` means that the clock was corrected only
        slightly; occurrences that have already fired are then skipped."""
        since = now
        if self.last is not None and (self.never_repeats or settles) and self.last - now <= MAX_AHEAD:
            since = max(now, self.last)
        self.due = self.next_after(since)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the schedule's first occurrence after the instant. If the schedule fails, log the error and return
        None."""
        try:
            return self.schedule.next_after(instant)
        except Exception as error:  # a failing schedule must not stop other schedules
            sentence = "%s: its schedule cannot be computed: %s: %s"
            log.error(sentence, self.name, type(error).__name__, error, exc_info=error)
            return None

    def advance(self, now: datetime) -> datetime | None:
        """Return the occurrence that fires now: the latest due occurrence that is not too late. Set `due` to the next
        occurrence."""
        fires = None
        if self.due is not None and now - self.due > MAX_LATE:
            self.due = self.next_after(now - MAX_LATE - MICROSECOND)
        while self.due is not None and self.due <= now:
            fires, self.due = self.due, self.next_after(self.due)
        if fires is not None:
            self.last, self.gap = fires, None
        return fires

    def find_missed(self) -> datetime | None:
        """Return the first occurrence that was skipped since the last occurrence that fired, or None."""
        due = None if self.gap is None else self.next_after(self.gap[0])
        return due if self.gap is not None and due is not None and due < self.gap[1] else None
