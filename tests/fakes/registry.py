"""A registry that applies changes at once, for tests in which times do not matter."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.home.layout import Change
from appliance.home.model import Device, Group, Room
from appliance.home.registry import Registry


def make(registry: Registry, change: Change) -> None:
    """Apply a change without storing it."""
    for _ in registry.commit(registry.preview(change, registry.layout)):
        pass


class PromptRegistry(Registry):
    """A registry with a method for each change. Each method returns the changed object."""

    def put_room(self, room_id: str, name: str) -> Room:
        make(self, lambda layout, _: layout.put_room(Room(id=room_id, name=name)))
        return self.get_room(room_id)

    def remove_room(self, room_id: str) -> None:
        make(self, lambda layout, _: layout.remove_room(room_id))

    def assign_room(self, device_id: str, room_id: str | None) -> Device:
        make(self, lambda layout, devices: layout.assign_room(device_id, room_id, devices))
        return self.get_device(device_id)

    def put_group(self, group_id: str, name: str, members: Sequence[str] | None) -> Group:
        stated = None if members is None else tuple(members)
        make(self, lambda layout, devices: layout.put_group(group_id, name, stated, devices))
        return self.get_group(group_id)

    def set_members(self, group_id: str, members: Sequence[str]) -> Group:
        make(self, lambda layout, devices: layout.set_members(group_id, tuple(members), devices))
        return self.get_group(group_id)

    def remove_group(self, group_id: str) -> None:
        make(self, lambda layout, _: layout.remove_group(group_id))
