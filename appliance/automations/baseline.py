"""The baseline: what a device first shows after a start is compared with nothing, for nobody saw it change."""

from __future__ import annotations

from appliance.home.events import AdapterAnswered, DeviceStateChanged, Event
from appliance.home.registry import Registry


class Baseline:
    """Knows which restored devices were not observed since the start; made from the registry as it was restored."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._unseen = {device.id: device.last_seen for device in registry.list_devices()}

    def is_set_by(self, event: Event) -> bool:
        """Whether the event only tells what a restored device was like all along, so that no trigger may match it.

        It must be asked of every event, once and in order: sightings that change nothing end the waiting too.
        """
        if isinstance(event, AdapterAnswered):
            for device in self._registry.find_devices(self._unseen):
                self._forget(device.id, device.last_seen != self._unseen[device.id])
        if not isinstance(event, DeviceStateChanged) or event.device.id not in self._unseen:
            return False
        self._forget(event.device.id, event.device.last_seen != self._unseen[event.device.id])
        return True

    def _forget(self, device_id: str, is_seen: bool) -> None:
        if is_seen:
            del self._unseen[device_id]
