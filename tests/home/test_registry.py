"""The registry: what a change leaves behind, which events are published, in which order, and what leaves no trace."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.clock import Clock
from appliance.errors import Invalid, NotFound
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device, DeviceKind, Metadata, Observation, Report
from appliance.home.registry import OFFLINE, ONLINE
from tests.fakes.registry import PromptRegistry
from tests.fakes.rows import each_row

NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


class TickingClock(Clock):
    """One second later at each look, so that no two readings are the same."""

    def __init__(self) -> None:
        self.looks = 0

    def now(self) -> datetime:
        """The next second."""
        self.looks += 1
        return NOON + timedelta(seconds=self.looks)


class Home:
    """A registry and everything that it published."""

    def __init__(self, *setup: Report) -> None:
        self.bus = Bus()
        self.received: list[events.Event] = []
        self.bus.listen(self.received.append)
        self.clock = TickingClock()
        self.registry = PromptRegistry(self.bus, self.clock)
        for each in setup:
            self.registry.apply(each)
        self.news()

    def news(self) -> list[events.Event]:
        """What was published since the last call."""
        published = self.received[:]
        self.received.clear()
        return published

    def device(self, device_id: str = "a:1") -> Device:
        """The device."""
        return self.registry.get_device(device_id)


def seen(device_id: str = "a:1", note: Any = None, **attributes: Any) -> Observation:
    """An observation of a light; `note` is the vendor's own data."""
    return Observation(
        device_id=device_id, kind=DeviceKind.LIGHT, attributes=attributes, vendor_specific={"note": note}
    )


def report(*observations: Observation, adapter: str = "a", also: Iterable[str] = ()) -> Report:
    """A report of these, and of those that are there and could not be read."""
    present = frozenset({*(each.device_id for each in observations), *also})
    return Report(adapter=adapter, present=present, observations=observations)


class TestReports:
    """What an adapter saw becomes what the home knows."""

    def test_a_new_device_is_online_in_no_room_and_told_with_all_it_shows(self) -> None:
        home = Home()
        home.registry.apply(report(seen(note="x", power="on", brightness=30)))
        device = home.device()
        assert device == Device(
            id="a:1",
            room_id=None,
            kind=DeviceKind.LIGHT,
            attributes={"power": "on", "brightness": 30, "state": "online"},
            metadata=Metadata(source="a", accuracy=None, vendor_specific={"note": "x"}),
            updated_at=device.updated_at,
            last_seen=device.updated_at,
            commands=(),
        )
        assert home.news() == [events.DeviceStateChanged(device=device, previous=None)]

    def test_an_attribute_that_is_dropped_stays_as_it_was(self) -> None:
        home = Home(report(seen(power="on", brightness=30)))
        home.registry.apply(report(seen(power="off", brightness=3000, nonsense=1)))
        assert home.device().attributes == {"power": "off", "brightness": 30, "state": "online"}
        home.registry.apply(report(seen(power="off")))
        assert home.device().attributes == {"power": "off", "state": "online"}

    def test_what_did_not_change_stays_the_same_object_so_that_its_bytes_can_be_kept(self) -> None:
        home = Home(report(seen(power="on")))
        before = home.device()
        home.registry.apply(report(seen(power="on")))
        assert home.device().attributes is before.attributes
        assert home.device().metadata is before.metadata

    def test_a_changed_attribute_moves_both_times_to_the_same_instant_and_is_told_with_what_was(self) -> None:
        home = Home(report(seen(power="on", brightness=30)))
        before = home.device()
        home.registry.apply(report(seen(power="on", brightness=31)))
        after = home.device()
        assert after.attributes == {"power": "on", "brightness": 31, "state": "online"}
        assert after.updated_at == after.last_seen > before.last_seen
        [event] = home.news()
        assert isinstance(event, events.DeviceStateChanged)
        assert event.device == after
        assert event.previous is not None and event.previous.attributes == before.attributes
        assert event.previous.updated_at == before.updated_at

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ({"color_temperature": {"value": 3000, "unit": "kelvin"}}, {}),
            ({}, {"color_temperature": {"value": 3000, "unit": "kelvin"}}),
            ({"power": "on"}, {"power": "off"}),
            ({"custom.a.scene": [1, 2]}, {"custom.a.scene": [2, 1]}),
            ({"uv_index": 1}, {"uv_index": 1.5}),
            ({"smoke": False}, {"smoke": True}),
        ],
        ids=repr,
    )
    def test_each_difference_in_attributes_is_one_event(self, before: Any, after: Any) -> None:
        home = Home(report(seen(**before)))
        home.registry.apply(report(seen(**after)))
        [event] = home.news()
        assert isinstance(event, events.DeviceStateChanged)
        assert event.device.attributes == {**after, "state": "online"}

    @each_row("other", [50.0, 50])
    def test_fifty_and_fifty_point_nought_are_the_same(self, other: float) -> None:
        home = Home(report(seen(uv_index=50)))
        home.registry.apply(report(seen(uv_index=other)))
        assert home.news() == []

    def test_an_event_comes_when_it_is_already_true(self) -> None:
        home, shown = Home(), list[Any]()

        def look(event: events.Event) -> None:
            if isinstance(event, events.DeviceStateChanged):
                shown.append(home.registry.get_device(event.device.id) is event.device)
            elif isinstance(event, events.DeviceRemoved):
                shown.append(home.registry.find_devices([event.device_id]) == [])

        home.bus.listen(look)
        home.registry.apply(report(seen(power="on")))
        home.registry.apply(report(seen(power="off")))
        home.registry.set_state("a", OFFLINE)
        home.registry.apply(report())
        assert shown == [True] * 4


