"""The first value of a restored device is not treated as a change. The times of changes are kept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from appliance.automations.change_times import ChangeTimes, Comparison
from appliance.automations.requirement import Requirement
from appliance.clock import ClockSteps, to_millis
from appliance.home.bus import Bus
from appliance.home.model import DeviceKind, Observation, Report
from appliance.store.record_keys import CHANGED_PREFIX
from tests.automations.homes import LAMP, device
from tests.fakes.automations import Card, automation, bench
from tests.fakes.clock import START, VirtualClock
from tests.fakes.registry import PromptRegistry, make

OTHER = "desk:light:1"


@pytest.mark.parametrize(
    ("shown", "fired"),
    [
        ([{"power": "off"}, {"power": "on"}], 1),
        ([{"power": "on"}, {"power": "off"}], 1),  # an unchanged observation also sets the baseline
        ([{"power": "off"}], 0),
    ],
)
@pytest.mark.parametrize("is_online_before", [False, True])
async def test_the_first_values_of_a_restored_device_are_not_a_change(
    shown: list[dict[str, str]], fired: int, is_online_before: bool, tmp_path: Path
) -> None:
    trigger = {"type": "device_state_change", "device_id": [LAMP, OTHER], "attribute": "power"}
    restored = [device({"power": "on", "state": "offline"}, each) for each in (LAMP, OTHER)]
    async with bench(tmp_path, automation(trigger), card=Card(devices=restored)) as it:
        await it.pass_by(1)
        if is_online_before:
            it.registry.set_state("desk", "online")
        for each in shown:
            it.show(**each)
            await it.pass_by(1)
        assert len(it.fired) == fired
        it.show(OTHER, power="off")
        await it.drain()
        assert len(it.fired) == fired, "each device has a baseline of its own"


POWER, BRIGHT = Comparison("power", Requirement()), Comparison("brightness", Requirement(above=2))
WATCHED = {LAMP: {POWER.key: POWER}}


class Bench:
    """A home with one lamp, whose times of change are stored."""

    def __init__(self) -> None:
        self.card = Card()
        self.clock = VirtualClock()
        self.bus = Bus()
        self.registry = PromptRegistry(self.bus, self.clock)
        self.show(power="off", brightness=1)

    def times(self) -> ChangeTimes:
        """Return the times of change after a restart."""
        times = ChangeTimes(self.card, self.registry, self.bus, ClockSteps(self.clock))
        times.watch(WATCHED)
        return times

    def show(self, **attributes: Any) -> None:
        """After one second, make the lamp report these attributes."""
        self.clock.suspend(1)
        seen = Observation(device_id=LAMP, kind=DeviceKind.LIGHT, attributes=attributes)
        self.registry.apply(Report(adapter="desk", observations=(seen,)))

    def since(self, times: ChangeTimes, comparison: Comparison = POWER) -> float:
        """Return the second since which the comparison has been true, or the second of the last change of power."""
        return (times.get(self.registry.get_device(LAMP), comparison) - START).total_seconds()


def test_for_secs_counts_from_each_attributes_change_even_after_a_restart() -> None:
    it = Bench()
    times = it.times()
    it.show(power="on", brightness=1)
    it.show(power="on", brightness=2)
    it.show(power="on", brightness=3)
    assert it.since(times) == it.since(it.times()) == 2
    for hours in (8, -1):
        it.clock.set(START + timedelta(hours=hours, seconds=4))
        assert it.since(times) == it.since(it.times()) == hours * 3600 + 2, "it is as long ago as it was"
    it.clock.set(START + timedelta(hours=-2))
    behind = it.times()
    it.clock.set(START)
    it.clock.suspend(7200)
    assert it.since(behind) == -3598, "after a start with a late clock, the stored time is all there is"


def test_an_unobserved_change_is_dated_by_the_latest_report() -> None:
    it = Bench()
    it.show(power="on", brightness=1)
    times = it.times()
    assert it.since(times) == 2
    it.show(power="on", brightness=2)
    assert it.since(times) == 2, "as it was before anything else changed"
    assert it.card.values == {
        CHANGED_PREFIX + LAMP: {"power": to_millis(times.get(it.registry.get_device(LAMP), POWER))}
    }


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ([1, 3, 4, 3], 2),
        ([1, 3, 1, 3], 4),
        ([1, 3, None, 4], 2),
        ([1, None, 3, 4], 3),
        ([3, 4, 5, 6], 1),
    ],
)
def test_a_range_counts_from_its_entry_over_gaps_and_restarts(values: list[int | None], seconds: int) -> None:
    it = Bench()
    it.clock.set(START)
    times = it.times()
    times.watch({LAMP: {BRIGHT.key: BRIGHT}})
    for value in values:
        it.show(power="on", **({} if value is None else {"brightness": value}))
    assert it.since(times, BRIGHT) == it.since(it.times(), BRIGHT) == seconds


def test_a_change_stores_the_times_of_all_comparisons_once(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Bench()
    times, stored = it.times(), list[int]()
    ranges = [Comparison("brightness", Requirement(above=number / 10)) for number in range(500)]
    times.watch({LAMP: {each.key: each for each in ranges}})
    put_later = it.card.put_later

    def count(key: str, value: Any, *, is_minor: bool = False) -> None:
        stored.append(len(value))
        put_later(key, value, is_minor=is_minor)

    monkeypatch.setattr(it.card, "put_later", count)
    for brightness in (1, 50, 1, 50):
        it.show(power="off", brightness=brightness)
    assert stored == [500, 500], "an entry into the ranges costs one record, and a fall costs nothing"
    assert it.since(times, ranges[20]) == 5 and it.since(times, ranges[5]) == 1


def test_comparisons_by_a_new_alias_count_from_the_change_before() -> None:
    it = Bench()
    times = it.times()
    it.show(power="on", brightness=1)
    times.watch({LAMP: {POWER.key: POWER}, "reading": {BRIGHT.key: BRIGHT}})
    it.show(power="off", brightness=3)
    make(it.registry, lambda layout, devices: layout.set_alias(LAMP, "reading", devices))
    it.show(power="on", brightness=3)
    it.show(power="off", brightness=3)
    assert it.since(times, BRIGHT) == 3


def test_baselines_of_unused_and_deleted_devices_are_removed() -> None:
    it = Bench()
    times = it.times()
    it.show(power="on", brightness=1)
    times.watch({})
    assert it.card.values == {}
    times.watch(WATCHED)
    it.show(power="off", brightness=1)
    assert it.card.values[CHANGED_PREFIX + LAMP] is not None
    it.registry.remove("desk", LAMP)
    assert it.card.values == {}


def test_invalid_entries_on_the_card_are_ignored() -> None:
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
