"""The times at which values expire (`expire_after`), and at which sensors switch off (`off_delay`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.clock import Clock


class Deadlines:
    """The deadline of each entity. A new value of the entity replaces it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[int, tuple[float, MqttDevice, Entity]] = {}
        self._next_due = math.inf

    def secs_to_next(self) -> float:
        return max(0.0, self._next_due - self._clock.monotonic())

    def set(self, device: MqttDevice, entity: Entity, age: float = 0.0) -> None:
        """Set the deadline of an entity with `off_delay` or `expire_after`. `age` is the value's age in seconds."""
        if entity.off_delay <= 0 and entity.expire_after <= 0:
            return
        due = self._clock.monotonic() + (entity.off_delay if entity.off_delay > 0 else entity.expire_after - age)
        self._due[id(entity)] = due, device, entity
        self._next_due = min(self._next_due, due)

    def forget_replaced(self) -> None:
        """Let the next call of `end_due` forget the entities of replaced devices."""
        self._next_due = 0.0

    def end_due(self, announced: AnnouncedDevices, expire: Callable[[MqttDevice, Entity], None]) -> Iterator[None]:
        """Call `expire` for the entities whose deadline has passed, one per step. Forget entities of replaced
        devices."""
        now = self._clock.monotonic()
        if now < self._next_due:
            return
        self._next_due = math.inf
        for key in [*self._due]:
            due, device, entity = self._due[key]
            is_replaced = announced.devices.get(device.id) is not device
            if is_replaced or now >= due:
                del self._due[key]
                if not is_replaced:
                    expire(device, entity)
                yield
        self._next_due = min((due for due, _, _ in self._due.values()), default=self._next_due)
