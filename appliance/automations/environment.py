"""The parts of the hub on which automations depend."""

from __future__ import annotations

from datetime import datetime

from appliance.automations.brake import Brake
from appliance.automations.change_times import ChangeTimes
from appliance.automations.scheduler import Scheduler
from appliance.automations.timers import Timers
from appliance.automations.variables import Variables
from appliance.clock import Clock, ClockSteps
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.settings import AutomationRunner
from appliance.store.clock_trust import ClockTrust
from appliance.store.storage import Storage
from appliance.version import MADE_AT

DEFAULT_LIMITS = AutomationRunner()

UNTRUSTED = "the clock is not trusted yet"
"""The reason why conditions on the time do not hold before the clock is trusted."""


class Environment:
    """The parts of the hub on which automations depend. Creates the brake, the change times, the variables, the
    scheduler, and the timers.

    - `limits`: the brake's limits.
    - `began`: the start of the hub in monotonic seconds; None means now.
    - `stopped_at`: the time of the last clean stop, or None if it is unknown.
    - `left_at`: the latest known time in the previous run.
    - `steps`: reports changes of the clock.
    """

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
        self.steps = steps or ClockSteps(clock)
        self.trust = trust
        self.storage = storage
        self.began = began
        self.stopped_at = stopped_at
        newest = (
            trust.newest if trust.newest > MADE_AT else None
        )  # if the time equals MADE_AT, no later time is stored
        self.left_at = stopped_at or newest
        self.brake = Brake(bus, clock, max_runs=limits.brake_runs, secs=limits.brake_secs)
        self.change_times = ChangeTimes(storage, registry, bus, clock, self.steps)
        self.variables = Variables(storage, bus, self.brake)
        self.scheduler = Scheduler(clock, trust, self.steps, began=began, stopped_at=stopped_at, left_at=self.left_at)
        self.timers = Timers(storage, bus, clock, trust, self.steps, self.scheduler, self.brake)

    def secs_since_stop(self) -> float:
        """Return the seconds since the previous hub stopped. If that time is unknown, return the seconds since this
        hub started."""
        now = self.clock.now()
        if self.left_at is None or self.left_at > now or not self.trust.is_trusted():
            return 0.0 if self.began is None else round(self.clock.monotonic() - self.began, 3)
        return round((now - self.left_at).total_seconds(), 3)
