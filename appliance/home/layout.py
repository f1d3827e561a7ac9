"""The layout of the home: rooms, groups, and the rooms and names of devices, as one value; a change makes another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.errors import Invalid, NotFound
from appliance.home.model import Group, Room

T = TypeVar("T")


class Layout(Struct, frozen=True, kw_only=True, dict=True):
    """Rooms and groups by id; the room and the name that people gave to a device, whether it is present or not.

    Each method that changes something returns the layout that it makes, and raises `NotFound` or `Invalid` where that
    cannot be. `devices` are those that exist: an absent one may stay where it is, and cannot be put anywhere.
    """

    rooms: Mapping[str, Room] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    room_assignments: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _by_room(self) -> Mapping[str, list[str]]:
        found = defaultdict(list)
        for device_id in sorted(self.room_assignments):
            found[self.room_assignments[device_id]].append(device_id)
        return found

    def keeps(self, device_id: str) -> bool:
        """Whether people gave the device, present or not, a room, a name or a place in a group."""
        is_member = any(device_id in group.members for group in self.groups.values())
        return is_member or device_id in self.room_assignments or device_id in self.names

    def devices_in(self, room_id: str) -> list[str]:
        """The devices in the room, present or not, by id."""
        return self._by_room.get(room_id, [])

    def get_room(self, room_id: str) -> Room:
        """The room of this id."""
        if room_id not in self.rooms:
            raise NotFound("room", room_id)
        return self.rooms[room_id]

    def get_group(self, group_id: str) -> Group:
        """The group of this id."""
        if group_id not in self.groups:
            raise NotFound("group", group_id)
        return self.groups[group_id]

    def put_room(self, room: Room) -> Layout:
        """With this room, in place of any that has its id."""
        return self._with(rooms={room.id: room})

    def remove_room(self, room_id: str) -> Layout:
        """Without the room; its devices are in none."""
        self.get_room(room_id)
        return self._with(rooms={room_id: None}, room_assignments=dict.fromkeys(self.devices_in(room_id)))

    def assign_room(self, device_id: str, room_id: str | None, devices: Container[str]) -> Layout:
        """With the device in the room, or (None) in none."""
        if device_id not in devices:
            raise NotFound("device", device_id)
        if room_id is not None and room_id not in self.rooms:
            raise Invalid(f"room '{room_id}' not found")
        return self._with(room_assignments={device_id: room_id})

    def rename_device(self, device_id: str, name: str | None, devices: Container[str]) -> Layout:
        """With this name for the device, or (None) with none that people gave it."""
        if device_id not in devices:
            raise NotFound("device", device_id)
        return self._with(names={device_id: name})

    def put_group(self, group_id: str, name: str, members: tuple[str, ...] | None, devices: Container[str]) -> Layout:
        """With this group; members left out (None) are those that it had, none in a new one."""
        previous = self.groups.get(group_id, Group(id=group_id, name=name))
        kept = previous.members if members is None else _checked(members, devices, previous.members)
        return self._with(groups={group_id: Group(id=group_id, name=name, members=kept)})

    def set_members(self, group_id: str, members: tuple[str, ...], devices: Container[str]) -> Layout:
        """With these members of the group."""
        return self.put_group(group_id, self.get_group(group_id).name, members, devices)

    def remove_group(self, group_id: str) -> Layout:
        """Without the group; its devices stay."""
        self.get_group(group_id)
        return self._with(groups={group_id: None})

    def _with(self, **changes: Mapping[str, Any]) -> Layout:
        """The layout with other values; None removes."""
        merged = {name: getattr(self, name) | changed for name, changed in changes.items()}
        for name, changed in changes.items():
            for key in [key for key, value in changed.items() if value is None]:
                del merged[name][key]
        return replace(self, **merged)


Change = Callable[[Layout, Container[str]], Layout]
"""Makes another layout of one, given the devices that exist; raises `NotFound` or `Invalid`."""


def changes_between(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T | None]:
    """What is different in the second mapping, by key; None for what is gone."""
    if before is after:
        return {}
    get = before.get
    changed: dict[str, T | None] = {key: each for key, each in after.items() if get(key) is not each != get(key)}
    return changed | {key: None for key in before if key not in after}


def _checked(members: tuple[str, ...], devices: Container[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """The members, each once; one that is absent at present may stay, and cannot become one."""
    for device_id in members:
        if device_id not in devices and device_id not in before:
            raise Invalid(f"device '{device_id}' not found")
    return tuple(dict.fromkeys(members))