class TestQuestions:
    """What one asks of the registry."""

    def test_the_list_of_devices_is_the_same_object_until_one_of_them_is_another(self) -> None:
        home = Home(report(seen("a:1", power="on")))
        home.registry.put_room("r", "R")
        changes = (
            lambda: home.registry.apply(report(seen("a:1", power="off"))),
            lambda: home.registry.update_attributes("a", "a:1", {"power": "on"}),
            lambda: home.registry.set_state("a", OFFLINE),
            lambda: home.registry.assign_room("a:1", "r"),
            lambda: home.registry.restore(home.registry.layout, [home.device()]),
            lambda: home.registry.remove("a", "a:1"),
        )
        for change in changes:
            before = home.registry.list_devices()
            assert home.registry.list_devices() is before
            change()
            assert home.registry.list_devices() is not before

    def test_devices_are_found_in_the_order_asked_for_once_each_and_strangers_left_out(self) -> None:
        home = Home(report(seen("a:1"), seen("a:2"), seen("a:3")))
        found = home.registry.find_devices(["a:3", "a:9", "a:1", "a:3"])
        assert [device.id for device in found] == ["a:3", "a:1"]
        assert home.registry.find_devices([]) == []

    @pytest.mark.parametrize(
        ("ask", "sentence"),
        [
            (lambda registry: registry.get_device("x"), "device 'x' not found"),
            (lambda registry: registry.get_room("x"), "room 'x' not found"),
            (lambda registry: registry.list_room_devices("x"), "room 'x' not found"),
            (lambda registry: registry.remove_room("x"), "room 'x' not found"),
            (lambda registry: registry.get_group("x"), "group 'x' not found"),
            (lambda registry: registry.list_group_devices("x"), "group 'x' not found"),
            (lambda registry: registry.set_members("x", []), "group 'x' not found"),
            (lambda registry: registry.remove_group("x"), "group 'x' not found"),
        ],
        ids=range(8),
    )
    def test_what_does_not_exist_is_named(self, ask: Any, sentence: str) -> None:
        home = Home(report(seen()))
        with pytest.raises(NotFound) as refused:
            ask(home.registry)
        assert str(refused.value) == sentence
        assert home.news() == []


