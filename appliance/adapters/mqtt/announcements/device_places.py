"""The limit of a broker's devices, including the parts of devices."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from appliance.adapters.mqtt.device import MqttDevice

MAX_BUILT_DEVICES = 5_000
"""Maximum number of devices and parts. An announced device can have a part for each of its entities."""


class DevicePlaces:
    """Places for devices and parts. Each id in `reserved` has a place; the other places are for new devices."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved = set(islice(dict.fromkeys(reserved), MAX_BUILT_DEVICES))
        self.room = MAX_BUILT_DEVICES - len(self._reserved)

    def fits(self, device_id: str) -> bool:
        return self.room > 0 or device_id in self._reserved

    def take(self, devices: Iterable[MqttDevice], former: Iterable[MqttDevice]) -> list[MqttDevice]:
        """Take places for a device and its parts, and return all that fit. The places of removed parts become
        free."""
        built = [*devices]
        self.room += len({each.id for each in former} - {each.id for each in built})
        new = [each.id for each in built if each.id not in self._reserved]
        ignored = {*new[self.room :]}
        self.room -= len(new) - len(ignored)
        return [each for each in built if each.id not in ignored]
