"""The layout of the home: rooms, groups, and the rooms and names of devices; and drafts of it.

A change takes time in proportion to its own size, not to that of the home.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from msgspec import Struct, field

from appliance.errors import NotFound
from appliance.home.model import Group, Room

T = TypeVar("T")


class Edit(Struct, frozen=True, kw_only=True):
    """A set of changes: rooms and groups by id, the rooms and names of devices by device id; None removes."""

    rooms: Mapping[str, Room | None] = field(default_factory=dict)
    groups: Mapping[str, Group | None] = field(default_factory=dict)
    room_assignments: Mapping[str, str | None] = field(default_factory=dict)
    names: Mapping[str, str | None] = field(default_factory=dict)


class LayoutView(Protocol):
    """Rooms and groups by id; the room and the name that people gave to a device, whether it is present or not."""

    @property
    def rooms(self) -> Mapping[str, Room]:
        """The rooms by id."""

    @property
    def groups(self) -> Mapping[str, Group]:
        """The groups by id."""

    def devices_in(self, room_id: str) -> list[str]:
        """The devices in the room, present or not, by id."""


class Layout:
    """The layout that is in force; only `commit` changes it, and checks nothing: `Change.apply_to` has done that."""

    def __init__(
        self,
        rooms: Mapping[str, Room] | None = None,
        groups: Mapping[str, Group] | None = None,
        room_assignments: Mapping[str, str] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.rooms = dict(rooms or {})
        self.groups = dict(groups or {})
        self.room_assignments = dict(room_assignments or {})
        self.names = dict(names or {})
        self._in_room: defaultdict[str, set[str]] = defaultdict(set)
        for device_id, room_id in self.room_assignments.items():
            self._in_room[room_id].add(device_id)

    def devices_in(self, room_id: str) -> list[str]:
        """The devices in the room, present or not, by id."""
        return sorted(self._in_room.get(room_id, ()))

    def commit(self, edit: Edit) -> None:
        """Apply the edit."""
        for device_id, room_id in edit.room_assignments.items():
            before = self.room_assignments.get(device_id)
            if before is not None:
                self._in_room[before].discard(device_id)
            if room_id is not None:
                self._in_room[room_id].add(device_id)
        _put_all(self.rooms, edit.rooms)
        _put_all(self.groups, edit.groups)
        _put_all(self.room_assignments, edit.room_assignments)
        _put_all(self.names, edit.names)
        for room_id, room in edit.rooms.items():
            if room is None:
                self._in_room.pop(room_id, None)


class Draft:
    """The layout as edits would leave it that are not in force yet; `edit` is all of them together."""

    def __init__(self, base: Layout) -> None:
        self._base = base
        self._rooms: dict[str, Room | None] = {}
        self._groups: dict[str, Group | None] = {}
        self._room_assignments: dict[str, str | None] = {}
        self._names: dict[str, str | None] = {}
        self.edit = Edit(
            rooms=self._rooms, groups=self._groups, room_assignments=self._room_assignments, names=self._names
        )
        self.rooms: Mapping[str, Room] = _Overlay(base.rooms, self._rooms)
        self.groups: Mapping[str, Group] = _Overlay(base.groups, self._groups)

    def devices_in(self, room_id: str) -> list[str]:
        """The devices in the room, present or not, by id."""
        stay = {each for each in self._base.devices_in(room_id) if each not in self._room_assignments}
        return sorted(stay | {device_id for device_id, each in self._room_assignments.items() if each == room_id})

    def add(self, edit: Edit) -> None:
        """Add one more edit."""
        self._rooms.update(edit.rooms)
        self._groups.update(edit.groups)
        self._room_assignments.update(edit.room_assignments)
        self._names.update(edit.names)


class _Overlay(Mapping[str, T]):
    """A mapping with changes over it: a value replaces one, None hides it."""

    def __init__(self, base: Mapping[str, T], changes: Mapping[str, T | None]) -> None:
        self._base = base
        self._changes = changes

    def __getitem__(self, key: str) -> T:
        if key not in self._changes:
            return self._base[key]
        value = self._changes[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        keys: Iterable[str] = dict.fromkeys([*self._base, *self._changes])
        return (key for key in keys if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def get_room(layout: LayoutView, room_id: str) -> Room:
    """The room of this id; raises `NotFound`."""
    if room_id not in layout.rooms:
        raise NotFound("room", room_id)
    return layout.rooms[room_id]


def get_group(layout: LayoutView, group_id: str) -> Group:
    """The group of this id; raises `NotFound`."""
    if group_id not in layout.groups:
        raise NotFound("group", group_id)
    return layout.groups[group_id]


def _put_all(things: dict[str, T], changes: Mapping[str, T | None]) -> None:
    for key, value in changes.items():
        if value is None:
            things.pop(key, None)
        else:
            things[key] = value
