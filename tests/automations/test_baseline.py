"""The baseline after a start: what a restored device shows first is no change, what comes then is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.automations.engine import Baseline
from appliance.home.bus import Bus
from appliance.home.events import AdapterAnswered, Event
from appliance.home.model import Device, DeviceKind, Observation, Report
from appliance.home.registry import Registry
from tests.automations.homes import LAMP, NOW, device
from tests.fakes.clock import VirtualClock

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
