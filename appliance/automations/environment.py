"""Environment: what automations live in, as one value to hand on."""

from __future__ import annotations

from datetime import datetime

from appliance.automations.brake import Brake
from appliance.automations.home_view import ChangeTimes
from appliance.automations.variables import Variables
from appliance.clock import Clock, ClockTrust
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.settings import AutomationRunner
from appliance.store.records import Storage

DEFAULT_LIMITS = AutomationRunner()


class Environment:
    """Registry, bus, clock with its trust and storage, with an own brake, change times and variables; a `HomeView`.

    `limits` are those of the brake. `began` is the monotonic second at which the hub began to start, None for the
    present; `stopped_at` is when the one before it stopped in order, None where that is not known.
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
        stopped_at: datetime | None = None,
    ) -> None:
        self.registry = registry
        self.bus = bus
        self.clock = clock
        self.trust = trust
        self.storage = storage
        self.began = began
        self.stopped_at = stopped_at
        self.brake = Brake(bus, clock, max_runs=limits.brake_runs, secs=limits.brake_secs)
        self.change_times = ChangeTimes(storage, bus, clock)
        self.variables = Variables(storage, bus, self.brake)

    def get_variable(self, name: str) -> Value:
        """The variable's value; None where it is not set."""
        return self.variables.find(name)

    def changed_at(self, device: Device, attribute: str) -> datetime:
        """When the attribute last changed, over restarts; at the latest when the device did."""
        return self.change_times.get(device, attribute)
