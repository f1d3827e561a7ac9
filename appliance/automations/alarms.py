"""What is due: timers after spans of real time, alarms at instants of the calendar. The scheduler rings them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from appliance.clock import Clock

log = logging.getLogger("automations")

MAX_LATE = timedelta(minutes=5)
"""An occurrence that was passed over by no more than this is made up for, once; older ones are only counted."""

MAX_COUNTED = 1000
"""How many occurrences that were passed over are counted one by one."""

MAX_AHEAD = timedelta(days=1)
"""An occurrence further ahead than this that is said to have fired did so by a clock that was wrong."""

INSTANT = timedelta(microseconds=1)


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
        """How late it rings now, in seconds, None if not at all, and how often it should have rung and does not."""
        if self.every is None:
            return now - self.due, 0
        passed, late = divmod(now - self.due, self.every)
        self.due = now - late + self.every
        return (late, int(passed)) if late <= MAX_LATE.total_seconds() else (None, int(passed) + 1)


class Alarm:
    """Something due by a schedule. `due` is its next occurrence, None while the clock is not believed or none comes.

    `name` is what the log calls it. The same occurrence of one that `never_repeats` rings once, though the clock
    be set back; `last` is the latest that rang.
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
        """Find the next occurrence, as of this instant; none that rang already if the clock only `settles`."""
        since = now
        if self.last is not None and (self.never_repeats or settles) and self.last - now <= MAX_AHEAD:
            since = max(now, self.last)
        self.due = self.next_after(since)

    def next_after(self, instant: datetime) -> datetime | None:
        """The schedule's first occurrence later than the instant; None where it has none, or fails to tell."""
        try:
            return self.schedule.next_after(instant)
        except Exception as error:  # one that cannot be computed must not silence every other
            sentence = "%s: its schedule cannot be computed: %s: %s"
            log.error(sentence, self.name, type(error).__name__, error, exc_info=error)
            return None

    def advance(self, now: datetime) -> tuple[datetime | None, Passed]:
        """What is to ring now, if anything, and which occurrences before it never will; then the next is due."""
        rings, since, count = None, None, 0
        if self.due is not None and now - self.due > MAX_LATE:
            since, self.due = self.due, self.next_after(now - MAX_LATE - INSTANT)
        while self.due is not None and self.due <= now:
            if rings is not None:
                count += 1
            rings, self.due = self.due, self.next_after(self.due)
        if rings is not None:
            self.last = rings
        return rings, Passed(since=since, until=now - MAX_LATE, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Occurrences that never ring: those from `since` to before `until`, if any, and `count` behind them."""

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
