"""Device history: all values are returned unchanged, within a size limit that devices share fairly."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance.history.device_history import DeviceHistory, Resolution
from appliance.history.period import Period
from appliance.history.series import SERIES_BYTES, Series
from appliance.home.bus import Bus
from appliance.home.events import DeviceRoomChanged, DeviceStateChanged
from appliance.home.model import Device, DeviceKind, Observation, Report, changed_attributes
from tests.fakes.clock import VirtualClock
from tests.fakes.registry import PromptRegistry
from tests.fakes.rows import each_row

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALL = Period(limit=1000)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 62), 1 << 62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "unit", "x"]), inner),
    max_leaves=4,
)


class Home:
    """Devices whose changes are recorded in a history."""

    def __init__(self, max_bytes: int = 1 << 22) -> None:
        self.bus = Bus()
        self.clock = VirtualClock(NOON)
        self.history = DeviceHistory(self.bus, self.clock, max_bytes)
        self.devices: dict[str, Device] = {}
        self._shape = _a_device()

    def show(self, device_id: str, at: datetime, **attributes: Any) -> None:
        previous = self.devices.get(device_id)
        device = replace(previous or self._shape, id=device_id, attributes=attributes, updated_at=at, last_seen=at)
        self.devices[device_id] = device
        self.bus.publish(
            DeviceStateChanged(device=device, previous=previous, changed=changed_attributes(previous, device))
        )

    def values(self, device_id: str, attribute: str, period: Period = ALL, *more: Resolution) -> list[Any]:
        """Return the attribute's values in the history, newest first."""
        return [entry.value for entry in self.history.list_values(device_id, attribute, period, *more)]


def _a_device() -> Device:
    """Return a device with all fields."""
    registry = PromptRegistry(Bus(), VirtualClock(NOON))
    seen = Observation(device_id="x:1", kind=DeviceKind.SENSOR, attributes={}, vendor_specific={})
    registry.apply(Report(adapter="x", present=frozenset({"x:1"}), observations=(seen,)))
    return registry.get_device("x:1")


def after(seconds: float) -> datetime:
    """Return the instant that is this number of seconds after noon."""
    return NOON + timedelta(seconds=seconds)


@given(st.lists(JSON, min_size=1, max_size=8))
def test_a_series_returns_every_value_unchanged(values: list[Any]) -> None:
    series = Series()
    for at, value in enumerate(values):
        series.append(at, value)
    found = [series.value_at(index) for index in range(len(series))]
    assert found == values and list(map(repr, found)) == list(map(repr, (_ordered(value) for value in values)))


def _ordered(value: Any) -> Any:
    """Return a measurement with its keys in the stored order: the number first."""
    is_measurement = isinstance(value, dict) and type(value.get("value")) in (int, float)
    is_measurement = is_measurement and abs(value["value"]) <= 1 << 53
    return {"value": value["value"], **value} if is_measurement else value


def test_a_period_includes_its_ends_and_a_limit_keeps_the_newest() -> None:
    home = Home()
    for second in range(300):
        home.show("a:1", after(second), battery=second)
    period = Period(start=after(10), end=after(12))
    assert home.values("a:1", "battery", period) == [12, 11, 10]
    assert len([*home.history.iterate_states(home.devices["a:1"], period)]) == 3
    assert home.values("a:1", "battery", Period(end=after(12), limit=2)) == [12, 11]
    assert len(home.values("a:1", "battery", Period())) == 200
    between = Period(start=after(10) + timedelta(microseconds=1), end=after(11) - timedelta(microseconds=1))
    assert home.values("a:1", "battery", between) == []
    whole = Period(start=datetime.min.replace(tzinfo=UTC), end=datetime.max.replace(tzinfo=UTC), limit=1000)
    assert len(home.values("a:1", "battery", whole)) == 300


def test_a_resolution_keeps_the_last_entry_of_each_minute_or_hour() -> None:
    home = Home()
    for second in range(0, 7200, 10):
        home.show("a:1", after(second), battery=second)
    assert home.values("a:1", "battery", ALL, Resolution.HOUR) == [7190, 3590]
    assert home.values("a:1", "battery", Period(limit=2), Resolution.MINUTE) == [7190, 7130]
    states = [*home.history.iterate_states(home.devices["a:1"], ALL, Resolution.DAY)]
    assert [entry.device.attributes for entry in states] == [{"battery": 7190}]


