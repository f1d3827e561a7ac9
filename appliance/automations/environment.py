"""Environment: what automations live in, as one value to hand on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from appliance.automations.brake import Brake
from appliance.automations.policy import read_instants
from appliance.automations.variables import Variables
from appliance.clock import Clock, ClockTrust, to_millis
from appliance.home.bus import Bus
from appliance.home.events import DeviceRemoved, DeviceStateChanged, Event
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.settings import AutomationRunner
from appliance.store.records import Storage

CHANGED_PREFIX = "changed/"
"""Keys in the document: `changed/<device id>` holds when each attribute that a condition asks for last changed."""


class ChangeTimes:
    """Remembers when attributes last changed, of those that `watch` names, over restarts too."""

    def __init__(self, storage: Storage, bus: Bus, clock: Clock) -> None:
        self._clock = clock
        self._remember = storage.remember
        self._watched: Mapping[str, frozenset[str]] = {}
        self._times: dict[str, dict[str, datetime]] = {}
        for device_id, value in storage.stored.items(CHANGED_PREFIX):
            self._times[device_id] = read_instants(value)
        bus.listen(self._on_event, DeviceRemoved, DeviceStateChanged)

    def watch(self, attributes: Mapping[str, frozenset[str]]) -> None:
        """From now on remember these attributes, by device; others are forgotten."""
        self._watched = attributes
        for device_id in [each for each in self._times if each not in attributes]:
            self._forget(device_id)

    def get(self, device: Device, attribute: str) -> datetime:
        """When the attribute last changed; where that was not observed, when the device did."""
        return self._times.get(device.id, {}).get(attribute, device.updated_at)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceRemoved) and event.device_id in self._times:
            self._forget(event.device_id)
        if not isinstance(event, DeviceStateChanged) or event.previous is None:
            return
        for name in self._watched.get(event.device.id, ()):
            if event.device.attributes.get(name) != event.previous.attributes.get(name):
                self._note(event.device.id, name)
            elif name not in self._times.get(event.device.id, {}):
                self._note(event.device.id, name, event.previous.updated_at)

    def _note(self, device_id: str, name: str, at: datetime | None = None) -> None:
        times = self._times.setdefault(device_id, {})
        times[name] = self._clock.now() if at is None else at
        self._remember(CHANGED_PREFIX + device_id, {each: to_millis(time) for each, time in times.items()})

    def _forget(self, device_id: str) -> None:
        del self._times[device_id]
        self._remember(CHANGED_PREFIX + device_id, None)


DEFAULT_LIMITS = AutomationRunner()


class Environment:
    """Registry, bus, clock with its trust and storage, with an own brake, change times and variables.

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
