"""Changes of the layout that a person may ask for: rooms, groups, and the rooms and names of devices.

A change is a value that computes its `Edit`; it applies nothing itself.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec import Struct
from msgspec.structs import replace

from appliance.errors import Invalid, NotFound
from appliance.home.layout import Edit, LayoutView, get_group, get_room
from appliance.home.model import Group, Room


class Change(Struct, frozen=True, kw_only=True):
    """One change that a person asked for."""

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """What would become different, given the devices that exist; raises `NotFound` or `Invalid`."""
        raise NotImplementedError


class PutRoom(Change, frozen=True, kw_only=True):
    """Create the room, or rename the one that has its id."""

    room: Room

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """Puts the room in place of any that has its id; raises nothing."""
        return Edit(rooms={self.room.id: self.room})


class RemoveRoom(Change, frozen=True, kw_only=True):
    """Remove the room; its devices are then in none."""

    room_id: str

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """Removes the room and the assignments of its devices."""
        get_room(layout, self.room_id)
        return Edit(rooms={self.room_id: None}, room_assignments=dict.fromkeys(layout.devices_in(self.room_id)))


class AssignRoom(Change, frozen=True, kw_only=True):
    """Put the device into the room, or (None) into none; `Invalid` when there is no such room."""

    device_id: str
    room_id: str | None

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """The device's new place."""
        if self.device_id not in devices:
            raise NotFound("device", self.device_id)
        if self.room_id is not None and self.room_id not in layout.rooms:
            raise Invalid(f"room '{self.room_id}' not found")
        return Edit(room_assignments={self.device_id: self.room_id})


class RenameDevice(Change, frozen=True, kw_only=True):
    """Give the device the name that people use, or (None) take it away."""

    device_id: str
    name: str | None

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """Replaces or removes the name; raises `NotFound` when there is no such device."""
        if self.device_id not in devices:
            raise NotFound("device", self.device_id)
        return Edit(names={self.device_id: self.name})


class PutGroup(Change, frozen=True, kw_only=True):
    """Create the group or change it. Members left out (None) stay as they are, none in a new group."""

    group_id: str
    name: str
    members: tuple[str, ...] | None

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """The group; `Invalid` when a member is not a device."""
        previous = layout.groups.get(self.group_id)
        kept = () if previous is None else previous.members
        members = kept if self.members is None else _checked(self.members, devices, kept)
        return Edit(groups={self.group_id: Group(id=self.group_id, name=self.name, members=members)})


class SetMembers(Change, frozen=True, kw_only=True):
    """Give the group these members; `Invalid` when one of them is not a device."""

    group_id: str
    members: tuple[str, ...]

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """The group with its new members."""
        group = get_group(layout, self.group_id)
        return Edit(groups={group.id: replace(group, members=_checked(self.members, devices, group.members))})


class RemoveGroup(Change, frozen=True, kw_only=True):
    """Remove the group; its devices stay."""

    group_id: str

    def apply_to(self, layout: LayoutView, devices: Container[str]) -> Edit:
        """Removes the group."""
        get_group(layout, self.group_id)
        return Edit(groups={self.group_id: None})


def _checked(members: tuple[str, ...], devices: Container[str], before: tuple[str, ...]) -> tuple[str, ...]:
    """The members, each once. A device that is absent at present may stay a member; it cannot become one."""
    kept = frozenset(before)
    for device_id in members:
        if device_id not in devices and device_id not in kept:
            raise Invalid(f"device '{device_id}' not found")
    return tuple(dict.fromkeys(members))
