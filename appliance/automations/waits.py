"""Waits of device triggers. During a wait, a value must match or remain unchanged before the trigger fires."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Mapping
from datetime import datetime, timedelta
from functools import partial

from appliance.automations.active_triggers import ActiveTrigger, Fire, Wait
from appliance.automations.automation_states import AutomationStates, StoredWait
from appliance.automations.environment import Environment
from appliance.automations.triggers.base import Match
from appliance.automations.triggers.device import DeviceTrigger, WaitOutcome
from appliance.automations.wait_writes import WaitWrites
from appliance.clock import from_millis, to_millis
from appliance.event_loop import wait_for_short_turn
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device
from appliance.tasks import Tasks


class Waits:
    """Begins and ends waits, and calls `fire` at the end of a wait. Each device of a trigger has a separate wait."""

    def __init__(self, states: AutomationStates, environment: Environment, fire: Fire) -> None:
        self._environment = environment
        self._scheduler = environment.scheduler
        self._states = states
        self._writes = WaitWrites(states, environment.storage)
        self._registry = environment.registry
        self._clock = environment.clock
        self._trust = environment.clock_watch.trust
        self._fire = fire
        self._tasks = Tasks()
        self._is_stopping = False
        self._by_device: defaultdict[str, dict[ActiveTrigger, None]] = defaultdict(dict)
        environment.clock_watch.steps.listen(self._correct_times)

    def of(self, device_id: str) -> list[ActiveTrigger]:
        """Return the triggers that wait for the device."""
        return list(self._by_device.get(device_id, ()))

    def follow(self, active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged) -> None:
        """Begin, restart, or end the device's wait after an event. The waits of alarms and virtual devices are stored
        at once, all other waits with the next flush."""
        device_id, outcome = event.device.id, self._outcome_of(active, trigger, event)
        if outcome is None or outcome is WaitOutcome.CONTINUES:
            return
        self.end(active, device_id)
        if isinstance(outcome, Match):
            self._begin(active, trigger, device_id, outcome.dated(self._environment), 0.0)
            if event.device.is_virtual or event.device.is_alarm(trigger.attribute or ""):
                # after a power cut, the stored value may already match, so only a stored wait can fire
                self._writes.begin(active.id)

    def preview(
        self, active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged
    ) -> Mapping[str, StoredWait]:
        """Return the wait that `follow` would begin after this event, by its key in the automation's state."""
        outcome = self._outcome_of(active, trigger, event)
        if not isinstance(outcome, Match):
            return {}
        return {active.wait_key(event.device.id): self._stored(outcome.dated(self._environment), 0.0)}

    @staticmethod
    def _outcome_of(
        active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged
    ) -> Match | WaitOutcome | None:
        return trigger.follow(event) if event.device.id in active.waits else trigger.match(event)

    def end(self, active: ActiveTrigger, device_id: str) -> None:
        """End the device's wait, if any, and remove it from storage."""
        self._states.store_wait(active.id, active.wait_key(device_id), None)
        self.drop(active, device_id)

    def drop(self, active: ActiveTrigger, device_id: str) -> None:
        """End the device's wait, if any, but keep it in storage."""
        wait = active.waits.pop(device_id, None)
        if wait is not None:
            self._scheduler.cancel(wait.call)
            del self._by_device[device_id][active]
            if not self._by_device[device_id]:
                del self._by_device[device_id]

    def disarm(self) -> None:
        """Stop firing waits. If a wait ends after this call, it fires after the next start."""
        self._is_stopping = True

    async def aclose(self) -> None:
        await self._tasks.__aexit__()
        await self._writes.aclose()

    def stop(self, active: ActiveTrigger) -> None:
        """Drop the trigger's waits in memory. Stored waits continue after a restart."""
        for device_id in list(active.waits):
            self.drop(active, device_id)

    def resume(self, active: ActiveTrigger, trigger: DeviceTrigger, device: Device) -> None:
        """Continue the wait from before the last stop if the device still matches. If the clock is trusted, the
        wait continues from its original start; otherwise, it begins now."""
        stored = self._states.of(active.id).waits.get(active.wait_key(device.id))
        if stored is None or device.id in active.waits:
            return
        pending = trigger.match_of(device.id, stored["event"])
        is_meant = trigger.devices.include(device, self._registry)
        outcome = trigger.resume(pending, device) if is_meant else WaitOutcome.ENDS
        if isinstance(outcome, Match):
            self._begin(active, trigger, device.id, outcome, 0.0)
        elif outcome is WaitOutcome.CONTINUES:
            self._begin(active, trigger, device.id, pending, self._seconds_since(from_millis(stored["began_at"])))
        else:
            self.end(active, device.id)

    def _seconds_since(self, began_at: datetime) -> float:
        now = self._clock.now()
        if began_at > now or not self._trust.is_trusted():
            return 0.0
        return (now - began_at).total_seconds()

    def _begin(
        self, active: ActiveTrigger, trigger: DeviceTrigger, device_id: str, match: Match, elapsed: float
    ) -> None:
        left = max(0.0, (trigger.wait_secs or 0.0) - elapsed)
        call = self._scheduler.after(active.label, left, partial(self._on_wait_over, active, device_id))
        active.waits[device_id] = Wait(trigger=trigger, match=match, call=call)
        self._by_device[device_id][active] = None
        self._store(active, device_id, match, elapsed)

    def _store(self, active: ActiveTrigger, device_id: str, match: Match, elapsed: float) -> None:
        self._states.store_wait(active.id, active.wait_key(device_id), self._stored(match, elapsed))

    def _stored(self, match: Match, elapsed: float) -> StoredWait:
        began_at = self._clock.now() - timedelta(seconds=elapsed)
        return StoredWait(began_at=to_millis(began_at), event=dict(match.event))

    def _correct_times(self, _: timedelta) -> None:
        """Correct the stored times of running waits after the clock was set."""
        for device_id, waiting in self._by_device.items():
            for active in waiting:
                wait = active.waits[device_id]
                left = wait.call.due - self._clock.monotonic()
                self._store(active, device_id, wait.match, (wait.trigger.wait_secs or 0.0) - left)

    def _on_wait_over(self, active: ActiveTrigger, device_id: str, _: float) -> None:
        wait = active.waits.get(device_id)
        if wait is None:
            return
        removing = self._writes.remove(active.id, active.wait_key(device_id))
        self.drop(active, device_id)
        device = self._registry.find_device(device_id)
        is_meant = device is None or wait.trigger.devices.include(device, self._registry)
        match = wait.trigger.resolve(wait.match, device) if is_meant else None
        if removing is not None:
            self._tasks.start(self._fire_removed(removing, active, device_id, wait, match), "end of a wait")
        elif match is not None:
            self._fire(active, match)

    async def _fire_removed(
        self, removing: Awaitable[None], active: ActiveTrigger, device_id: str, wait: Wait, match: Match | None
    ) -> None:
        """Remove the wait from storage, then fire the match, so that the match never fires twice."""
        try:
            await removing
            await wait_for_short_turn()  # thousands of waits may end together
        finally:
            if self._is_stopping:
                self._store(active, device_id, wait.match, wait.trigger.wait_secs or 0.0)
        if match is not None and not active.is_stopped:
            self._fire(active, match)
