"""The parts of the hub that automations need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from appliance.automations.brake import Brake
from appliance.automations.change_times import ChangeTimes
from appliance.automations.schedule.clock_watch import ClockWatch
from appliance.automations.schedule.scheduler import Scheduler
from appliance.automations.timers import Timers
from appliance.automations.variables import Variables
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.settings import AutomationRunner
from appliance.store.storage import Storage

DEFAULT_LIMITS = AutomationRunner()

Record = Callable[[Iterable[Device], Mapping[str, Any]], Awaitable[None]]
"""Stores states of devices and further values together. Raises `StoreFailed` on failure."""


class Environment:
    """The parts of the hub that automations need. Creates the brake, the change times, the variables, the
    scheduler, and the timers. `Automations` opens and closes these parts, because the executor must end after the
    scheduler, but before the timers and variables. `limits` contains the brake's limits. Without `record`, no device
    state is stored."""

    def __init__(
        self,
        registry: Registry,
        bus: Bus,
        clock_watch: ClockWatch,
        storage: Storage,
        *,
        limits: AutomationRunner = DEFAULT_LIMITS,
        record: Record | None = None,
    ) -> None:
        self.registry = registry
        self.bus = bus
        self.clock = clock = clock_watch.clock
        self.clock_watch = clock_watch
        self.storage = storage
        self.record: Record = record or (lambda _, more: storage.put_many(more))
        self.brake = Brake(bus, clock, max_runs=limits.brake_runs, secs=limits.brake_secs)
        self.change_times = ChangeTimes(storage, registry, bus, clock_watch.steps)
        self.variables = Variables(storage, bus, self.brake)
        self.scheduler = Scheduler(clock_watch)
        self.timers = Timers(storage, bus, clock_watch, self.scheduler, self.brake)
