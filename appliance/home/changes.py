"""What people may change about the home's order: rooms, groups, and which device is where.

A change is a value with one question: what would the order be after it? Whether it comes true is for others to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from appliance.errors import Invalid, NotFound
from appliance.home.model import Group, Room

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Rooms and groups by id, and the room of each device that has one, present or not."""

    rooms: Mapping[str, Room] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    def get_room(self, room_id: str) -> Room:
        """The room of this id; raises `NotFound`."""
        if room_id not in self.rooms:
            raise NotFound("room", room_id)
        return self.rooms[room_id]

    def get_group(self, group_id: str) -> Group:
        """The group of this id; raises `NotFound`."""
        if group_id not in self.groups:
            raise NotFound("group", group_id)
        return self.groups[group_id]


class Change(ABC):
    """One change that a person asked for."""

    @abstractmethod
    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order after the change, given the devices that exist; raises `NotFound` or `Invalid`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutRoom(Change):
    """Create the room, or give the one that has its id this name."""

    room: Room

    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order with the room."""
        return replace(order, rooms={**order.rooms, self.room.id: self.room})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRoom(Change):
    """Remove the room; what was in it is in none."""

    room_id: str

    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order without the room."""
        order.get_room(self.room_id)
        places = {device: room for device, room in order.places.items() if room != self.room_id}
        return replace(order, rooms=_without(order.rooms, self.room_id), places=places)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignRoom(Change):
    """Put the device into the room, or (None) into none; `Invalid` when there is no such room."""

    device_id: str
    room_id: str | None

    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order with the device in its new place."""
        if self.device_id not in devices:
            raise NotFound("device", self.device_id)
        if self.room_id is None:
            return replace(order, places=_without(order.places, self.device_id))
        if self.room_id not in order.rooms:
            raise Invalid(f"room '{self.room_id}' not found")
        return replace(order, places={**order.places, self.device_id: self.room_id})


@dataclass(frozen=True, slots=True, kw_only=True)
class PutGroup(Change):
    """Create the group or change it. Members left out (None) stay as they are, none in a new group."""

    group_id: str
    name: str
    members: tuple[str, ...] | None

    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order with the group; `Invalid` when a member is not a device."""
        previous = order.groups.get(self.group_id)
        kept = () if previous is None else previous.members
        members = kept if self.members is None else _checked(self.members, devices)
        group = Group(id=self.group_id, name=self.name, members=members)
        return replace(order, groups={**order.groups, group.id: group})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMembers(Change):
    """Give the group these members; `Invalid` when one of them is not a device."""

    group_id: str
    members: tuple[str, ...]

    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order with the group's new members."""
        group = replace(order.get_group(self.group_id), members=_checked(self.members, devices))
        return replace(order, groups={**order.groups, group.id: group})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveGroup(Change):
    """Remove the group; its devices stay."""

    group_id: str

    def upon(self, order: Order, devices: Container[str]) -> Order:
        """The order without the group."""
        order.get_group(self.group_id)
        return replace(order, groups=_without(order.groups, self.group_id))


def _without(things: Mapping[str, T], key: str) -> dict[str, T]:
    return {each: thing for each, thing in things.items() if each != key}


def _checked(members: tuple[str, ...], devices: Container[str]) -> tuple[str, ...]:
    for device_id in members:
        if device_id not in devices:
            raise Invalid(f"device '{device_id}' not found")
    return tuple(dict.fromkeys(members))
