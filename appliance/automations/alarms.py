"""What is due: timers after spans of real time, alarms at instants of the calendar."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

log = logging.getLogger("automations")

MAX_LATE = timedelta(minutes=5)
"""A missed occurrence that is at most this old fires once, at once; older ones are only counted."""

MAX_AHEAD = timedelta(days=1)
"""An occurrence that fired by the stored state and lies further ahead than this fired by a wrong clock."""

MICROSECOND = timedelta(microseconds=1)


class Schedule(Protocol):
    """What is due at instants of the calendar."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first occurrence later than the instant; None if there is none."""


class TimerHandle(Struct, eq=False):
    """Something due after a span of real time, once, or again and again if `every` is given (seconds)."""

    name: str
    due: float
    on_due: Callable[[float], None]
    every: float | None = None
    is_cancelled: bool = False

    def advance(self, now: float) -> tuple[float | None, int]:
        """The seconds by which it fires late now, None if it does not fire, and how many times were missed."""
        if self.every is None:
            return now - self.due, 0
        passed, late = divmod(now - self.due, self.every)
        self.due = now - late + self.every
        return (late, int(passed)) if late <= MAX_LATE.total_seconds() else (None, int(passed) + 1)


class Alarm(Struct, eq=False, kw_only=True):
    """Something due by a schedule. `due` is its next occurrence, None while the clock is not trusted or none comes.

    `name` is what the log calls it. Where it `never_repeats`, the same occurrence fires once though the clock be set
    back; `last` is the latest that fired. `gap` is from when to when occurrences were passed over since then.
    """

    name: str
    schedule: Schedule
    on_due: Callable[[datetime], None]
    never_repeats: bool
    last: datetime | None
    due: datetime | None = None
    gap: tuple[datetime, datetime] | None = None

    def arm(self, now: datetime, *, settles: bool = False) -> None:
        """Find the next occurrence, as of this instant; none that fired already if the clock only `settles`."""
        since = now
        if self.last is not None and (self.never_repeats or settles) and self.last - now <= MAX_AHEAD:
            since = max(now, self.last)
        self.due = self.next_after(since)

    def next_after(self, instant: datetime) -> datetime | None:
        """The schedule's first occurrence after the instant; None where it has none, or raises, which is logged."""
        try:
            return self.schedule.next_after(instant)
        except Exception as error:  # one that cannot be computed must not stop the others
            sentence = "%s: its schedule cannot be computed: %s: %s"
            log.error(sentence, self.name, type(error).__name__, error, exc_info=error)
            return None

    def advance(self, now: datetime) -> datetime | None:
        """The occurrence that fires now, the latest of those that are not too late; then the next is due."""
        fires = None
        if self.due is not None and now - self.due > MAX_LATE:
            self.due = self.next_after(now - MAX_LATE - MICROSECOND)
        while self.due is not None and self.due <= now:
            fires, self.due = self.due, self.next_after(self.due)
        if fires is not None:
            self.last, self.gap = fires, None
        return fires

    def find_missed(self) -> datetime | None:
        """The first occurrence that was passed over since it fired last, if there is one."""
        due = None if self.gap is None else self.next_after(self.gap[0])
        return due if self.gap is not None and due is not None and due < self.gap[1] else None
