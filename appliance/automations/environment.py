"""The parts of the hub on which automations depend."""

from __future__ import annotations

from datetime import datetime

from appliance.automations.brake import Brake
from appliance.automations.change_times import ChangeTimes
from appliance.automations.clock_watch import ClockWatch
from appliance.automations.scheduler import Scheduler
from appliance.automations.timers import Timers
from appliance.automations.variables import Variables
from appliance.clock import Clock, ClockSteps
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.settings import AutomationRunner
from appliance.store.clock_trust import ClockTrust
from appliance.store.storage import Storage

DEFAULT_LIMITS = AutomationRunner()


class Environment:
    """The parts of the hub on which automations depend. Creates the clock watch, the brake, the change times, the
    variables, the scheduler, and the timers. `limits` contains the brake's limits. For `began` and `stopped_at`, see
    `ClockWatch`."""

    def __init__(
        self,
        registry: Registry,
        bus: Bus,
        clock: Clock,
        trust: ClockTrust,
        storage: Storage,
        *,
        limits: AutomationRunner = DEFAULT_LIMITS,
        began: float | None = None,
        steps: ClockSteps | None = None,
        stopped_at: datetime | None = None,
    ) -> None:
        self.registry = registry
        self.bus = bus
        self.clock = clock
        steps = steps or ClockSteps(clock)
        self.clock_watch = ClockWatch(clock, trust, steps, began=began, stopped_at=stopped_at)
        self.storage = storage
        self.brake = Brake(bus, clock, max_runs=limits.brake_runs, secs=limits.brake_secs)
        self.change_times = ChangeTimes(storage, registry, bus, clock, steps)
        self.variables = Variables(storage, bus, self.brake)
        self.scheduler = Scheduler(clock, self.clock_watch)
        self.timers = Timers(storage, bus, clock, self.clock_watch, self.scheduler, self.brake)
