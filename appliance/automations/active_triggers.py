"""Active triggers: what is under way for the triggers of the automations in force.

`Schedules` fires what falls due, and takes up where a restart left those that resume. `Waits` holds the triggers of
devices that match only once a value has rested, or held, for some time; over restarts too.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from msgspec import Struct, field

from appliance.automations.alarms import Alarm, TimerHandle
from appliance.automations.definition import AutomationDefinition, state_fields
from appliance.automations.device_triggers import DeviceTrigger
from appliance.automations.environment import Environment
from appliance.automations.scheduler import Scheduler
from appliance.automations.states import States, fingerprint, plain, read_instant
from appliance.automations.time_triggers import Interval
from appliance.automations.triggers import Match, TimedTrigger, Trigger
from appliance.clock import EPOCH, to_millis
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device
from appliance.lua.lua_catalog import Asset
from appliance.tasks import Tasks


class Wait(Struct, kw_only=True):
    """A wait of one device: what it will fire, and the timer that ends it."""

    match: Match
    timer: TimerHandle


class ActiveTrigger(Struct, eq=False, kw_only=True):
    """One trigger of an automation. `due` is its schedule or interval, `waits` are those of its devices, by id."""

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
        """What the log calls it."""
        return f"automation '{self.id}'"

    @property
    def keys(self) -> tuple[str, str]:
        """The same for triggers of devices of the same meaning, over restarts: as of now, and in version 0.1."""
        if not isinstance(self.trigger, DeviceTrigger):
            return "", ""
        stated = state_fields(self.trigger)
        if self.trigger.devices.ids:
            stated["device_id"] = sorted(self.trigger.devices.ids)
        texts = json.dumps(plain(stated), sort_keys=True), self.trigger.old_repr
        new, old = (hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest() for text in texts)
        return new, old

    @property
    def key(self) -> str:
        """What the waits of this trigger are kept under."""
        return self.keys[0]

    def is_for(self, trigger: Trigger, *, resumes: bool) -> bool:
        """Whether this is for a trigger that says the same."""
        other = ActiveTrigger(asset=self.asset, trigger=trigger)
        return self.resumes == resumes and (self.trigger == trigger or (self.key != "" and self.key == other.key))

    @property
    def resumes(self) -> bool:
        """Whether its schedule goes on after a restart where it was."""
        return self.asset.definition.policy.resumable_schedule


Fire = Callable[[ActiveTrigger, Match], None]
"""What is done with a trigger that matched, and its event."""


class Schedules:
    """Calls `fire` with each trigger whose time has come. What never was started here is not known here."""

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
        """Set the trigger's schedule or interval going."""
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
        """Keep what falls due, of each trigger the latest, until `release`."""
        self._deferred = {}

    def release(self) -> None:
        """Fire what was kept, and from now on what falls due."""
        deferred, self._deferred = self._deferred or {}, None
        for fire in deferred.values():
            fire()

    def stop(self, active: ActiveTrigger) -> None:
        """Let nothing come of it any more."""
        self._unresumed.discard(active)
        if self._deferred is not None:
            self._deferred.pop(active, None)
        if active.due is not None:
            self._scheduler.cancel(active.due)
            active.due = None

    def _start_interval(self, active: ActiveTrigger, trigger: Interval) -> None:
        """An interval begins now; one that resumes goes on as before, as soon as the time is known."""
        first: float | None = None
        if active.resumes and self._trust.is_trusted():
            first = self._seconds_to_next(active, trigger)
        elif active.resumes:
            self._unresumed.add(active)
        on_due = partial(self._on_interval, active, trigger)
        active.due = self._scheduler.every(active.label, trigger.every_secs, on_due, first=first)

    def _seconds_to_next(self, active: ActiveTrigger, trigger: Interval) -> float:
        """How long until the next time; what fell due while there was no hub comes at once, once."""
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
        """The time is known: intervals that have not come yet go on where a restart left them, or as they began."""
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


