"""The registry: the state after a change, the published events in order, and changes without an effect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from appliance.adapters.health_publisher import MAX_SET_AT_ONCE
from appliance.adapters.publisher import MAX_ATTRIBUTES_AT_ONCE, MAX_OBSERVATIONS_AT_ONCE, Publisher
from appliance.clock import Clock
from appliance.errors import NotFound, Unreachable
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.command_specs import CommandSpec
from appliance.home.model import OFFLINE, Device, DeviceKind, Observation, Report
from appliance.store.records import SectionKind, encode_device, read_devices
from appliance.store.storage import DocumentSnapshot
from tests.fakes.registry import PromptRegistry, make
from tests.fakes.rows import each_row

NOON = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


class TickingClock(Clock):
    """A clock that advances one second at each reading, so that all readings differ."""

    def __init__(self) -> None:
        self.reads = 0

    def now(self) -> datetime:
        self.reads += 1
        return NOON + timedelta(seconds=self.reads)


class SteppingClock(Clock):
    """A clock on which every step of long work takes a second."""

    def __init__(self) -> None:
        self.steps = 0

    def monotonic(self) -> float:
        self.steps += 1
        return float(self.steps)


class Home:
    """A registry and its published events."""

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
        published = self.received[:]
        self.received.clear()
        return published

    def device(self, device_id: str = "a:1") -> Device:
        return self.registry.get_device(device_id)


def seen(device_id: str = "a:1", note: Any = None, **attributes: Any) -> Observation:
    """Return an observation of a light. `note` is the vendor's own data."""
    return Observation(
        device_id=device_id, kind=DeviceKind.LIGHT, attributes=attributes, vendor_specific={"note": note}
    )


def report(*observations: Observation, adapter: str = "a", also: Iterable[str] = ()) -> Report:
    """Return a report of these devices, and of devices in `also`, which are present but unreadable."""
    present = frozenset({*(each.device_id for each in observations), *also})
    return Report(adapter=adapter, present=present, observations=observations)


class TestReports:
    def test_a_dropped_attribute_is_unknown(self) -> None:
        home = Home(report(seen(power="on", brightness=30)))
        home.registry.apply(report(seen(power="off", brightness=3000, nonsense=1)))
        assert home.device().attributes == {"power": "off", "state": "online"}
        home.registry.apply(report(replace(seen(brightness=30), wrong={"power": "cannot be read"})))
        assert home.device().attributes == {"brightness": 30, "state": "online"}
        home.registry.update_attributes("a", "a:1", {"brightness": "bright", "power": "on", "state": "lost"})
        assert home.device().attributes == {"power": "on", "state": "online"}

    def test_unchanged_values_are_the_same_object(self) -> None:
        home = Home(report(seen(power="on")))
        before = home.device()
        home.registry.apply(report(seen(power="on")))
        assert home.device().attributes is before.attributes
        assert home.device().metadata is before.metadata

    @each_row(
        ("details", "has_new_commands"),
        [
            ({"commands": (CommandSpec(capability="power", actions=("on",)),)}, True),
            ({"vendor_specific": {"note": 2}}, False),
            ({"kind": DeviceKind.SWITCH}, False),
            ({"name": "Key Light"}, False),
        ],
    )
    def test_new_details_are_published_once_without_a_change_of_values(
        self, details: dict[str, Any], has_new_commands: bool
    ) -> None:
        home = Home(report(seen(power="on")))
        make(home.registry, lambda layout, devices: layout.rename_device("a:1", "Lamp", devices))
        home.news()
        before = home.device()
        for _ in range(2):
            home.registry.apply(report(replace(seen(power="on"), **details)))
        assert home.device().updated_at == before.updated_at
        [event] = home.news()
        assert isinstance(event, events.DeviceDetailsChanged)
        assert event.has_new_commands is has_new_commands

    def test_a_changed_attribute_updates_both_times_and_publishes_the_old_value(self) -> None:
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

    @each_row("other", [50.0, 50])
    def test_fifty_and_fifty_point_zero_are_equal(self, other: float) -> None:
        home = Home(report(seen(uv_index=50)))
        home.registry.apply(report(seen(uv_index=other)))
        assert home.news() == []

    def test_an_event_is_published_after_its_change(self) -> None:
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
        home.registry.remove("a", "a:1")
        assert shown == [True] * 4

    @each_row("first", [{"kept": frozenset({"power", "brightness"})}, {"pushed": frozenset({"power"})}, {}])
    def test_the_values_of_a_restored_device_are_published_once(self, first: dict[str, frozenset[str]]) -> None:
        home = Home(report(seen(power="on", brightness=3)))
        home.registry.restore(home.registry.layout, [home.device()])
        again = seen(power="on", brightness=3)
        for observation in (replace(again, **first), replace(again, **first), again, replace(again, **first)):
            home.registry.apply(Report(adapter="a", observations=(observation,)))
        home.registry.update_attributes("a", "a:1", {"power": "on"})
        shown = [each.attributes for each in home.news() if isinstance(each, events.AttributesFirstReported)]
        assert sorted(name for names in shown for name in names) == sorted(home.device().attributes)
        assert shown[0] >= first.get("kept", frozenset())


