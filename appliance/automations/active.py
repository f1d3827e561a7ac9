"""Active triggers: the triggers of the loaded automations, and what fires when their schedules are due."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct, field

from appliance.automations.definition import AutomationDefinition, state_fields
from appliance.automations.environment import Environment
from appliance.automations.policy import fingerprint, plain
from appliance.automations.schedule import Alarm, Scheduler, TimerHandle
from appliance.automations.states import States
from appliance.automations.triggers.base import Match, TimedTrigger, Trigger
from appliance.automations.triggers.device import DeviceTrigger
from appliance.automations.triggers.time import Interval
from appliance.clock import EPOCH
from appliance.lua.catalog import Asset


def wait_key(trigger: DeviceTrigger) -> str:
    """Return a text that is the same for triggers with the same meaning, over reloads and restarts."""
    stated = state_fields(trigger)
    if trigger.devices.ids:
        stated["device_id"] = sorted(trigger.devices.ids)
    return hash_text(json.dumps(plain(stated), sort_keys=True))


def hash_text(text: str) -> str:
    """Return a short text that is the same for equal texts."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class Wait(Struct, kw_only=True):
    """A wait of one device: the match that it will fire, and the timer that ends it."""

    match: Match
    timer: TimerHandle


class ActiveTrigger(Struct, eq=False, kw_only=True):
    """One trigger of an automation. `due` is its schedule or interval; `waits` holds the waits of its devices, by
    id."""

    asset: Asset[AutomationDefinition]
    trigger: Trigger
    due: Alarm | TimerHandle | None = None
    waits: dict[str, Wait] = field(default_factory=dict)
    is_stopped: bool = False

    @property
    def id(self) -> str:
        """The automation's id."""
        return self.asset.definition.id

    @property
    def label(self) -> str:
        """The automation's name in the log."""
        return f"automation '{self.id}'"

    @property
    def key(self) -> str:
        """The key of the trigger's stored waits; empty if the trigger has no devices."""
        return wait_key(self.trigger) if isinstance(self.trigger, DeviceTrigger) else ""

    def is_for(self, trigger: Trigger, *, resumes: bool) -> bool:
        """Return whether this active trigger can continue as `trigger` after a reload."""
        if self.resumes != resumes:
            return False
        return self.trigger == trigger or (isinstance(trigger, DeviceTrigger) and self.key == wait_key(trigger))

    @property
    def resumes(self) -> bool:
        """Whether the trigger's schedule resumes after a restart."""
        return self.asset.definition.policy.resumable_schedule


Fire = Callable[[ActiveTrigger, Match], None]
"""Called with a trigger that matched, and its match."""


class Schedules:
    """Calls `fire` with each started trigger when it is due."""

    def __init__(self, scheduler: Scheduler, states: States, environment: Environment, fire: Fire) -> None:
        self._scheduler = scheduler
        self._states = states
        self._clock = environment.clock
        self._trust = environment.trust
        self._fire = fire
        self._unresumed: set[ActiveTrigger] = set()
        self._deferred: dict[ActiveTrigger, Callable[[], None]] | None = None
        scheduler.when_trusted(self._resume)

    def start(self, active: ActiveTrigger, trigger: TimedTrigger) -> None:
        """Start the trigger's schedule or interval."""
        if isinstance(trigger, Interval):
            self._start_interval(active, trigger)
            return
        active.due = self._scheduler.at(
            active.label,
            trigger,
            partial(self._on_due, active, trigger),
            never_repeats=trigger.is_daily or active.resumes,
            last=self._last(active, trigger) if active.resumes else None,
        )

    def hold(self) -> None:
        """Until `release`, keep the triggers that fall due, of each trigger only the latest time."""
        self._deferred = {}

    def release(self) -> None:
        """Fire the kept triggers; from now on, fire each trigger when it falls due."""
        deferred, self._deferred = self._deferred or {}, None
        for fire in deferred.values():
            fire()

    def stop(self, active: ActiveTrigger) -> None:
        """Cancel the trigger's schedule, and the fire that `hold` kept."""
        self._unresumed.discard(active)
        if self._deferred is not None:
            self._deferred.pop(active, None)
        if active.due is not None:
            self._scheduler.cancel(active.due)
            active.due = None

    def _start_interval(self, active: ActiveTrigger, trigger: Interval) -> None:
        """Begin an interval now; a resumable interval keeps its phase once the clock is trusted."""
        first: float | None = None
        if active.resumes and self._trust.is_trusted():
            first = self._seconds_to_next(active, trigger)
        elif active.resumes:
            self._unresumed.add(active)
        on_due = partial(self._on_interval, active, trigger)
        active.due = self._scheduler.every(active.label, trigger.every_secs, on_due, first=first)

    def _seconds_to_next(self, active: ActiveTrigger, trigger: Interval) -> float:
        """Return the seconds until the next time; if a time fell due while the hub was off, it fires once,
        immediately."""
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
        """Set the phase of intervals that have not fired yet: from before the restart, or from their start."""
        unresumed, self._unresumed = self._unresumed, set()
        for active in unresumed:
            trigger = active.trigger
            if isinstance(trigger, Interval) and self._last(active, trigger) is not None:
                self.stop(active)
                self._start_interval(active, trigger)
            elif isinstance(trigger, Interval) and isinstance(active.due, TimerHandle):
                left = active.due.due - self._clock.monotonic()
                self._store_fired(active, trigger, self._clock.now() - timedelta(seconds=trigger.every_secs - left))

    def _on_interval(self, active: ActiveTrigger, trigger: Interval, late: float) -> None:
        self._unresumed.discard(active)
        self._on_due(active, trigger, self._clock.now() - timedelta(seconds=late))

    def _on_due(self, active: ActiveTrigger, trigger: TimedTrigger, due: datetime) -> None:
        if active.due is None:
            return
        if self._deferred is not None:
            self._deferred[active] = partial(self._on_due, active, trigger, due)
            return
        if active.resumes and self._trust.is_trusted():
            self._store_fired(active, trigger, due)
        self._fire(active, Match(event=trigger.event_at(due)))

    def _last(self, active: ActiveTrigger, trigger: TimedTrigger) -> datetime | None:
        return self._states.of(active.id).fired.get(_name(trigger))

    def _store_fired(self, active: ActiveTrigger, trigger: TimedTrigger, at: datetime) -> None:
        self._states.note_fired(active.id, _name(trigger), at)


def _name(trigger: TimedTrigger) -> str:
    """Return a name that is the same for equal schedules: the event without its time."""
    return fingerprint(trigger.event_at(EPOCH))
