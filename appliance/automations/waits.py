"""Waits of device triggers. During a wait, a value must match or remain unchanged before the trigger fires."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from appliance.automations.active_triggers import ActiveTrigger, Fire, Wait
from appliance.automations.automation_states import AutomationStates, StoredWait, is_same_wait, stored_wait
from appliance.automations.environment import Environment
from appliance.automations.triggers.base import Match
from appliance.automations.triggers.device import DeviceTrigger, WaitOutcome
from appliance.automations.wait_writes import WaitWrites
from appliance.clock import from_millis, to_millis
from appliance.event_loop import wait_for_short_turn
from appliance.home.events import DeviceStateChanged
from appliance.home.model import Device
from appliance.shrinking import shrunk
from appliance.tasks import Tasks

log = logging.getLogger("automations")

MAX_WAITS = 50_000
"""Maximum number of running waits of all automations."""

MAX_ALARM_WAITS = 10_000
"""Number of waits for alarms beyond `MAX_WAITS`."""

_REMEDY = "its trigger does not fire; use fewer triggers with duration_secs or debounce_secs, or fewer devices"


class _EndedWait(Struct):
    """A wait that has ended, and its device at that time. If the trigger is no longer for the device, or the device
    was removed, `device` is None."""

    active: ActiveTrigger
    trigger: DeviceTrigger
    wait: Wait
    device: Device | None


class Waits:
    """Begins and ends waits, and calls `fire` at the end of a wait. Each device of a trigger has a separate wait."""

    def __init__(self, states: AutomationStates, environment: Environment, fire: Fire) -> None:
        self._environment = environment
        self._scheduler = environment.scheduler
        self._states = states
        self._writes = WaitWrites(states, environment)
        self._registry = environment.registry
        self._clock = environment.clock
        self._trust = environment.clock_watch.trust
        self._fire = fire
        self._tasks = Tasks()
        self._ended: dict[asyncio.Task[None], deque[_EndedWait]] = {}
        """The waits that fire after a task has removed them from storage. A task per wait would need much memory."""
        self._is_stopping = False
        self._by_device: dict[str, dict[ActiveTrigger, None]] = {}
        self._count = 0
        self._newest: StoredWait | None = None
        """The newest stored wait. The waits of all triggers that an event begins in a millisecond share it to save
        memory."""
        self._refused: set[tuple[str, bool]] = set()
        """The automations with a reported refused wait, and whether it was for an alarm. If half of the waits have
        ended, the next refusal is reported again."""
        environment.clock_watch.steps.listen(self._correct_times)

    def of(self, device_id: str) -> list[ActiveTrigger]:
        """Return the triggers that wait for the device."""
        return list(self._by_device.get(device_id, ()))

    def follow(self, active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged) -> None:
        """Begin, restart, or end the device's wait after an event. The waits of alarms and virtual devices are stored
        at once if they are not stored yet, all other waits with the next flush. Waits of alarms are stored with the
        device's state, because after a power cut, an older value would end the wait."""
        device_id, outcome = event.device.id, self._outcome_of(active, trigger, event)
        if outcome is None or outcome is WaitOutcome.CONTINUES:
            return
        self.end(active, device_id)
        is_alarm, is_virtual = event.device.is_alarm(trigger.attribute or ""), event.device.is_virtual
        if isinstance(outcome, Match):
            if self._is_full(is_alarm=is_alarm):
                self._report_full(active, is_alarm=is_alarm)
                return
            self._begin(active, trigger, device_id, self._begun_by(event, outcome))
        if is_alarm or (is_virtual and isinstance(outcome, Match)):
            # after a power cut, the stored value may already match, so only a stored wait can fire
            self._writes.write(active.id, device_id, with_state=is_alarm and not is_virtual)

    def preview(self, active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged) -> StoredWait | None:
        """Return the wait that `follow` would begin after this event, or None."""
        outcome = self._outcome_of(active, trigger, event)
        if not isinstance(outcome, Match) or self._is_full(is_alarm=event.device.is_alarm(trigger.attribute or "")):
            return None
        return self._begun_by(event, outcome)

    @staticmethod
    def _outcome_of(
        active: ActiveTrigger, trigger: DeviceTrigger, event: DeviceStateChanged
    ) -> Match | WaitOutcome | None:
        return trigger.follow(event) if event.device.id in active.waits else trigger.match(event)

    def end(self, active: ActiveTrigger, device_id: str) -> None:
        """End the device's wait, if any, and remove it from storage."""
        self._states.store_wait(active.id, device_id, active.key, None)
        self.drop(active, device_id)

    def drop(self, active: ActiveTrigger, device_id: str) -> None:
        """End the device's wait, if any, but keep it in storage."""
        if active.waits.pop(device_id) is not None:
            self._count -= 1
            if not active.waits and active.wait_call is not None:
                self._scheduler.cancel(active.wait_call)
                active.wait_call = None
            if self._count < MAX_WAITS // 2:
                self._refused.clear()
            del self._by_device[device_id][active]
            if not self._by_device[device_id]:
                del self._by_device[device_id]
                self._by_device = shrunk(self._by_device)

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
        stored = self._states.of(active.id).waits.get(device.id, {}).get(active.key)
        if stored is None or device.id in active.waits:
            return
        is_meant = trigger.devices.include(device, self._registry)
        outcome = trigger.resume(stored, device) if is_meant else WaitOutcome.ENDS
        if isinstance(outcome, Match):
            self._begin(active, trigger, device.id, self._stored(outcome, self._clock.now()))
        elif outcome is WaitOutcome.CONTINUES:
            elapsed = self._seconds_since(from_millis(stored["began_at"]))
            self._begin(active, trigger, device.id, self._redated(stored, elapsed), elapsed)
        else:
            self.end(active, device.id)

    def _seconds_since(self, began_at: datetime) -> float:
        now = self._clock.now()
        if began_at > now or not self._trust.is_trusted():
            return 0.0
        return (now - began_at).total_seconds()

    def _is_full(self, *, is_alarm: bool) -> bool:
        return self._count >= MAX_WAITS + (MAX_ALARM_WAITS if is_alarm else 0)

    def _report_full(self, active: ActiveTrigger, *, is_alarm: bool) -> None:
        """Log an error once per automation."""
        if (active.id, is_alarm) not in self._refused:
            self._refused.add((active.id, is_alarm))
            log.error("%s: a wait did not begin: %s waits are running; %s", active.label, self._count, _REMEDY)

    def _begin(
        self, active: ActiveTrigger, trigger: DeviceTrigger, device_id: str, stored: StoredWait, elapsed: float = 0.0
    ) -> None:
        due = self._clock.monotonic() + max(0.0, (trigger.wait_secs or 0.0) - elapsed)
        active.waits.add(Wait(due, device_id, stored))
        self._count += 1
        self._by_device.setdefault(device_id, {})[active] = None
        self._store(active, device_id, stored)
        self._call_at_first_end(active)

    def _call_at_first_end(self, active: ActiveTrigger) -> None:
        """Let the scheduler call at the end of the trigger's first wait. The end of a cancelled wait is not
        cancelled."""
        first, call = active.waits.find_first(), active.wait_call
        if first is None or (call is not None and call.due <= first.due):
            return
        if call is not None:
            self._scheduler.cancel(call)
        left = first.due - self._clock.monotonic()
        active.wait_call = self._scheduler.after(active.label, left, partial(self._on_first_end, active))

    def _store(self, active: ActiveTrigger, device_id: str, stored: StoredWait) -> None:
        self._states.store_wait(active.id, device_id, active.key, stored)

    def _begun_by(self, event: DeviceStateChanged, match: Match) -> StoredWait:
        """Return the wait that the event begins. For a virtual device, it begins at the time of the change, so that
        `follow` begins the same wait that `preview` has returned."""
        is_previewed = event.device.is_virtual and not event.doubtful
        began_at = event.device.updated_at if is_previewed else self._clock.now()
        return self._stored(match.dated(self._environment), began_at)

    def _stored(self, match: Match, began_at: datetime) -> StoredWait:
        stored = stored_wait(to_millis(began_at), match.event)
        if self._newest is None or not is_same_wait(stored, self._newest):
            self._newest = stored
        return self._newest

    def _redated(self, stored: StoredWait, elapsed: float) -> StoredWait:
        return {**stored, "began_at": to_millis(self._clock.now() - timedelta(seconds=elapsed))}

    def _correct_times(self, _: timedelta) -> None:
        """Correct the stored times of running waits after the clock was set."""
        for device_id, waiting in self._by_device.items():
            for active in waiting:
                wait, trigger = active.waits[device_id], active.trigger
                secs = trigger.wait_secs or 0.0 if isinstance(trigger, DeviceTrigger) else 0.0
                wait.stored = self._redated(wait.stored, secs - (wait.due - self._clock.monotonic()))
                self._store(active, device_id, wait.stored)

    def _on_first_end(self, active: ActiveTrigger, _: float) -> None:
        """End the trigger's first wait if it is due. Further due waits end in further calls."""
        active.wait_call = None
        first = active.waits.find_first()
        try:
            if (
                first is not None
                and first.due <= self._clock.monotonic()
                and isinstance(active.trigger, DeviceTrigger)
            ):
                self._on_wait_over(active, active.trigger, first)
        finally:
            self._call_at_first_end(active)

    def _on_wait_over(self, active: ActiveTrigger, trigger: DeviceTrigger, wait: Wait) -> None:
        device_id = wait.device_id
        self.drop(active, device_id)  # first, so that a wait that fails is not due again
        removing = self._writes.remove(active.id, device_id, active.key)
        device = self._registry.find_device(device_id)
        if device is not None and not trigger.devices.include(device, self._registry):
            device = None
        ended = _EndedWait(active, trigger, wait, device)
        if removing is None:
            self._fire_ended(ended)
        elif (together := self._ended.get(removing)) is not None:
            together.append(ended)
        else:
            self._ended[removing] = deque([ended])
            self._tasks.start(self._fire_removed(removing), "ends of waits")

    async def _fire_removed(self, removing: asyncio.Task[None]) -> None:
        """Wait until the waits are removed from storage, then fire them, so that none of them fires twice."""
        ended = self._ended[removing]
        try:
            await asyncio.shield(removing)
            while ended:
                await wait_for_short_turn()  # thousands of waits may end together
                if self._is_stopping:
                    break
                first = ended.popleft()
                try:
                    self._fire_ended(first)
                except Exception as error:  # a fault in one automation must not stop the others
                    log.error("%s: %s: %s", first.active.label, type(error).__name__, error, exc_info=error)
        finally:
            del self._ended[removing]
            if self._is_stopping:
                for each in ended:
                    self._store(each.active, each.wait.device_id, each.wait.stored)

    def _fire_ended(self, ended: _EndedWait) -> None:
        match = ended.trigger.resolve(ended.wait.stored, ended.device)
        if match is not None and not ended.active.is_stopped:
            self._fire(ended.active, match)
