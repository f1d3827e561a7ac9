"""The registry: the only hand that changes devices, rooms and groups. Each change is published once it is true.

What people decide (rooms, groups, places) is checked by `propose` and comes true by `arrange`; in between it is
stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from appliance.clock import Clock
from appliance.errors import NotFound
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.changes import Change, Order
from appliance.home.model import Device, Group, Metadata, Observation, Report, Room

ONLINE, OFFLINE = "online", "offline"

T = TypeVar("T")


class Registry:
    """All that the home knows, in memory. Whatever is named and missing raises `NotFound`.

    `order` is what people decided, as it is in force.
    """

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._devices: dict[str, Device] = {}
        self.order = Order()

    def list_devices(self) -> list[Device]:
        """Every device, by id."""
        return _by_id(self._devices)

    def list_rooms(self) -> list[Room]:
        """Every room, by id."""
        return _by_id(self.order.rooms)

    def list_groups(self) -> list[Group]:
        """Every group, by id."""
        return _by_id(self.order.groups)

    def find_devices(self, ids: Iterable[str]) -> list[Device]:
        """Those of the devices that exist, in the order asked for, each once."""
        return [self._devices[id_] for id_ in dict.fromkeys(ids) if id_ in self._devices]

    def get_device(self, device_id: str) -> Device:
        """The device of this id."""
        if device_id not in self._devices:
            raise NotFound("device", device_id)
        return self._devices[device_id]

    def get_room(self, room_id: str) -> Room:
        """The room of this id."""
        return self.order.get_room(room_id)

    def get_group(self, group_id: str) -> Group:
        """The group of this id."""
        return self.order.get_group(group_id)

    def list_room_devices(self, room_id: str) -> list[Device]:
        """The devices in the room, by id."""
        self.get_room(room_id)
        return [device for device in self.list_devices() if device.room_id == room_id]

    def list_group_devices(self, group_id: str) -> list[Device]:
        """The group's devices that exist at present, in membership order."""
        return self.find_devices(self.get_group(group_id).members)

    def apply(self, report: Report) -> None:
        """Take in what an adapter saw: its devices are online, changed or new; those not present are removed."""
        now = self._clock.now()
        for observation in report.observations:
            self._observe(observation, report.adapter, now)
        for device in self._devices_of(report.adapter):
            if device.id not in report.present:
                del self._devices[device.id]
                self._bus.publish(events.DeviceRemoved(device_id=device.id))

    def mark(self, adapter: str, state: str) -> None:
        """Say of every device of the adapter that it is `online` or `offline`; all else about it stays."""
        now = self._clock.now()
        for device in self._devices_of(adapter):
            if device.attributes.get("state") != state:
                self._change(device, {**device.attributes, "state": state}, now)

    def restore(self, order: Order, devices: Iterable[Device]) -> None:
        """Begin with what outlived the last run; nothing is published, for nothing has happened."""
        self.order = order
        self._devices = {device.id: device for device in devices}

    def propose(self, change: Change, order: Order) -> Order:
        """What the order would be after the change; raises `NotFound` or `Invalid`. Nothing comes true by asking."""
        return change.upon(order, self._devices)

    def arrange(self, after: Order) -> None:
        """Let the order be this from now on, and publish what is different."""
        before, self.order = self.order, after
        for room in _new_or_different(before.rooms, after.rooms):
            kind = events.RoomUpdated if room.id in before.rooms else events.RoomAdded
            self._bus.publish(kind(room=room))
        if after.places != before.places:
            self._move_all(after.places)
        for room_id in before.rooms.keys() - after.rooms.keys():
            self._bus.publish(events.RoomRemoved(room_id=room_id))
        for group in _new_or_different(before.groups, after.groups):
            self._publish_group(before.groups.get(group.id), group)
        for group_id in before.groups.keys() - after.groups.keys():
            self._bus.publish(events.GroupRemoved(group_id=group_id))

    def _observe(self, seen: Observation, adapter: str, now: datetime) -> None:
        attributes = {**seen.attributes, "state": ONLINE}
        metadata = Metadata(source=adapter, vendor_specific=seen.vendor_specific)
        device = self._devices.get(seen.device_id)
        if device is None:
            self._add(seen, attributes, metadata, now)
            return
        kept = device.metadata if device.metadata == metadata else metadata
        device = self._devices[device.id] = replace(device, metadata=kept, last_seen=now)
        if attributes != device.attributes:
            self._change(device, attributes, now)

    def _add(
        self, seen: Observation, attributes: dict[str, object], metadata: Metadata, now: datetime
    ) -> None:
        device = Device(
            id=seen.device_id,
            room_id=self.order.places.get(seen.device_id),
            kind=seen.kind,
            attributes=attributes,
            metadata=metadata,
            updated_at=now,
            last_seen=now,
        )
        self._devices[device.id] = device
        self._bus.publish(events.DeviceStateChanged(device=device, previous=None))

    def _change(self, device: Device, attributes: dict[str, object], now: datetime) -> None:
        changed = replace(device, attributes=attributes, updated_at=now)
        self._devices[device.id] = changed
        self._bus.publish(events.DeviceStateChanged(device=changed, previous=device))

    def _move_all(self, places: Mapping[str, str]) -> None:
        """Put every device into the room that it has now, by id."""
        for device in self.list_devices():
            room_id = places.get(device.id)
            if device.room_id != room_id:
                self._devices[device.id] = replace(device, room_id=room_id)
                self._bus.publish(events.DeviceRoomChanged(device_id=device.id, room_id=room_id))

    def _publish_group(self, previous: Group | None, group: Group) -> None:
        if previous is None:
            self._bus.publish(events.GroupAdded(group=group))
            return
        if group.name != previous.name:
            self._bus.publish(events.GroupUpdated(group=group))
        if group.members != previous.members:
            self._bus.publish(events.GroupMembersChanged(group_id=group.id, members=group.members))

    def _devices_of(self, adapter: str) -> list[Device]:
        return [device for device in self._devices.values() if device.metadata.source == adapter]


def _by_id(things: Mapping[str, T]) -> list[T]:
    return [things[id_] for id_ in sorted(things)]


def _new_or_different(before: Mapping[str, T], after: Mapping[str, T]) -> list[T]:
    return [thing for key, thing in after.items() if before.get(key) != thing]