class TestQuestions:
    def test_the_list_of_devices_is_the_same_object_until_a_device_changes(self) -> None:
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
    def test_an_unknown_id_is_named(self, ask: Any, sentence: str) -> None:
        home = Home(report(seen()))
        with pytest.raises(NotFound) as refused:
            ask(home.registry)
        assert str(refused.value) == sentence
        assert home.news() == []


def test_an_observation_keeps_names_rooms_and_aliases() -> None:
    home = Home(Report(adapter="a", observations=(seen(power="off"),)))
    make(home.registry, lambda layout, devices: layout.set_alias("a:1", "lamp", devices))
    make(home.registry, lambda layout, devices: layout.rename_device("a:1", "Lamp", devices))
    home.registry.apply(Report(adapter="a", observations=(seen(power="on"),)))
    assert (home.device().alias, home.device("lamp").name) == ("lamp", "Lamp")


def test_a_value_of_none_ends_an_attribute_and_its_last_value_is_known() -> None:
    home = Home(Report(adapter="a", observations=(seen(power="off", brightness=5),)))
    home.registry.update_attributes("a", "a:1", {"brightness": None})
    (event,) = home.news()
    assert isinstance(event, events.DeviceStateChanged) and event.changed == {"brightness"}
    assert "brightness" not in home.device().attributes and home.device().known("brightness") == (5,)


def test_last_values_are_stored_with_the_device() -> None:
    home = Home(Report(adapter="a", observations=(seen(power="off", brightness=5),)))
    home.registry.apply(Report(adapter="a", observations=(seen(power="off"),)))
    stored = {key: orjson.dumps(value) for key, value in encode_device(home.device(), {}).items()}
    (restored,) = read_devices(DocumentSnapshot(stored), home.registry.layout)
    assert restored.known("brightness") == (5,) and restored.last == home.device().last


LIGHTS = [DeviceKind.LIGHT]


@pytest.mark.parametrize(
    ("section", "is_restored", "is_restored_without_type"),
    [
        (SectionKind("wled", LIGHTS), True, True),
        (SectionKind("wled", [DeviceKind.SENSOR]), False, False),
        (SectionKind("mine", LIGHTS), False, True),
        (None, False, False),
    ],
)
def test_a_device_is_restored_only_for_a_section_of_its_kind(
    section: SectionKind | None, *, is_restored: bool, is_restored_without_type: bool
) -> None:
    home = Home(Report(adapter="a", observations=(seen(power="off"),)))
    layout, sections = home.registry.layout, {} if section is None else {"a": section}
    for before, expected in (({"a": SectionKind("wled", LIGHTS)}, is_restored), ({}, is_restored_without_type)):
        encoded = encode_device(home.device(), before)
        document = DocumentSnapshot({key: orjson.dumps(value) for key, value in encoded.items()})
        assert len(read_devices(document, layout, sections=sections)) == expected
        assert len(read_devices(document, layout)) == 1


def test_a_poll_does_not_restore_a_value_that_a_push_removed() -> None:
    home = Home(Report(adapter="a", observations=(seen(power="off", brightness=5),)))
    publish = Publisher("a", home.registry, home.bus, home.clock)
    with publish.reading() as reading:
        publish.attributes("a:1", {"brightness": None, "power": "on"})
        report = Report(adapter="a", observations=(seen(power="off", brightness=5),))
        list(publish.report_parts(report, reading))
    assert home.device().attributes == {"power": "on", "state": "online"}


