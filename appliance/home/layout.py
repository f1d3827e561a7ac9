"""The layout of the home: rooms, groups, and the rooms, names, and aliases of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from appliance.errors import AliasTaken, Invalid, NotFound
from appliance.home.model import Device, Group, Room

T = TypeVar("T")

MAX_ROOMS = 1000
MAX_GROUPS = 1000
MAX_MEMBERS = 20_000
"""Maximum number of members of all groups together."""


class Layout(Struct, frozen=True, kw_only=True, dict=True):
    """Rooms, groups, and people's choices for devices. All mappings are keyed by id; devices may be absent.

    Methods that change the layout return a new layout, and raise `NotFound`, `AliasTaken`, or `Invalid`. The argument
    `devices` contains the present devices. An absent device keeps its room and groups, but cannot be moved to another
    room or group.
    """

    rooms: Mapping[str, Room] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    room_assignments: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def ids_by_alias(self) -> Mapping[str, str]:
        return {alias: device_id for device_id, alias in self.aliases.items()}

    @cached_property
    def _by_room(self) -> Mapping[str, list[str]]:
        found = defaultdict(list)
        for device_id in sorted(self.room_assignments):
            found[self.room_assignments[device_id]].append(device_id)
        return found

    def keeps(self, device_id: str) -> bool:
        """Return whether people have chosen a room, a name, an alias, or a group for the device. The device may be
        absent."""
        is_member = any(device_id in group.members for group in self.groups.values())
        return is_member or any(device_id in each for each in (self.room_assignments, self.names, self.aliases))

    def apply_to(self, device: Device) -> Device:
        """Return the device with the room, name, and alias that people chose."""
        return replace(
            device,
            room_id=self.room_assignments.get(device.id),
            person_name=self.names.get(device.id),
            alias=self.aliases.get(device.id),
        )

    def id_of(self, word: str, devices: Container[str]) -> str:
        """Return the id of the device with this alias. If the word is not an alias, return it unchanged."""
        return word if word in devices else self.ids_by_alias.get(word, word)

    def devices_in(self, room_id: str) -> list[str]:
        """Return the ids of all devices in the room, including absent devices, sorted by id."""
        return self._by_room.get(room_id, [])

    def get_room(self, room_id: str) -> Room:
        if room_id not in self.rooms:
            raise NotFound("room", room_id, self.rooms)
        return self.rooms[room_id]

    def get_group(self, group_id: str) -> Group:
        if group_id not in self.groups:
            raise NotFound("group", group_id, self.groups)
        return self.groups[group_id]

    def put_room(self, room: Room) -> Layout:
        """Return a layout with this room. The room replaces any room with the same id."""
        _check_count("room", room.id, self.rooms, MAX_ROOMS)
        return self._with(rooms={room.id: room})

    def remove_room(self, room_id: str) -> Layout:
        """Return a layout without the room. The room's devices are then in no room."""
        self.get_room(room_id)
        return self._with(rooms={room_id: None}, room_assignments=dict.fromkeys(self.devices_in(room_id)))

    def assign_room(self, device_id: str, room_id: str | None, devices: Devices) -> Layout:
        """Return a layout with the device in the room, or in no room if None."""
        if device_id not in devices:
            raise NotFound("device", device_id)
        if room_id is not None and room_id not in self.rooms:
            raise Invalid(f"room '{room_id}' not found")
        return self._with(room_assignments={device_id: room_id})

    def rename_device(self, device_id: str, name: str | None, devices: Devices) -> Layout:
        """Return a layout with this name for the device. None restores the vendor's name."""
        if device_id not in devices:
            raise NotFound("device", device_id)
        return self._with(names={device_id: name})

    def set_alias(self, device_id: str, alias: str | None, devices: Devices) -> Layout:
        """Return a layout with this alias for the device. None removes the alias, even from an absent device."""
        if device_id not in devices and (alias is not None or device_id not in self.aliases):
            raise NotFound("device", device_id)
        if alias is not None:
            holder = alias if alias in devices else self.ids_by_alias.get(alias, device_id)
            if holder != device_id:
                free = f'that device is absent; remove the alias with POST /devices/{holder}/alias {{"alias": null}}'
                remedy = "choose another" if holder in devices else free
                raise AliasTaken(f"alias '{alias}' belongs to device '{holder}'; {remedy}")
        return self._with(aliases={device_id: alias})

    def put_group(self, group_id: str, name: str, members: tuple[str, ...] | None, devices: Devices) -> Layout:
        """Return a layout with this group. If `members` is None, an existing group keeps its members, and a new group
        is empty."""
        _check_count("group", group_id, self.groups, MAX_GROUPS)
        previous = self.groups.get(group_id, Group(id=group_id, name=name))
        kept = previous.members if members is None else self._checked(members, devices, previous.members)
        count = sum(len(each.members) for each in self.groups.values()) + len(kept) - len(previous.members)
        if count > MAX_MEMBERS and len(kept) > len(previous.members):
            raise Invalid(
                f"group '{group_id}': all groups together can have {MAX_MEMBERS} members, not {count}; remove some"
            )
        return self._with(groups={group_id: Group(id=group_id, name=name, members=kept)})

    def set_members(self, group_id: str, members: tuple[str, ...], devices: Devices) -> Layout:
        return self.put_group(group_id, self.get_group(group_id).name, members, devices)

    def remove_group(self, group_id: str) -> Layout:
        self.get_group(group_id)
        return self._with(groups={group_id: None})

    def _checked(self, members: tuple[str, ...], devices: Devices, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return the members' ids without duplicates. An absent device can remain a member, but cannot be added."""
        ids, present = tuple(dict.fromkeys(self.id_of(each, devices) for each in members)), frozenset(before)
        for device_id in ids:
            if device_id not in devices and device_id not in present:
                raise Invalid(str(missing_device(device_id, devices)))
        return ids

    def _with(self, **changes: Mapping[str, Any]) -> Layout:
        """Return a layout with the changed values. None removes a value."""
        merged = {name: getattr(self, name) | changed for name, changed in changes.items()}
        for name, changed in changes.items():
            for key in [key for key, value in changed.items() if value is None]:
                del merged[name][key]
        return replace(self, **merged)


Devices = Mapping[str, Device]

Change = Callable[[Layout, Devices], Layout]
"""Takes a layout and the present devices, and returns a changed layout. Raises `NotFound`, `AliasTaken`, or
`Invalid` on failure."""

MAX_NAMESAKES = 3
"""Maximum number of devices with the same name that a message lists."""


def missing_device(word: str, devices: Devices) -> NotFound:
    """Return the error for an unknown device id. If the word is the name of a device, the message contains that
    device's id and alias."""
    missing = NotFound("device", word)
    named = [each for each in devices.values() if each.name.casefold() == word.casefold()]
    if named:
        ids = " or ".join(describe_id(each) for each in named[:MAX_NAMESAKES])
        missing.args = (f"{missing}; this is a device's name, so use its id: {ids}",)
    return missing


def describe_id(device: Device) -> str:
    """Return the device's id with its alias, such as `mqtt:lamp (alias hall_lamp)`."""
    return device.id if device.alias is None else f"{device.id} (alias {device.alias})"


def _check_count(what: str, id_: str, known: Mapping[str, object], limit: int) -> None:
    """Raise `Invalid` if a new room or group would exceed the limit."""
    if id_ not in known and len(known) >= limit:
        raise Invalid(f"{what} '{id_}': there are {limit} {what}s already; remove one first")


class LayoutChange(Struct, frozen=True, kw_only=True):
    """A new layout. Its differences from the previous layout are listed by id. None means removed."""

    layout: Layout
    rooms: Mapping[str, Room | None]
    groups: Mapping[str, Group | None]
    room_assignments: Mapping[str, str | None]
    names: Mapping[str, str | None]
    aliases: Mapping[str, str | None]

    def __len__(self) -> int:
        return sum(map(len, (self.rooms, self.groups, self.room_assignments, self.names, self.aliases)))


def compare_layouts(before: Layout, after: Layout) -> LayoutChange:
    return LayoutChange(
        layout=after,
        rooms=_compare(before.rooms, after.rooms),
        groups=_compare(before.groups, after.groups),
        room_assignments=_compare(before.room_assignments, after.room_assignments),
        names=_compare(before.names, after.names),
        aliases=_compare(before.aliases, after.aliases),
    )


def _compare(before: Mapping[str, T], after: Mapping[str, T]) -> dict[str, T | None]:
    if before is after:
        return {}
    get = before.get
    changed: dict[str, T | None] = {key: each for key, each in after.items() if get(key) is not each != get(key)}
    return changed | {key: None for key in before if key not in after}
