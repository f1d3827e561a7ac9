"""The baseline: what a device first shows after a start is compared with nothing, for nobody saw it change."""

from __future__ import annotations

from appliance.home.events import AdapterAnswered, DeviceStateChanged, Event
from appliance.home.model import Device
from appliance.home.registry import Registry


class Baseline:
    """Knows which restored devices were not observed since the start; made from the registry as it was restored."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._unseen = {device.id: device.last_seen for device in registry.list_devices()}

    def observe(self, event: Event) -> tuple[bool, list[str]]:
        """Whether the event only tells what a restored device was like all along, so that no trigger may match it;
        and the restored devices that were observed for the first time by now.

        It must be asked of every event, once and in order: sightings that change nothing end the waiting too.
        """
        observed: list[str] = []
        if isinstance(event, AdapterAnswered):
            observed = [device.id for device in self._registry.find_devices(self._unseen) if self._was_seen(device)]
        elif isinstance(event, DeviceStateChanged) and event.device.id in self._unseen:
            observed = [event.device.id] if self._was_seen(event.device) else []
        else:
            return False, []
        for device_id in observed:
            del self._unseen[device_id]
        return isinstance(event, DeviceStateChanged), observed

    def _was_seen(self, device: Device) -> bool:
        return device.last_seen != self._unseen[device.id]
