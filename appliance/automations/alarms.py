"""What is due: timers after spans of real time, alarms at instants of the calendar. The scheduler fires them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from appliance.clock import Clock

log = logging.getLogger("automations")

MAX_LATE = timedelta(minutes=5)
"""A missed occurrence that is at most this old fires once, at once; older ones are only counted."""

MAX_COUNTED = 1000
"""How many missed occurrences are counted one by one."""

MAX_AHEAD = timedelta(days=1)
"""An occurrence that fired by the stored state and lies further ahead than this fired by a wrong clock."""

MICROSECOND = timedelta(microseconds=1)


class Schedule(Protocol):
    """What is due at instants of the calendar."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first occurrence later than the instant; None if there is none."""


class TimerHandle:
    """Something due after a span of real time, once, or again and again if `every` is given (seconds)."""

    def __init__(self, name: str, due: float, on_due: Callable[[float], None], every: float | None = None) -> None:
        self.name = name
        self.due = due
        self.on_due = on_due
        self.every = every
        self.is_cancelled = False

    def advance(self, now: float) -> tuple[float | None, int]:
        """The seconds by which it fires late now, None if it does not fire, and how many times were missed."""
        if self.every is None:
            return now - self.due, 0
        passed, late = divmod(now - self.due, self.every)
        self.due = now - late + self.every
        return (late, int(passed)) if late <= MAX_LATE.total_seconds() else (None, int(passed) + 1)


class Alarm:
    """Something due by a schedule. `due` is its next occurrence, None while the clock is not trusted or none comes.

    `name` is what the log calls it. Where it `never_repeats`, the same occurrence fires once though the clock be set
    back; `last` is the latest that fired.
    """

    def __init__(
        self,
        name: str,
        schedule: Schedule,
        on_due: Callable[[datetime], None],
        *,
        never_repeats: bool,
        last: datetime | None,
    ) -> None:
        self.name = name
        self.schedule = schedule
        self.on_due = on_due
        self.never_repeats = never_repeats
        self.last = last
        self.due: datetime | None = None

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

    def advance(self, now: datetime) -> tuple[datetime | None, Passed]:
        """The occurrence that fires now, if any, and those before it that were missed; then the next is due."""
        fires, since, count = None, None, 0
        if self.due is not None and now - self.due > MAX_LATE:
            since, self.due = self.due, self.next_after(now - MAX_LATE - MICROSECOND)
        while self.due is not None and self.due <= now:
            if fires is not None:
                count += 1
            fires, self.due = self.due, self.next_after(self.due)
        if fires is not None:
            self.last = fires
        return fires, Passed(since=since, until=now - MAX_LATE, count=count)


class Passed(Struct, frozen=True, kw_only=True):
    """Missed occurrences: those from `since` to before `until`, if any, and `count` behind them."""

    since: datetime | None
    until: datetime
    count: int = 0

    async def count_all(self, alarm: Alarm, clock: Clock) -> int:
        """How many those are, at most `MAX_COUNTED`; computed one by one while the loop does other things."""
        found, due = self.count, self.since
        while due is not None and due < self.until and found < MAX_COUNTED:
            found, due = found + 1, alarm.next_after(due)
            await clock.sleep(0)
        return found
