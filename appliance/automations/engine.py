"""The engine: from what happens, and what is due, to the automations that wait for it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from appliance.automations.alarms import Timer
from appliance.automations.baseline import Baseline
from appliance.automations.definition import Definition
from appliance.automations.homes import Home
from appliance.automations.runs import Runs
from appliance.automations.scheduler import Scheduler
from appliance.automations.schedules import Armed, Schedules
from appliance.automations.states import States
from appliance.automations.triggers import (
    AdapterLifecycle,
    DeviceTrigger,
    EventTrigger,
    Match,
    SystemErrorTrigger,
    TimedTrigger,
)
from appliance.clock import timestamp
from appliance.errors import Fault
from appliance.home import events
from appliance.lua.catalog import Asset, Catalog

log = logging.getLogger("automations")

EVENTS: Mapping[type[EventTrigger], type[events.Event]] = {
    AdapterLifecycle: events.AdapterStarted,
    SystemErrorTrigger: events.SystemError,
}
"""The events that triggers which name no device listen to."""


class Engine:
    """Arms a catalog's automations. What they wait for is looked up, so that an event costs only those it is for."""

    def __init__(
        self,
        catalog: Catalog[Definition],
        runs: Runs,
        states: States,
        scheduler: Scheduler,
        home: Home,
    ) -> None:
        self.catalog = catalog
        self._runs = runs
        self._states = states
        self._scheduler = scheduler
        self._schedules = Schedules(scheduler, states, home, self._fire)
        self._registry = home.registry
        self._bus = home.bus
        self._clock = home.clock
        self._listening = ExitStack()
        self._armed: dict[str, Armed] = {}
        self._by_device: Mapping[str, list[Armed]] = {}
        self._by_event: Mapping[type[events.Event], list[Armed]] = {}
        self._is_disarmed = False

    async def __aenter__(self) -> Engine:
        self._baseline = Baseline(self._registry)
        self._arm_all()
        self._listening.callback(self._bus.listen(self._hear))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.disarm()

    def disarm(self) -> None:
        """Let nothing set off an automation any more, whatever is reloaded; what runs goes on."""
        self._is_disarmed = True
        self._listening.close()
        for armed in self._armed.values():
            self._schedules.stop(armed)

    async def reload(self) -> tuple[int, list[Fault]]:
        """Put every file in force if all are sound. Where a trigger is as it was, its waits and its beat go on."""
        count, faults = await self.catalog.reload()
        if not faults and not self._is_disarmed:
            self._arm_all()
        return count, faults

    def next_fire(self, id_: str) -> datetime | None:
        """When the automation's schedule is due next, or its wait is over; None where nothing is set."""
        rings = self._armed[id_].rings if id_ in self._armed else None
        if isinstance(rings, Timer):
            return self._clock.now() + timedelta(seconds=rings.due - self._clock.monotonic())
        return None if rings is None else rings.due

    def figures(self) -> dict[str, Any]:
        """Of each automation whether it is armed and waits, when it is due next, and when it ran last."""
        return {
            id_: {
                "armed": self._states.of(id_).is_enabled,
                "waiting": armed.pending is not None,
                "next_fire": _shown(self.next_fire(id_)),
                "last_run": _shown(self._states.of(id_).last_run),
            }
            for id_, armed in sorted(self._armed.items())
        }

    def _arm_all(self) -> None:
        before, self._armed = self._armed, {}
        for asset in self.catalog.list_assets():
            id_ = asset.definition.id
            self._armed[id_] = self._take_over(before.pop(id_, None), asset)
        for gone in before.values():
            self._schedules.stop(gone)
        by_device: defaultdict[str, list[Armed]] = defaultdict(list)
        by_event: defaultdict[type[events.Event], list[Armed]] = defaultdict(list)
        for armed in self._armed.values():
            trigger = armed.definition.trigger
            if isinstance(trigger, DeviceTrigger):
                by_device[trigger.device_id].append(armed)
            elif isinstance(trigger, EventTrigger):
                by_event[EVENTS[type(trigger)]].append(armed)
        self._by_device, self._by_event = by_device, by_event

    def _take_over(self, old: Armed | None, asset: Asset[Definition]) -> Armed:
        """The automation armed for this text: as it was where its trigger is unchanged, else anew."""
        if old is not None and _waits_alike(old.definition, asset.definition):
            old.asset = asset
            return old
        if old is not None:
            self._schedules.stop(old)
        armed = Armed(asset)
        if isinstance(asset.definition.trigger, TimedTrigger):
            self._schedules.start(armed, asset.definition.trigger)
        return armed

    def _hear(self, event: events.Event) -> None:
        if self._baseline.is_set_by(event):
            return
        if isinstance(event, events.DeviceStateChanged):
            listeners = self._by_device.get(event.device.id, ())
        elif isinstance(event, events.DeviceRemoved):
            listeners = self._by_device.get(event.device_id, ())
        else:
            listeners = self._by_event.get(type(event), ())
        for armed in listeners:
            try:
                self._tell(armed, event)
            except Exception as error:  # a fault in one automation's way is not the home's
                log.error("%s: %s: %s", armed.label, type(error).__name__, error)
                log.debug("%s", armed.label, exc_info=error)

    def _tell(self, armed: Armed, event: events.Event) -> None:
        trigger = armed.definition.trigger
        if isinstance(trigger, DeviceTrigger) and trigger.wait_secs is not None:
            self._follow(armed, trigger, event)
        elif isinstance(trigger, EventTrigger) and (match := trigger.match(event)) is not None:
            self._fire(armed, match)

    def _follow(self, armed: Armed, trigger: DeviceTrigger, event: events.Event) -> None:
        """Begin, begin anew or end the wait, as the event says."""
        after = trigger.follow(event, armed.pending)
        if after is armed.pending:
            return
        self._schedules.stop(armed)
        if after is not None:
            armed.pending = after
            wait = trigger.wait_secs or 0.0
            armed.rings = self._scheduler.after(armed.label, wait, partial(self._settle, armed, trigger))

    def _settle(self, armed: Armed, trigger: DeviceTrigger, _: float) -> None:
        pending, armed.pending, armed.rings = armed.pending, None, None
        device = next(iter(self._registry.find_devices([trigger.device_id])), None)
        settled = None if pending is None else trigger.settle(pending, device)
        if settled is not None:
            self._fire(armed, settled)

    def _fire(self, armed: Armed, match: Match) -> None:
        self._runs.consider(armed.asset, match.event)


def _waits_alike(one: Definition, other: Definition) -> bool:
    """Whether what the one waits for is what the other would wait for."""
    same_resumption = one.policy.resumable_schedule == other.policy.resumable_schedule
    return one.trigger == other.trigger and same_resumption


def _shown(instant: datetime | None) -> str | None:
    return None if instant is None else timestamp(instant)
