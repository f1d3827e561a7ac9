"""Fires the time triggers of loaded automations when they are due."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from appliance.automations.active_triggers import ActiveTrigger, Fire
from appliance.automations.automation_states import AutomationStates
from appliance.automations.environment import Environment
from appliance.automations.schedule.scheduled_calls import DelayedCall
from appliance.automations.stored_hashes import schedule_key_of
from appliance.automations.triggers.base import Match, TimedTrigger
from appliance.automations.triggers.time import Interval


class TriggerSchedules:
    """Calls `fire` for each started trigger when it is due."""

    def __init__(self, states: AutomationStates, environment: Environment, fire: Fire) -> None:
        self._scheduler = environment.scheduler
        self._states = states
        self._clock = environment.clock
        self._trust = environment.clock_watch.trust
        self._fire = fire
        self._unresumed: set[ActiveTrigger] = set()
        self._deferred: dict[ActiveTrigger, Callable[[], None]] | None = None
        environment.clock_watch.when_trusted(self._resume)

    def start(self, active: ActiveTrigger, trigger: TimedTrigger) -> None:
        """Start the trigger's schedule or interval."""
        if isinstance(trigger, Interval):
            self._start_interval(active, trigger)
            return
        active.call = self._scheduler.at(
            active.label,
            trigger,
            partial(self._on_due, active, trigger),
            never_repeats=trigger.is_daily or active.resumes,
            last=self._last(active, trigger) if active.resumes else None,
        )

    def hold(self) -> None:
        """Delay due triggers until `release` is called. For each trigger, keep only the latest due time."""
        self._deferred = {}

    def release(self) -> None:
        """Fire the triggers that became due since `hold`, and end the delay."""
        deferred, self._deferred = self._deferred or {}, None
        for fire in deferred.values():
            fire()

    def stop(self, active: ActiveTrigger) -> None:
        """Cancel the trigger's schedule, even if `hold` has delayed it."""
        self._unresumed.discard(active)
        if self._deferred is not None:
            self._deferred.pop(active, None)
        if active.call is not None:
            self._scheduler.cancel(active.call)
            active.call = None

    def _start_interval(self, active: ActiveTrigger, trigger: Interval) -> None:
        """Begin an interval now. Once the clock is trusted, a resumable interval continues with its phase from before
        the restart."""
        first: float | None = None
        if active.resumes and self._trust.is_trusted():
            first = self._seconds_to_next(active, trigger)
        elif active.resumes:
            self._unresumed.add(active)
        on_due = partial(self._on_interval, active, trigger)
        active.call = self._scheduler.every(active.label, trigger.every_secs, on_due, first=first)

    def _seconds_to_next(self, active: ActiveTrigger, trigger: Interval) -> float:
        """Return the seconds until the interval's next time. If the hub was off at the previous due time, fire
        immediately once."""
        now, since = self._clock.now(), self._last(active, trigger)
        if since is None or since > now:
            self._store_fired(active, trigger, now)
            return trigger.every_secs
        following = trigger.next_after(now, since)
        last = following - timedelta(seconds=trigger.every_secs)
        if last > since:
            self._scheduler.after(active.label, 0, lambda _: self._on_due(active, trigger, last))
        return (following - now).total_seconds()

    def _resume(self) -> None:
        """Apply the stored phase, if any, to resumable intervals that have not yet fired since the hub's start."""
        unresumed, self._unresumed = self._unresumed, set()
        for active in unresumed:
            trigger = active.trigger
            if isinstance(trigger, Interval) and self._last(active, trigger) is not None:
                self.stop(active)
                self._start_interval(active, trigger)
            elif isinstance(trigger, Interval) and isinstance(active.call, DelayedCall):
                left = active.call.due - self._clock.monotonic()
                self._store_fired(active, trigger, self._clock.now() - timedelta(seconds=trigger.every_secs - left))

    def _on_interval(self, active: ActiveTrigger, trigger: Interval, late: float) -> None:
        self._unresumed.discard(active)
        self._on_due(active, trigger, self._clock.now() - timedelta(seconds=late))

    def _on_due(self, active: ActiveTrigger, trigger: TimedTrigger, due: datetime) -> None:
        if active.call is None:
            return
        if self._deferred is not None:
            self._deferred[active] = partial(self._on_due, active, trigger, due)
            return
        if active.resumes and self._trust.is_trusted():
            self._store_fired(active, trigger, due)
        self._fire(active, Match(event=trigger.event_at(due), subject=()))

    def _last(self, active: ActiveTrigger, trigger: TimedTrigger) -> datetime | None:
        return self._states.of(active.id).fired.get(schedule_key_of(trigger))

    def _store_fired(self, active: ActiveTrigger, trigger: TimedTrigger, at: datetime) -> None:
        self._states.store_fired(active.id, schedule_key_of(trigger), at)