class Model:
    """The registry's rules once more, in the plainest words, as something to compare with.

    Devices are `[room, state, value, note]`; every step returns what must be published, or the class that it raises.
    """

    def __init__(self) -> None:
        self.devices: dict[str, list[Any]] = {}
        self.homes: dict[str, str] = {}
        self.rooms: dict[str, str] = {}
        self.groups: dict[str, tuple[str, list[str]]] = {}

    def apply(self, adapter: str, sightings: dict[str, tuple[int, int] | None]) -> list[Any]:
        """Value and note of each device that is there; None for one that could not be read."""
        expected: list[Any] = []
        for name, sighting in sightings.items():
            if sighting is None:
                continue
            value, note = sighting
            old = self.devices.get(name)
            room = self.homes.get(name) if old is None else old[0]
            self.devices[name] = [room, "online", value, note]
            if old is None or old[1:3] != ["online", value]:
                expected.append(("state", name, "online", value))
        for name in [name for name in self.devices if name[0] == adapter and name not in sightings]:
            del self.devices[name]
            expected.append(("removed", name))
        return expected

    def set_state(self, adapter: str, state: str) -> list[Any]:
        """Every device of the adapter is now so."""
        expected = []
        for name, device in self.devices.items():
            if name[0] == adapter and device[1] != state:
                device[1] = state
                expected.append(("state", name, state, device[2]))
        return expected

    def put_room(self, room: str, name: str) -> list[Any]:
        """Create or rename."""
        old, self.rooms[room] = self.rooms.get(room), name
        return [] if old == name else [("room", "added" if old is None else "updated", room, name)]

    def remove_room(self, room: str) -> Any:
        """Remove, and let everybody out."""
        if room not in self.rooms:
            return NotFound
        del self.rooms[room]
        self.homes = {device: other for device, other in self.homes.items() if other != room}
        inside = sorted(name for name, device in self.devices.items() if device[0] == room)
        for name in inside:
            self.devices[name][0] = None
        return [*(("moved", name, None) for name in inside), ("room", "removed", room)]

    def assign_room(self, device: str, room: str | None) -> Any:
        """Move a device."""
        if device not in self.devices:
            return NotFound
        if room is not None and room not in self.rooms:
            return Invalid
        self.homes.pop(device, None)
        if room is not None:
            self.homes[device] = room
        old, self.devices[device][0] = self.devices[device][0], room
        return [] if old == room else [("moved", device, room)]

    def put_group(self, group: str, name: str, members: list[str] | None) -> Any:
        """Create or change."""
        if any(member not in self.devices for member in members or []):
            return Invalid
        old = self.groups.get(group)
        kept = list(dict.fromkeys(members)) if members is not None else old[1] if old else []
        self.groups[group] = (name, kept)
        if old is None:
            return [("group", "added", group, name, kept)]
        expected: list[Any] = [("group", "updated", group, name, kept)] if old[0] != name else []
        return expected + ([("members", group, kept)] if old[1] != kept else [])

    def set_members(self, group: str, members: list[str]) -> Any:
        """Replace the members."""
        return self.put_group(group, self.groups[group][0], members) if group in self.groups else NotFound

    def remove_group(self, group: str) -> Any:
        """Remove it."""
        return [("group", "removed", group)] if self.groups.pop(group, None) else NotFound


def model_of(event: events.Event) -> Any:
    """The event as the model writes it."""
    match event:
        case events.DeviceStateChanged(device=device):
            return ("state", device.id, device.attributes["state"], device.attributes["uv_index"])
        case events.DeviceRemoved(device_id=name):
            return ("removed", name)
        case events.DeviceRoomChanged(device_id=name, room_id=room):
            return ("moved", name, room)
        case events.RoomAdded(room=room) | events.RoomUpdated(room=room):
            return ("room", "added" if isinstance(event, events.RoomAdded) else "updated", room.id, room.name)
        case events.RoomRemoved(room_id=room):
            return ("room", "removed", room)
        case events.GroupAdded(group=group) | events.GroupUpdated(group=group):
            change = "added" if isinstance(event, events.GroupAdded) else "updated"
            return ("group", change, group.id, group.name, list(group.members))
        case events.GroupRemoved(group_id=group):
            return ("group", "removed", group)
        case events.GroupMembersChanged(group_id=group, members=members):
            return ("members", group, list(members))
    raise AssertionError(event)