async def test_an_outage_of_many_devices_changes_some_of_them_per_turn() -> None:
    home, count = Home(), 3 * MAX_SET_AT_ONCE
    publish = Publisher("a", home.registry, home.bus, home.clock)
    many = (Observation(device_id=f"a:{n}", kind=DeviceKind.LIGHT, attributes={"power": "on"}) for n in range(count))
    await publish.full_list(many)

    def count_offline() -> int:
        return [each.attributes["state"] for each in home.registry.list_devices()].count("offline")

    publish.lost(Unreachable("x"))
    assert count_offline() == MAX_SET_AT_ONCE
    await asyncio.sleep(0.001)
    publish.reached()
    for _ in range(5):
        await asyncio.sleep(0)
    assert count_offline() == 0, "a newer state ends the work of an older one"
    publish.lost(Unreachable("x"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert count_offline() == count


def test_a_part_of_a_report_contains_few_attributes() -> None:
    home = Home()
    publish = Publisher("a", home.registry, home.bus, home.clock)

    def count_parts(*sizes: int) -> int:
        devices = [
            Observation(
                device_id=f"a:{number}",
                kind=DeviceKind.SENSOR,
                attributes={f"custom.a.{name}": 1 for name in range(size)},
            )
            for number, size in enumerate(sizes)
        ]
        parts = len(list(publish.report_parts(Report(adapter="a", observations=tuple(devices))))) + 1
        assert [len(home.registry.get_device(each.device_id).attributes) - 1 for each in devices] == [*sizes]
        return parts

    most = MAX_ATTRIBUTES_AT_ONCE
    assert count_parts(*[1] * 2 * MAX_OBSERVATIONS_AT_ONCE) == 2
    assert count_parts(1, 5 * most, 1, 1, 5 * most) == 4, "a large device is a part of its own"
    assert count_parts(most // 2, most // 2, most, most) == 3


@pytest.mark.parametrize("work", ["a layout change", "the repetition of doubtful values"])
def test_long_work_publishes_present_values_even_after_devices_have_been_removed(work: str) -> None:
    home = Home(report(*(seen(f"a:{number}", brightness=1, power="off") for number in (1, 2, 3))))
    registry = home.registry
    if work == "a layout change":
        steps = registry.commit(
            registry.preview(
                lambda layout, devices: layout.rename_device("a:1", "One", devices).rename_device(
                    "a:2", "Two", devices
                ),
                registry.layout,
            )
        )
    else:
        for device_id in ("a:1", "a:2"):
            registry.doubt(device_id, frozenset({"brightness"}))
        steps = registry.repeat_doubtful()
    next(steps)
    registry.remove("a", "a:3")
    registry.update_attributes("a", "a:2", {"power": "on"})
    home.news()
    for _ in steps:
        pass
    (event,) = home.news()
    assert isinstance(event, events.DeviceUpdated | events.DoubtfulValuesRepeated)
    assert event.device is home.device("a:2")


def test_thousands_of_missing_devices_are_removed_in_steps() -> None:
    home = Home()
    publish = Publisher("a", home.registry, home.bus, home.clock)
    lights = [Observation(device_id=f"a:{n}", kind=DeviceKind.LIGHT, attributes={"power": "on"}) for n in range(9)]
    list(publish.full_list_parts(lights))
    with publish.reading() as reading:
        report = Report(adapter="a", present=frozenset({"a:0"}), observations=tuple(lights[:1]))
        counts = []
        for _ in publish.report_parts(report, reading):
            counts.append(len(home.registry.list_devices()))
            if len(counts) == 3:
                publish.device(lights[8])
        assert counts == [9, 8, 7, 6, 5, 4, 3, 2]
    assert [each.id for each in home.registry.list_devices()] == ["a:0", "a:8"], "the newer report wins"


async def test_other_tasks_run_while_a_full_list_removes_devices() -> None:
    home, counts = Home(), list[int]()
    publish = Publisher("a", home.registry, home.bus, SteppingClock())
    await publish.full_list(Observation(device_id=f"a:{n}", kind=DeviceKind.LIGHT, attributes={}) for n in range(9))

    async def watch() -> None:
        while not counts or counts[-1]:
            counts.append(len(home.registry.list_devices()))
            await asyncio.sleep(0)

    await asyncio.gather(publish.full_list(()), watch())
    assert sorted(set(counts)) == [*range(10)]


def test_a_section_without_devices_leaves_nothing() -> None:
    home = Home()
    for name in ("a", "b"):
        Publisher(name, home.registry, home.bus, Clock()).report(
            Report(
                adapter=name, observations=(Observation(device_id=f"{name}:1", kind=DeviceKind.LIGHT, attributes={}),)
            )
        )
    for _ in home.registry.remove_section("a"):
        pass
    assert [*home.registry.ids_of("a")] == [*home.registry.ids_of("never")] == []
    assert [*home.registry._by_adapter] == ["b"]