def test_a_device_is_shown_in_the_room_that_it_was_in() -> None:
    home = Home()
    home.show("a:1", after(0), battery=1)
    home.clock.suspend(5)
    home.bus.publish(DeviceRoomChanged(device_id="a:1", room_id="attic", previous="cellar"))
    home.bus.publish(DeviceRoomChanged(device_id="never:seen", room_id="attic"))
    home.show("a:1", after(9), battery=2)
    states = [*home.history.iterate_states(home.devices["a:1"], ALL)]
    assert [entry.device.room_id for entry in states] == ["attic", "cellar"]


def test_after_the_clock_is_set_back_no_entry_is_in_the_future() -> None:
    home = Home()
    home.show("a:1", after(9000), battery=1)
    home.show("a:1", after(9001), battery=2)
    home.show("a:1", after(0), battery=3)
    entries = home.history.list_values("a:1", "battery", ALL)
    assert [(entry.observed_at, entry.value) for entry in entries] == [(after(0), 3), (after(0), 2), (after(0), 1)]


@pytest.mark.slow
def test_a_chatty_sensor_does_not_displace_others() -> None:
    home = Home(max_bytes=96 << 10)
    for hour in range(40):
        for quiet in range(10):
            home.show(f"quiet:{quiet}", after(hour * 3600), temperature={"value": hour / 2, "unit": "celsius"})
        for second in range(0, 3600, 10):
            home.show("chatty:1", after(hour * 3600 + second), battery=second % 100)
    for quiet in range(10):
        assert len(home.values(f"quiet:{quiet}", "temperature")) == 40
    hours = home.values("chatty:1", "battery", ALL, Resolution.HOUR)
    assert len(hours) == 40, "old values of the chatty device have thinned out to one per hour"
    assert home.history.figures()["bytes"] <= 96 << 10


def test_without_room_for_more_series_the_least_recently_changed_is_dropped() -> None:
    home = Home(max_bytes=4 * SERIES_BYTES + 100)
    for second, device in enumerate(["a:1", "b:1", "c:1", "a:1", "d:1", "e:1"]):
        home.show(device, after(second), battery=second)
    assert {device: home.values(device, "battery") for device in sorted(home.devices)} == {
        "a:1": [3], "b:1": [], "c:1": [2], "d:1": [4], "e:1": [5]
    }  # fmt: skip


def test_the_packed_history_of_a_removed_device_is_complete_when_it_is_needed() -> None:
    home = Home()
    for second in range(50):
        home.show("a", after(second), power="on" if second % 2 else "off", level={"value": second / 2, "unit": "%"})
        home.show("b", after(second), power="on")
    figures, states = home.history.figures(), [*home.history.iterate_states(home.devices["a"], ALL)]
    for device_id in ("a", "b", "missing", "a"):
        home.history.pack(device_id)
    assert 0 < home.history.figures()["bytes"] < figures["bytes"] and home.history.figures()["entries"] == 0
    assert [*home.history.iterate_states(home.devices["a"], ALL)] == states
    home.history.pack("a")
    home.show("a", after(60), power="dim", level={"value": 7, "unit": "%"})
    assert [each.device.attributes for each in [*home.history.iterate_states(home.devices["a"], ALL)][1:]] == [
        each.device.attributes for each in states
    ]
    assert home.values("b", "power") == ["on"]
    assert home.history.figures()["entries"] == figures["entries"] + 2


def test_without_room_packed_histories_are_dropped_first_the_oldest_of_them() -> None:
    home = Home(max_bytes=40 * SERIES_BYTES)
    for number in range(30):
        home.show(f"gone{number}", after(number), power="on")
        home.history.pack(f"gone{number}")
    for number in range(35):
        home.show(f"kept{number}", after(100 + number), power="on")
    assert home.history.figures()["bytes"] <= 40 * SERIES_BYTES
    known = [number for number in range(30) if home.values(f"gone{number}", "power")]
    assert 0 < len(known) < 30 and known == [*range(30 - len(known), 30)]


