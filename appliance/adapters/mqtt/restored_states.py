"""Restores the states of devices after a restart, a new connection, or a new announcement."""

from __future__ import annotations

from collections.abc import Container
from datetime import datetime

from appliance.adapters.mqtt.deadlines import Deadlines
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.picture_store import PictureStore
from appliance.adapters.mqtt.platforms.picture import StillPicture
from appliance.adapters.publisher import Publisher
from appliance.clock import Clock
from appliance.home.model import Device


class RestoredStates:
    """The states that the hub knew before a connection, until all entities of their devices have arrived.

    `stopped_at` is the stop time of the last run. Values that were known at that time had not expired, but their age
    is unknown.
    """

    def __init__(
        self,
        publish: Publisher,
        pictures: PictureStore,
        deadlines: Deadlines,
        clock: Clock,
        stopped_at: datetime | None,
    ) -> None:
        self._publish = publish
        self._pictures = pictures
        self._deadlines = deadlines
        self._clock = clock
        self._stopped_at = stopped_at
        self._known: dict[str, Device] = {}
        self._restored: dict[str, MqttDevice] = {}  # devices whose state has been restored

    def remember(self) -> None:
        """Store the hub's current state of all devices, to restore it when the devices are announced."""
        self._known |= self._publish.list_devices()

    def forget_known(self, built: Container[str]) -> None:
        """Forget the stored state of these devices, because all of their entities have arrived."""
        self._known = {id_: each for id_, each in self._known.items() if id_ not in built}

    def forget_removed(self, built: Container[str]) -> None:
        """Forget all devices except these."""
        self._restored = {id_: device for id_, device in self._restored.items() if id_ in built}

    def restore(self, device: MqttDevice) -> None:
        """Restore the stored values that have not expired, once per device."""
        if self._restored.get(device.id) is device:
            return
        self._restored[device.id] = device
        for entity in device.entities:
            if isinstance(entity, StillPicture):
                update = {entity.custom_key: self._pictures.media_type(device.id, entity)}
                entity.apply(update, entity.changed_by(update))
        shown = self._publish.find(device.id)
        if (known := self._known.get(device.id, shown)) is None:
            return
        attributes = {**known.attributes, **(shown.attributes if shown is not None else {})}
        seen_at = known.last_seen if self._stopped_at is None else max(known.last_seen, self._stopped_at)
        age = (self._clock.now() - seen_at).total_seconds()
        listed = known.metadata.vendor_specific.get("units")
        units = listed if isinstance(listed, dict) else {}
        for entity in device.entities:
            for key, unit in entity.units.items():
                if unit and units.get(key, unit) != unit:
                    attributes.pop(key, None)  # the stored number has another unit
            if not 0 < entity.expire_after <= age and entity.restore(attributes):
                self._deadlines.set(device, entity, age)
            if entity.attributes:
                entity.refresh()