def do(registry: PromptRegistry, step: tuple[Any, ...]) -> None:
    """Take the step with the real registry."""
    name, *arguments = step
    if name == "apply":
        adapter, sightings = arguments
        observed = [
            seen(device, note=each[1], uv_index=each[0]) for device, each in sightings.items() if each is not None
        ]
        registry.apply(report(*observed, adapter=adapter, also=sightings))
    else:
        getattr(registry, name)(*arguments)


def shown_by(registry: PromptRegistry) -> Any:
    """Everything that the registry shows, as the model keeps it."""
    devices = {
        device.id: [
            device.room_id,
            device.attributes["state"],
            device.attributes["uv_index"],
            device.metadata.vendor_specific["note"],
        ]
        for device in registry.list_devices()
    }
    rooms = {room.id: room.name for room in registry.list_rooms()}
    groups = {group.id: (group.name, list(group.members)) for group in registry.list_groups()}
    return devices, rooms, groups


NAMES = {"a": ("a1", "a2", "a3"), "b": ("b1", "b2")}
DEVICES = st.sampled_from([*NAMES["a"], *NAMES["b"]])
ROOMS, GROUPS, LABELS = st.sampled_from(["r", "s"]), st.sampled_from(["g", "h"]), st.sampled_from(["One", "Two"])
SIGHTING = st.none() | st.tuples(st.integers(1, 2), st.integers(1, 2))
MEMBERS = st.lists(DEVICES, max_size=3)
REPORTS = [
    st.tuples(st.just("apply"), st.just(adapter), st.dictionaries(st.sampled_from(names), SIGHTING))
    for adapter, names in NAMES.items()
]
STEPS = st.one_of(
    *REPORTS,
    st.tuples(st.just("set_state"), st.sampled_from("ab"), st.sampled_from([ONLINE, OFFLINE])),
    st.tuples(st.just("put_room"), ROOMS, LABELS),
    st.tuples(st.just("remove_room"), ROOMS),
    st.tuples(st.just("assign_room"), DEVICES, st.none() | ROOMS),
    st.tuples(st.just("put_group"), GROUPS, LABELS, st.none() | MEMBERS),
    st.tuples(st.just("set_members"), GROUPS, MEMBERS),
    st.tuples(st.just("remove_group"), GROUPS),
)


@given(steps=st.lists(STEPS, min_size=5, max_size=40))
def test_whatever_happens_the_registry_does_what_the_model_says(steps: list[tuple[Any, ...]]) -> None:
    home, model = Home(), Model()
    for step in steps:
        expected = getattr(model, step[0])(*step[1:])
        if isinstance(expected, type):
            with pytest.raises(expected):
                do(home.registry, step)
            assert home.news() == [], step
        else:
            do(home.registry, step)
            assert [model_of(event) for event in home.news()] == expected, step
        assert shown_by(home.registry) == (model.devices, model.rooms, model.groups), step


@given(steps=st.lists(STEPS, min_size=5, max_size=40))
def test_times_move_exactly_with_changes_and_sightings(steps: list[tuple[Any, ...]]) -> None:
    home = Home()
    for step in steps:
        before = {device.id: device for device in home.registry.list_devices()}
        try:
            do(home.registry, step)
        except (Invalid, NotFound):
            continue
        for device in home.registry.list_devices():
            if (old := before.get(device.id)) is not None:
                was_seen = step[0] == "apply" and step[2].get(device.id) is not None
                assert (device.last_seen > old.last_seen) == was_seen
                assert (device.updated_at > old.updated_at) == (device.attributes != old.attributes)