def test_each_of_many_devices_keeps_a_day_in_hours() -> None:
    """The budget for the 100 devices is a twentieth of four megabytes, so each device has the same share as in a
    home with 2,000 devices."""
    home = Home(max_bytes=(4 << 20) * 7 // 8 // 20)
    for hour in range(60):
        for number in range(100):
            shown = {"temperature": {"value": hour / 2, "unit": "°C"}, "state": "online"}
            home.show(f"d:{number}", after(hour * 3600 + number), **shown)
    for number in range(100):
        assert len(home.values(f"d:{number}", "temperature", ALL, Resolution.HOUR)) >= 24
        assert home.values(f"d:{number}", "state") == ["online"]


@each_row("max_bytes", [1 << 12, 1 << 15])
@pytest.mark.slow
def test_the_budget_holds_for_any_values(max_bytes: int) -> None:
    home, rng = Home(max_bytes=max_bytes), random.Random(7)
    for second in range(3000):
        value = rng.choice([second, "x" * rng.randrange(200), {"value": second / 7, "unit": f"u{second % 50}"}])
        home.show(f"d:{rng.randrange(60)}", after(second * 30), **{f"custom.d.{rng.randrange(3)}": value})
        figures = home.history.figures()
        assert figures["bytes"] <= max_bytes
    home.show("d:last", after(10**6), title="y" * (2 * max_bytes))
    assert home.history.figures()["bytes"] <= max_bytes


@pytest.mark.slow
def test_a_month_of_a_usual_home_stays_useful_within_four_megabytes(capsys: pytest.CaptureFixture[str]) -> None:
    """60 devices have 200 attributes. A million events are 165 changes of each attribute per day."""
    budget, days, events = (4 << 20) * 7 // 8, 30, 1_000_000
    home, step = Home(budget), days * 86_400 / events
    _report(home, random.Random(1), events, step)
    figures, last = home.history.figures(), after(events * step)
    counts, days_back = [], []
    for device_id, device in home.devices.items():
        for attribute in device.attributes:
            hours = home.history.list_values(device_id, attribute, Period(limit=1000), Resolution.HOUR)
            counts.append(len(hours))
            days_back.append((last - hours[-1].observed_at).total_seconds() / 86_400)
    with capsys.disabled():
        print(f"\n  {events} events: {figures['bytes']} bytes counted of {budget}")
        print(f"  {len(counts)} attributes, each in at least {min(counts)} hours, {min(days_back):.1f} days back")
    assert figures["bytes"] <= budget
    assert len(counts) == 200 and min(counts) >= 600 and min(days_back) >= 28


def _report(home: Home, rng: random.Random, events: int, step: float) -> None:
    """Make the devices report this number of changes, one per `step` seconds."""
    units = [{"unit": "celsius"}, {"unit": "percent"}, {"unit": "lux"}]
    devices = [[f"custom.d.{number}" for number in range(3 + (index % 3 == 0))] for index in range(60)]
    shown: list[dict[str, Any]] = [dict.fromkeys(names, 0) for names in devices]
    for number in range(events):
        index = number % 60
        name = rng.choice(devices[index])
        value: Any = number % 101 if name.endswith("0") else {"value": rng.randrange(4000) / 10, **units[number % 3]}
        shown[index] = {**shown[index], name: value}
        home.show(f"d:{index}", after(number * step), **shown[index])


def test_pulses_within_a_millisecond_are_kept_in_order() -> None:
    clock, bus = VirtualClock(), Bus()
    registry, history = PromptRegistry(bus, clock), DeviceHistory(bus, clock, 1 << 20)
    seen = Observation(device_id="a:1", kind=DeviceKind.SENSOR, attributes={"motion": "clear"})
    registry.apply(Report(adapter="a", observations=(seen,)))
    for value in ("detected", "clear", "detected", "clear"):
        registry.update_attributes("a", "a:1", {"motion": value})
    values = [entry.value for entry in history.list_values("a:1", "motion", Period())]
    assert values == ["clear", "detected", "clear", "detected", "clear"]
