"""Sets the values of devices, collects the changes, and publishes them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from msgspec import Struct, field

from appliance.adapters.mqtt.announcements.announced_devices import AnnouncedDevices
from appliance.adapters.mqtt.device import MqttDevice
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.payloads import Update
from appliance.adapters.mqtt.restored_states import RestoredStates
from appliance.adapters.publisher import Publisher


class Changes(Struct, kw_only=True):
    """The unpublished changes of one device.

    `attributes` contains the changed attributes. `pushed` contains the attributes from messages that were not
    retained.
    """

    device: MqttDevice
    attributes: set[str] = field(default_factory=set)
    pushed: set[str] = field(default_factory=set)

    @property
    def are_pushed_values(self) -> bool:
        """Whether only values changed, and all of them came from messages that were not retained."""
        return bool(self.attributes) and self.attributes <= self.pushed


class ChangedDevices:
    """The devices with unpublished changes."""

    def __init__(self, announced: AnnouncedDevices, restored: RestoredStates, publish: Publisher) -> None:
        self._announced = announced
        self._restored = restored
        self._publish = publish
        self._changed: dict[str, Changes] = {}
        self._published: dict[str, MqttDevice] = {}  # devices that were published with a complete observation

    def __len__(self) -> int:
        return len(self._changed)

    def note(self, device: MqttDevice, attributes: Iterable[str], pushed: Iterable[str] = ()) -> None:
        """Record changed attributes of a device for `flush`."""
        changes = self._changed.get(device.id)
        if changes is None or changes.device is not device:
            changes = self._changed[device.id] = Changes(device=device)
        changes.attributes.update(attributes)
        changes.pushed.update(pushed)

    def set_values(self, device: MqttDevice, entity: Entity, update: Update, *, is_live: bool = True) -> None:
        """Set new values. If the new values would replace an unpublished change, publish that change first.

        Values that are not live come from retained messages, so their age is unknown.
        """
        changed = entity.changed_by(update)
        self.publish_if_changed(device.id, changed)
        entity.apply(update, changed)
        if changed or any(each in update for each in entity.unconfirmed):
            entity.confirm(update)
            self.note(device, changed, update if is_live else ())

    def publish_if_changed(self, device_id: str, attributes: Iterable[str]) -> None:
        """Publish the changes of a device if one of these attributes has changed."""
        changes = self._changed.get(device_id)
        if changes is not None and not changes.attributes.isdisjoint(attributes):
            self.publish_changes(device_id)

    def flush(self) -> Iterator[None]:
        """Publish the changed devices, one per step, because one message can affect thousands of devices."""
        for device_id in list(self._changed):
            self.publish_changes(device_id)
            yield

    def publish_changes(self, device_id: str) -> None:
        changes = self._changed.get(device_id)
        if changes is not None and self._announced.devices.get(device_id) is changes.device:
            self.publish_device(changes.device)
        else:
            self._changed.pop(device_id, None)

    def publish_device(self, device: MqttDevice) -> None:
        """Publish a device with its remembered values.

        While the broker is unreachable, the device stays offline, and the change is published later.
        """
        self._restored.restore(device)
        if self._publish.is_lost:
            self.note(device, ())
            return
        changes = self._changed.pop(device.id, None)
        if changes is None or changes.device is not device:
            changes = Changes(device=device)
        if self._published.get(device.id) is device and changes.are_pushed_values and device.is_available:
            self._publish.attributes(device.id, {name: device.value_of(name) for name in changes.attributes})
        else:
            self._published[device.id] = device
            self._publish.device(device.observation(changes.pushed))

    def forget_removed(self, built: Container[str]) -> Iterator[None]:
        """Forget all published devices except these, one per step, because freeing thousands of devices takes
        long."""
        for id_ in [each for each in self._published if each not in built]:
            self._published.pop(id_, None)
            yield
