"""Schedules: sets going what falls due for the automations, and takes up where a restart left those that resume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from appliance.automations.alarms import Alarm, Timer
from appliance.automations.definition import Definition
from appliance.automations.homes import Home
from appliance.automations.policy import fingerprint
from appliance.automations.scheduler import Scheduler
from appliance.automations.states import Fired, States
from appliance.automations.triggers import Interval, Match, TimedTrigger
from appliance.lua.catalog import Asset

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, eq=False)
class Armed:
    """An automation that waits for its trigger. `rings` is its schedule, or the wait that `pending` began."""

    asset: Asset[Definition]
    rings: Alarm | Timer | None = None
    pending: Match | None = None

    @property
    def definition(self) -> Definition:
        """What its file says."""
        return self.asset.definition

    @property
    def label(self) -> str:
        """What the log calls it."""
        return f"automation '{self.definition.id}'"


class Schedules:
    """Calls `fire` with each automation whose time has come. What never was started here is not known here."""

    def __init__(
        self, scheduler: Scheduler, states: States, home: Home, fire: Callable[[Armed, Match], None]
    ) -> None:
        self._scheduler = scheduler
        self._states = states
        self._clock = home.clock
        self._trust = home.trust
        self._fire = fire
        self._unresumed: set[Armed] = set()
        scheduler.when_trusted(self._resume)

    def start(self, armed: Armed, trigger: TimedTrigger) -> None:
        """Set the automation's schedule going, or its beat."""
        if isinstance(trigger, Interval):
            self._start_beat(armed, trigger)
            return
        resumes = armed.definition.policy.resumable_schedule
        armed.rings = self._scheduler.at(
            armed.label,
            trigger,
            partial(self._come, armed, trigger),
            keeps=trigger.is_daily or resumes,
            last=self._last(armed, trigger) if resumes else None,
        )

    def stop(self, armed: Armed) -> None:
        """Let nothing come of it any more."""
        self._unresumed.discard(armed)
        armed.pending = None
        if armed.rings is not None:
            self._scheduler.cancel(armed.rings)
            armed.rings = None

    def _start_beat(self, armed: Armed, trigger: Interval) -> None:
        """An interval begins now; one that resumes goes on with the beat of before, as soon as the time is known."""
        first: float | None = None
        if armed.definition.policy.resumable_schedule and self._trust.is_given():
            first = self._seconds_to_next(armed, trigger)
        elif armed.definition.policy.resumable_schedule:
            self._unresumed.add(armed)
        ring = partial(self._beat, armed, trigger)
        armed.rings = self._scheduler.every(armed.label, trigger.every_secs, ring, first=first)

    def _seconds_to_next(self, armed: Armed, trigger: Interval) -> float:
        """How long until the next of the beat; what fell due while there was no hub comes at once, once."""
        now, since = self._clock.now(), self._last(armed, trigger)
        if since is None or since > now:
            self._note(armed, trigger, now)
            return trigger.every_secs
        following = trigger.next_after(now, since)
        last = following - timedelta(seconds=trigger.every_secs)
        if last > since:
            self._scheduler.after(armed.label, 0, lambda _: self._come(armed, trigger, last))
        return (following - now).total_seconds()

    def _resume(self) -> None:
        """The time is known: beats that have not come yet go on where a restart left them, or began when armed."""
        unresumed, self._unresumed = self._unresumed, set()
        for armed in unresumed:
            trigger = armed.definition.trigger
            if isinstance(trigger, Interval) and self._last(armed, trigger) is not None:
                self.stop(armed)
                self._start_beat(armed, trigger)
            elif isinstance(trigger, Interval) and isinstance(armed.rings, Timer):
                left = armed.rings.due - self._clock.monotonic()
                self._note(armed, trigger, self._clock.now() - timedelta(seconds=trigger.every_secs - left))

    def _beat(self, armed: Armed, trigger: Interval, late: float) -> None:
        self._unresumed.discard(armed)
        self._come(armed, trigger, self._clock.now() - timedelta(seconds=late))

    def _come(self, armed: Armed, trigger: TimedTrigger, due: datetime) -> None:
        if armed.rings is None:
            return
        if armed.definition.policy.resumable_schedule and self._trust.is_given():
            self._note(armed, trigger, due)
        self._fire(armed, Match(event=trigger.event_at(due)))

    def _last(self, armed: Armed, trigger: TimedTrigger) -> datetime | None:
        return self._states.of(armed.definition.id).last_of(_name(trigger))

    def _note(self, armed: Armed, trigger: TimedTrigger, at: datetime) -> None:
        self._states.note_fired(armed.definition.id, Fired(schedule=_name(trigger), at=at))


def _name(trigger: TimedTrigger) -> str:
    """The same for the same schedule: what its event says beside the time."""
    return fingerprint(trigger.event_at(EPOCH))
