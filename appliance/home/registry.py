"""The registry: the only hand that changes devices, rooms and groups. Each change is published once it is true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from appliance.clock import Clock
from appliance.errors import Invalid, NotFound
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device, Group, Metadata, Observation, Report, Room

ONLINE, OFFLINE = "online", "offline"

T = TypeVar("T")


class Registry:
    """All that the home knows, in memory. Whatever is named and missing raises `NotFound`."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._devices: dict[str, Device] = {}
        self._rooms: dict[str, Room] = {}
        self._groups: dict[str, Group] = {}
        self._places: dict[str, str] = {}
        """The room of each device that has one, also of devices that have vanished for now."""

    def list_devices(self) -> list[Device]:
        """Every device, by id."""
        return _by_id(self._devices)

    def list_rooms(self) -> list[Room]:
        """Every room, by id."""
        return _by_id(self._rooms)

    def list_groups(self) -> list[Group]:
        """Every group, by id."""
        return _by_id(self._groups)

    def find_devices(self, ids: Iterable[str]) -> list[Device]:
        """Those of the devices that exist, in the order asked for, each once."""
        return [self._devices[id_] for id_ in dict.fromkeys(ids) if id_ in self._devices]

    def get_device(self, device_id: str) -> Device:
        """The device of this id."""
        return _found(self._devices, "device", device_id)

    def get_room(self, room_id: str) -> Room:
        """The room of this id."""
        return _found(self._rooms, "room", room_id)

    def get_group(self, group_id: str) -> Group:
        """The group of this id."""
        return _found(self._groups, "group", group_id)

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

    def put_room(self, room_id: str, name: str) -> Room:
        """Create the room, or give it this name."""
        room, previous = Room(id=room_id, name=name), self._rooms.get(room_id)
        if room != previous:
            self._rooms[room_id] = room
            kind = events.RoomAdded if previous is None else events.RoomUpdated
            self._bus.publish(kind(room=room))
        return room

    def remove_room(self, room_id: str) -> None:
        """Remove the room; its devices are in no room afterwards."""
        inside = self.list_room_devices(room_id)
        del self._rooms[room_id]
        self._places = {device: room for device, room in self._places.items() if room != room_id}
        for device in inside:
            self._move(device, None)
        self._bus.publish(events.RoomRemoved(room_id=room_id))

    def assign_room(self, device_id: str, room_id: str | None) -> Device:
        """Put the device into the room, or into none; `Invalid` when there is no such room."""
        device = self.get_device(device_id)
        if room_id is None:
            self._places.pop(device_id, None)
        elif room_id in self._rooms:
            self._places[device_id] = room_id
        else:
            raise Invalid(f"room '{room_id}' not found")
        return device if device.room_id == room_id else self._move(device, room_id)

    def put_group(self, group_id: str, name: str, members: Sequence[str] | None) -> Group:
        """Create the group or change it. Members left out (None) stay as they are, or empty in a new group."""
        previous = self._groups.get(group_id)
        if members is None:
            kept = () if previous is None else previous.members
        else:
            kept = self._members(members)
        group = Group(id=group_id, name=name, members=kept)
        self._groups[group_id] = group
        if previous is None:
            self._bus.publish(events.GroupAdded(group=group))
        else:
            self._publish_difference(previous, group)
        return group

    def set_members(self, group_id: str, members: Sequence[str]) -> Group:
        """Give the group these members; `Invalid` when one of them is not a device."""
        return self.put_group(group_id, self.get_group(group_id).name, members)

    def remove_group(self, group_id: str) -> None:
        """Remove the group; its devices stay."""
        self.get_group(group_id)
        del self._groups[group_id]
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
            room_id=self._places.get(seen.device_id),
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

    def _move(self, device: Device, room_id: str | None) -> Device:
        moved = replace(device, room_id=room_id)
        self._devices[device.id] = moved
        self._bus.publish(events.DeviceRoomChanged(device_id=device.id, room_id=room_id))
        return moved

    def _members(self, members: Sequence[str]) -> tuple[str, ...]:
        for device_id in members:
            if device_id not in self._devices:
                raise Invalid(f"device '{device_id}' not found")
        return tuple(dict.fromkeys(members))

    def _publish_difference(self, previous: Group, group: Group) -> None:
        if group.name != previous.name:
            self._bus.publish(events.GroupUpdated(group=group))
        if group.members != previous.members:
            self._bus.publish(events.GroupMembersChanged(group_id=group.id, members=group.members))

    def _devices_of(self, adapter: str) -> list[Device]:
        return [device for device in self._devices.values() if device.metadata.source == adapter]


def _by_id(things: dict[str, T]) -> list[T]:
    return [things[id_] for id_ in sorted(things)]


def _found(things: dict[str, T], what: str, name: str) -> T:
    try:
        return things[name]
    except KeyError:
        raise NotFound(what, name) from None
