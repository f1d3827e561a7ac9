"""A registry whose changes come true at once, for tests that care for what they do and not for when."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.home.changes import AssignRoom, Change, PutGroup, PutRoom, RemoveGroup, RemoveRoom, SetMembers
from appliance.home.model import Device, Group, Room
from appliance.home.registry import Registry


def make(registry: Registry, change: Change) -> None:
    """Make the change, without storing it."""
    registry.commit(registry.preview(change, registry.layout))


class PromptRegistry(Registry):
    """The registry with a method for each change; each returns what it changed."""

    def put_room(self, room_id: str, name: str) -> Room:
        """As `PutRoom`."""
        make(self, PutRoom(room=Room(id=room_id, name=name)))
        return self.get_room(room_id)

    def remove_room(self, room_id: str) -> None:
        """As `RemoveRoom`."""
        make(self, RemoveRoom(room_id=room_id))

    def assign_room(self, device_id: str, room_id: str | None) -> Device:
        """As `AssignRoom`."""
        make(self, AssignRoom(device_id=device_id, room_id=room_id))
        return self.get_device(device_id)

    def put_group(self, group_id: str, name: str, members: Sequence[str] | None) -> Group:
        """As `PutGroup`."""
        make(self, PutGroup(group_id=group_id, name=name, members=None if members is None else tuple(members)))
        return self.get_group(group_id)

    def set_members(self, group_id: str, members: Sequence[str]) -> Group:
        """As `SetMembers`."""
        make(self, SetMembers(group_id=group_id, members=tuple(members)))
        return self.get_group(group_id)

    def remove_group(self, group_id: str) -> None:
        """As `RemoveGroup`."""
        make(self, RemoveGroup(group_id=group_id))
