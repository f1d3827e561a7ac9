"""Environment: what automations live in, as one value to hand on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from appliance.automations.brake import Brake
from appliance.automations.home_view import ChangeTimes
from appliance.automations.variables import Variables
from appliance.clock import Clock, ClockTrust
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.store.records import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Registry, bus, clock with its trust, storage, brake and variables; a `HomeView`.

    `began` is the monotonic second at which the hub began to start, None for the present; `stopped_at` is when the
    one before it stopped in order, None where that is not known.
    """

    registry: Registry
    bus: Bus
    clock: Clock
    trust: ClockTrust
    storage: Storage
    brake: Brake
    change_times: ChangeTimes
    variables: Variables
    began: float | None = None
    stopped_at: datetime | None = None

    def get_variable(self, name: str) -> Value:
        """The variable's value; None where it is not set."""
        return self.variables.find(name)

    def changed_at(self, device: Device, attribute: str) -> datetime:
        """When the attribute last changed, over restarts; at the latest when the device did."""
        return self.change_times.get(device, attribute)
