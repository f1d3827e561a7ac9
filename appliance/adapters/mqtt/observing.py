"""From a broker's device to what the home is told of it."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.announced_devices import MqttDevice
from appliance.adapters.publisher import Publisher
from appliance.home.model import Info, Observation
from appliance.home.values import Value


class DevicePublisher:
    """Tells the home of single devices."""

    def __init__(self, publish: Publisher) -> None:
        self._publish = publish

    def show(self, device: MqttDevice) -> None:
        """The device as it is now."""
        self._publish.device(observation_of(device))

    def happened(self, device_id: str, event: str, data: Mapping[str, Value]) -> None:
        """Something that happened at the device."""
        self._publish.event(device_id, event, data)


def observation_of(device: MqttDevice) -> Observation:
    """The device in full. What is unavailable keeps what it last showed."""
    facts = device.facts
    return Observation(
        device_id=device.id,
        kind=device.kind,
        attributes=device.attributes,
        vendor_specific=device.vendor_specific,
        name=device.name or None,
        info=Info(
            manufacturer=facts.manufacturer or None,
            model=facts.model or None,
            firmware=facts.firmware or None,
            serial=facts.serial or None,
            parent_id=device.parent_id or device.bridge_id or None,
            area=facts.area or None,
            device_class=device.device_class,
        ),
        commands=device.specs,
        is_available=device.is_available,
    )
