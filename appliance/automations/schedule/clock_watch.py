"""Watches the machine's clock: whether it can be trusted, and whether it was set."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from appliance.automations.schedule.scheduled_calls import MAX_LATE
from appliance.clock import Clock, ClockSteps, timestamp
from appliance.store.clock_trust import ClockTrust
from appliance.version import MADE_AT

log = logging.getLogger("automations")

UNTRUSTED = "the clock is not trusted yet"
"""The reason why triggers and conditions wait before the clock is trusted."""

MAX_STEPS_KEPT = 10


class ClockChange(NamedTuple):
    """The changes of the clock between two checks.

    - `earliest`: the earliest time that the clock may have shown since the last check.
    - `step`: the time by which the clock was set.
    - `became_trusted`: whether the clock became trusted.
    """

    earliest: datetime
    step: timedelta
    became_trusted: bool


class ClockWatch:
    """The trust in the clock, the changes of the clock, and the time between the previous run and this run.

    - `trust`: decides whether the clock can be trusted.
    - `steps`: reports changes of the clock.
    - `was_trusted`: whether the clock was trusted at the last check.
    - `began`: the start of the hub in monotonic seconds; None means now.
    - `stopped_at`: the time of the last clean stop, or None if it is unknown.
    - `left_at`: the latest known time in the previous run, or None if it is unknown.
    """

    def __init__(
        self,
        clock: Clock,
        trust: ClockTrust,
        steps: ClockSteps | None = None,
        *,
        began: float | None = None,
        stopped_at: datetime | None = None,
    ) -> None:
        self.clock = clock
        self.trust = trust
        self.steps = steps or ClockSteps(clock)
        self._began = clock.monotonic() if began is None else began
        self._stopped_at = stopped_at
        # if the time equals MADE_AT, no later time is stored
        self.left_at = stopped_at or (trust.newest if trust.newest > MADE_AT else None)
        self.was_trusted = trust.is_trusted()
        self._on_trusted: list[Callable[[], None]] = []
        self._checked_at = clock.monotonic()
        self._step = timedelta()
        self._steps_kept: list[dict[str, Any]] = []
        self.steps.listen(self._note_step)

    def report_start(self) -> None:
        """Log the reason why the clock is not trusted, and a stored time that is ignored."""
        if (distrust_reason := self.trust.distrust_reason()) is not None:
            log.warning("%s; schedules wait until the clock is trusted", distrust_reason)
        self._report_forgotten()

    def when_trusted(self, do: Callable[[], None]) -> None:
        """Call `do` when the clock becomes trusted. Never call `do` if the clock is already trusted."""
        if not self.was_trusted:
            self._on_trusted.append(do)

    def check(self) -> ClockChange:
        """Return the changes since the last check. If the clock became trusted, call the functions that wait."""
        self.steps.poll()
        step, self._step = self._step, timedelta()
        earliest = self.clock.now() - timedelta(seconds=self.clock.monotonic() - self._checked_at)
        self._checked_at = self.clock.monotonic()
        became_trusted = self.trust.is_trusted() and not self.was_trusted
        if became_trusted:
            self._begin_to_trust()
        return ClockChange(earliest, step, became_trusted)

    def skip_check(self) -> None:
        """Treat the clock as checked, because nothing was scheduled until now."""
        self._checked_at = self.clock.monotonic()

    def find_start(self, now: datetime) -> datetime:
        """Return the hub's start or the time of the previous stop, whichever is earlier. If this time is too long
        ago, return the current time."""
        if self._stopped_at is not None and timedelta() <= now - self._stopped_at <= MAX_LATE:
            return self._stopped_at
        since_start = timedelta(seconds=self.clock.monotonic() - self._began)
        return now - since_start if since_start <= MAX_LATE else now

    def secs_since_stop(self) -> float:
        """Return the seconds since the previous hub stopped. If that time is unknown, return the seconds since this
        hub started."""
        now = self.clock.now()
        if self.left_at is None or self.left_at > now or not self.trust.is_trusted():
            return round(self.clock.monotonic() - self._began, 3)
        return round((now - self.left_at).total_seconds(), 3)

    def figures(self) -> dict[str, Any]:
        """Return the clock's state for the diagnostics."""
        forgotten = self.trust.forgotten
        return {
            "now": timestamp(self.clock.now()),
            "synchronised": self.clock.is_synchronised(),
            "trusted": self.trust.is_trusted(),
            "trusted_after": timestamp(self.trust.newest),
            "waits_because": self.trust.distrust_reason(),
            "forgotten": None if forgotten is None else timestamp(forgotten),
            "steps": list(self._steps_kept),
        }

    def _begin_to_trust(self) -> None:
        log.info("the clock is trusted now: schedules begin")
        self._report_forgotten()
        self.was_trusted = True
        waiting, self._on_trusted = self._on_trusted, []
        for do in waiting:
            do_safely(do)

    def _note_step(self, step: timedelta) -> None:
        self._step += step
        log.warning("the clock was changed by %+.1f s", step.total_seconds())
        changed = {"at": timestamp(self.clock.now()), "seconds": step.total_seconds()}
        self._steps_kept = [*self._steps_kept, changed][-MAX_STEPS_KEPT:]

    def _report_forgotten(self) -> None:
        if self.trust.forgotten is not None:
            stored = timestamp(self.trust.forgotten)
            log.warning("the stored time %s is in the future, because the clock was wrong; it is ignored", stored)


def do_safely(do: Callable[[], object]) -> None:
    """Call the function of a schedule. Log a failure, because it must not stop other schedules."""
    try:
        do()
    except Exception as error:
        log.error("a schedule failed: %s: %s", type(error).__name__, error, exc_info=error)
