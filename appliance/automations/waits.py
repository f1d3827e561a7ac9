"""Waits: triggers of devices that match only once a value has rested, or held, for some time; over restarts too."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from appliance.automations.active import ActiveTrigger, Fire, Wait
from appliance.automations.device_triggers import DeviceTrigger
from appliance.automations.environment import Environment
from appliance.automations.policy import read_instant
from appliance.automations.scheduler import Scheduler
from appliance.automations.states import States
from appliance.automations.triggers import Match
from appliance.clock import to_millis
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device


class Waits:
    """Begins and ends the waits of triggers, and calls `fire` when one is over. Each device has its own."""

    def __init__(self, scheduler: Scheduler, states: States, environment: Environment, fire: Fire) -> None:
        self._scheduler = scheduler
        self._states = states
        self._registry = environment.registry
        self._clock = environment.clock
        self._trust = environment.trust
        self._fire = fire
        self._by_device: defaultdict[str, dict[ActiveTrigger, None]] = defaultdict(dict)

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
            self._begin(active, trigger, device_id, after, 0.0)

    def end(self, active: ActiveTrigger, device_id: str) -> None:
        """Let nothing come of the wait, if there is one; after a restart neither."""
        self._states.note_wait(active.id, f"{active.key} {device_id}", None)
        self._drop(active, device_id)

    def stop(self, active: ActiveTrigger) -> None:
        """Let nothing come of any wait of the trigger in this run of the hub."""
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
        match = Match(event=event) if isinstance(event, dict) and began_at is not None else None
        if match is None or not trigger.devices.include(device, self._registry) or not trigger.resumes(match, device):
            self.end(active, device.id)
        else:
            self._begin(active, trigger, device.id, match, self._seconds_since(began_at))

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
        began_at = self._clock.now() - timedelta(seconds=elapsed)
        stored: dict[str, Any] = {"began_at": to_millis(began_at), "event": dict(match.event)}
        self._states.note_wait(active.id, f"{active.key} {device_id}", stored)

    def _on_wait_over(self, active: ActiveTrigger, trigger: DeviceTrigger, device_id: str, _: float) -> None:
        wait = active.waits.get(device_id)
        if wait is None:
            return
        gone = self._states.end_wait(active.id, f"{active.key} {device_id}")
        self._drop(active, device_id)
        device = next(iter(self._registry.find_devices([device_id])), None)
        if device is not None and not trigger.devices.include(device, self._registry):
            return
        match = trigger.resolve(wait.match, device)
        if match is not None:
            self._fire(active, Match(event=match.event, after=gone))

    def _drop(self, active: ActiveTrigger, device_id: str) -> None:
        wait = active.waits.pop(device_id, None)
        if wait is not None:
            self._scheduler.cancel(wait.timer)
            del self._by_device[device_id][active]
            if not self._by_device[device_id]:
                del self._by_device[device_id]
