"""Since when something is as it is: what a restored device shows first is no change, and times of change are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from appliance.automations.engine import Baseline
from appliance.automations.environment import CHANGED_PREFIX, ChangeTimes
from appliance.clock import to_millis
from appliance.home.bus import Bus
from appliance.home.events import AdapterAnswered, Event
from appliance.home.model import Device, DeviceKind, Observation, Report
from appliance.home.registry import Registry
from appliance.store.records import Storage
from tests.automations.homes import LAMP, NOW, device
from tests.fakes.automations import Card, automation, bench
from tests.fakes.clock import START, VirtualClock
from tests.fakes.registry import PromptRegistry

OTHER = "desk:light:1"


class Start:
    """A home that was restored with one lamp; `changes` tells of each event that is no baseline what became."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.clock = VirtualClock(NOW)
        self.registry = Registry(self.bus, self.clock)
        self.registry.restore(self.registry.layout, [restored()])
        self.baseline = Baseline(self.registry)
        self.changes: list[Mapping[str, Any]] = []
        self.bus.listen(self.note)

    def note(self, event: Event) -> None:
        """Take note of an event."""
        if not self.baseline.observe(event)[0] and not isinstance(event, AdapterAnswered):
            self.changes.append(event.device.attributes)  # type: ignore[attr-defined]

    async def observe(self, device_id: str, **attributes: Any) -> None:
        """An adapter sees the device a second later, and says that it was answered, as links do."""
        await self.clock.advance(1, sleepers=0)
        seen = Observation(device_id=device_id, kind=DeviceKind.LIGHT, attributes=attributes, vendor_specific={})
        present = frozenset({LAMP, OTHER})
        self.registry.apply(Report(adapter="desk", present=present, observations=(seen,)))
        self.bus.publish(AdapterAnswered(adapter="desk", at=self.clock.now()))


def restored() -> Device:
    """The lamp as the store knows it."""
    return device({"power": "on", "state": "offline"})


async def test_the_first_observation_sets_the_baseline_and_the_next_is_a_change() -> None:
    start = Start()
    await start.observe(LAMP, power="off")
    assert start.changes == []
    await start.observe(LAMP, power="on")
    assert start.changes == [{"power": "on", "state": "online"}]


async def test_a_device_that_is_called_online_before_it_is_observed_still_has_no_baseline() -> None:
    start = Start()
    start.registry.set_state("desk", "online")
    await start.observe(LAMP, power="off")
    assert start.changes == []
    await start.observe(LAMP, power="on")
    assert len(start.changes) == 1


async def test_a_sighting_that_changes_nothing_sets_the_baseline_too() -> None:
    start = Start()
    start.registry.set_state("desk", "online")
    await start.observe(LAMP, power="on")
    await start.observe(LAMP, power="off")
    assert start.changes == [{"power": "off", "state": "online"}]


async def test_the_baseline_of_one_device_is_not_that_of_another() -> None:
    start = Start()
    await start.observe(OTHER, power="on")
    await start.observe(OTHER, power="off")
    assert [each["power"] for each in start.changes] == ["on", "off"]
    await start.observe(LAMP, power="off")
    assert len(start.changes) == 2


WATCHED = {LAMP: frozenset({"power"})}


class Bench:
    """A home with one lamp, whose times of change are kept on a card."""

    def __init__(self) -> None:
        self.card = Card()
        self.clock = VirtualClock()
        self.bus = Bus()
        self.registry = PromptRegistry(self.bus, self.clock)
        self.show(power="off", brightness=1)

    def times(self) -> ChangeTimes:
        """As after a start."""

        async def put(_: Any) -> None:
            raise AssertionError("nobody waits for the card")

        storage = Storage(stored=self.card, remember=self.card.values.__setitem__, put=put)
        times = ChangeTimes(storage, self.bus, self.clock)
        times.watch(WATCHED)
        return times

    def show(self, **attributes: Any) -> None:
        """Let the lamp show this, a second after the last time."""
        self.clock.suspend(1)
        seen = Observation(device_id=LAMP, kind=DeviceKind.LIGHT, attributes=attributes)
        self.registry.apply(Report(adapter="desk", observations=(seen,)))

    def since(self, times: ChangeTimes) -> float:
        """The second at which the power last changed."""
        return (times.get(self.registry.get_device(LAMP), "power") - START).total_seconds()


def test_each_attribute_counts_from_its_own_change_and_does_so_after_a_restart() -> None:
    it = Bench()
    times = it.times()
    it.show(power="on", brightness=1)
    it.show(power="on", brightness=2)
    it.show(power="on", brightness=3)
    assert it.since(times) == it.since(it.times()) == 2


def test_where_nobody_saw_the_change_it_is_at_the_latest_that_of_the_device() -> None:
    it = Bench()
    it.show(power="on", brightness=1)
    times = it.times()
    assert it.since(times) == 2
    it.show(power="on", brightness=2)
    assert it.since(times) == 2, "as it was before anything else changed"
    assert it.card.values == {
        CHANGED_PREFIX + LAMP: {"power": to_millis(times.get(it.registry.get_device(LAMP), "power"))}
    }


def test_what_nobody_asks_for_any_more_and_a_device_that_is_gone_are_forgotten() -> None:
    it = Bench()
    times = it.times()
    it.show(power="on", brightness=1)
    times.watch({})
    assert it.card.values == {CHANGED_PREFIX + LAMP: None}
    times.watch(WATCHED)
    it.show(power="off", brightness=1)
    assert it.card.values[CHANGED_PREFIX + LAMP] is not None
    it.registry.remove("desk", LAMP)
    assert it.card.values == {CHANGED_PREFIX + LAMP: None}


def test_what_cannot_be_understood_on_the_card_is_as_if_it_were_not_there() -> None:
    it = Bench()
    strange: tuple[Any, ...] = (None, [], {"power": "yesterday"}, {"power": None})
    for stored in strange:
        it.card.values = {CHANGED_PREFIX + LAMP: stored}
        assert it.since(it.times()) == 1


async def test_the_attributes_of_nested_conditions_are_watched(tmp_path: Path) -> None:
    lasting = {"type": "device_state", "device_id": LAMP, "attribute": "brightness", "equals": 20, "for_secs": 60}
    conditions = [{"type": "any", "conditions": [lasting]}]
    async with bench(tmp_path, automation({"type": "interval", "every_secs": 60}, conditions=conditions)) as it:
        await it.pass_by(30)
        it.show(brightness=21)
        it.show(brightness=20)
        await it.pass_by(60)
        it.show(power="on")
        assert it.fired == []
        await it.pass_by(30)
        assert it.fired == ["a"]