class Waits:
    """Begins and ends the waits of triggers, and calls `fire` when one is over. Each device has its own."""

    def __init__(self, scheduler: Scheduler, states: States, environment: Environment, fire: Fire) -> None:
        self._environment = environment
        self._scheduler = scheduler
        self._states = states
        self._registry = environment.registry
        self._clock = environment.clock
        self._trust = environment.trust
        self._fire = fire
        self._tasks = Tasks()
        self._is_disarmed = False
        self._by_device: defaultdict[str, dict[ActiveTrigger, None]] = defaultdict(dict)
        scheduler.on_step(self._date_anew)

    def of(self, device_id: str) -> list[ActiveTrigger]:
        """The triggers that wait for the device."""
        return list(self._by_device.get(device_id, ()))

    def follow(self, active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged) -> None:
        """Begin, begin anew or end the wait of the event's device, as the event says."""
        device_id = event.device.id
        wait = active.waits.get(device_id)
        before = None if wait is None else wait.match
        after = trigger.follow(event, before)
        if after is before:
            return
        self.end(active, device_id)
        if after is not None:
            self._begin(active, trigger, device_id, after.dated(self._environment), 0.0)

    def end(self, active: ActiveTrigger, device_id: str) -> None:
        """Let nothing come of the wait, if there is one; after a restart neither."""
        self._states.note_wait(active.id, f"{active.key} {device_id}", None)
        self._drop(active, device_id)

    def disarm(self) -> None:
        """Let no wait that is over fire any longer; it does so after the next start."""
        self._is_disarmed = True

    async def aclose(self) -> None:
        """End the removals that are under way."""
        await self._tasks.__aexit__()

    def stop(self, active: ActiveTrigger) -> None:
        """Let nothing come of any wait of the trigger in this run of the hub."""
        active.is_stopped = True
        for device_id in list(active.waits):
            self._drop(active, device_id)

    def resume(self, active: ActiveTrigger, trigger: DeviceTrigger, device: Device) -> None:
        """Go on with the wait that was under way at the last stop, if the device still shows what it waited for.

        It counts from where it began; while the clock is not trusted, from now.
        """
        stored = self._states.of(active.id).waits.get(f"{active.key} {device.id}")
        if stored is None or device.id in active.waits:
            return
        event, began_at = stored.get("event"), read_instant(stored.get("began_at"))
        kept = Match(event=event) if isinstance(event, dict) and began_at is not None else None
        is_meant = trigger.devices.include(device, self._registry)
        match = None if kept is None or not is_meant else trigger.resume(kept, device)
        if match is None:
            self.end(active, device.id)
        else:
            elapsed = self._seconds_since(began_at) if match is kept else 0.0
            self._begin(active, trigger, device.id, match, elapsed)

    def _seconds_since(self, began_at: datetime | None) -> float:
        now = self._clock.now()
        if began_at is None or began_at > now or not self._trust.is_trusted():
            return 0.0
        return (now - began_at).total_seconds()

    def _begin(
        self, active: ActiveTrigger, trigger: DeviceTrigger, device_id: str, match: Match, elapsed: float
    ) -> None:
        left = max(0.0, (trigger.wait_secs or 0.0) - elapsed)
        timer = self._scheduler.after(active.label, left, partial(self._on_wait_over, active, trigger, device_id))
        active.waits[device_id] = Wait(match=match, timer=timer)
        self._by_device[device_id][active] = None
        self._store(active, device_id, match, elapsed)

    def _store(self, active: ActiveTrigger, device_id: str, match: Match, elapsed: float) -> None:
        began_at = self._clock.now() - timedelta(seconds=elapsed)
        stored: dict[str, Any] = {"began_at": to_millis(began_at), "event": dict(match.event)}
        self._states.note_wait(active.id, f"{active.key} {device_id}", stored)

    def _date_anew(self) -> None:
        """The clock was set: what is under way began at another time by it."""
        for device_id, waiting in self._by_device.items():
            for active in waiting:
                wait, trigger = active.waits[device_id], active.trigger
                secs = trigger.wait_secs if isinstance(trigger, DeviceTrigger) else None
                left = wait.timer.due - self._clock.monotonic()
                self._store(active, device_id, wait.match, (secs or 0.0) - left)

    def _on_wait_over(self, active: ActiveTrigger, trigger: DeviceTrigger, device_id: str, _: float) -> None:
        wait = active.waits.get(device_id)
        if wait is None:
            return
        removing = self._states.end_wait(active.id, f"{active.key} {device_id}")
        self._drop(active, device_id)
        device = next(iter(self._registry.find_devices([device_id])), None)
        is_meant = device is None or trigger.devices.include(device, self._registry)
        match = trigger.resolve(wait.match, device) if is_meant else None
        if removing is not None:
            self._tasks.start(self._fire_removed(removing, active, device_id, wait, match), "end of a wait")
        elif match is not None:
            self._fire(active, match)

    async def _fire_removed(
        self, removing: Awaitable[None], active: ActiveTrigger, device_id: str, wait: Wait, match: Match | None
    ) -> None:
        """Fire what is over once it is off the card, so that it never fires twice."""
        try:
            await removing
        finally:
            if self._is_disarmed:
                secs = active.trigger.wait_secs if isinstance(active.trigger, DeviceTrigger) else None
                self._store(active, device_id, wait.match, secs or 0.0)
        if match is not None and not active.is_stopped:
            self._fire(active, match)

    def _drop(self, active: ActiveTrigger, device_id: str) -> None:
        wait = active.waits.pop(device_id, None)
        if wait is not None:
            self._scheduler.cancel(wait.timer)
            del self._by_device[device_id][active]
            if not self._by_device[device_id]:
                del self._by_device[device_id]


def _name(trigger: TimedTrigger) -> str:
    """The same for the same schedule: what its event says beside the time."""
    return fingerprint(trigger.event_at(EPOCH))
