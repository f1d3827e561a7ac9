"""Gaps, alarms, and first values: a table of examples, and random sequences that are compared with a small model
of the rules."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, field

from appliance.automations.requirement import Requirement
from appliance.home.model import DeviceKind, Info, Observation, Report
from appliance.home.registry import Registry
from tests.automations.homes import NOW, device
from tests.fakes.automations import Bench, Card, automation, bench

SENSOR = "desk:sensor"
VALUE = "custom.desk.value"
GAP = None
RESTART = "restart"
FLUSH, KILL = "flush", "kill"
"""A kill restores the devices as they were at the last flush or restart."""
SECTION = "section"
"""A reload removes the sensor's section, and another reload adds the section again."""


class Pushed(Struct, frozen=True):
    """A value that the device pushes. Values without this marker are polled."""

    value: Any


def trigger_of(attribute: str, **more: Any) -> dict[str, Any]:
    """Return a trigger of the sensor's attribute."""
    return {"type": "device_state_change", "device_id": SENSOR, "attribute": attribute, **more}


def observe(it: Bench, attribute: str, shown: Any, device_class: str | None = None) -> None:
    """Make the sensor report a value or a gap, polled or pushed."""
    if isinstance(shown, Pushed) and it.registry.find_devices([SENSOR]):
        it.registry.update_attributes("desk", SENSOR, {attribute: shown.value})
        return
    value = shown.value if isinstance(shown, Pushed) else shown
    seen = Observation(
        device_id=SENSOR,
        kind=DeviceKind.SENSOR,
        attributes={} if value is None else {attribute: value},
        info=Info(device_class=device_class),
    )
    it.registry.apply(Report(adapter="desk", observations=(seen,)))


def replace_section(registry: Registry) -> None:
    stored = [each for each in registry.list_devices() if each.metadata.source == "desk"]
    for step in (registry.remove_section("desk"), registry.restore_section(stored)):
        for _ in step:
            pass


async def play(folder: Path, trigger: dict[str, Any], steps: list[Any], device_class: str | None = None) -> list[Any]:
    """Return the events after these steps: values, gaps, flushes, restarts, kills, replaced sections,
    and pauses as text."""
    card, now, stopped_at, fired = Card(devices=[device({}, "desk:other")]), NOW, NOW, []
    attribute = trigger["attribute"]
    remaining = list(steps)
    while remaining:
        flushed, step = card.devices, None
        async with bench(folder, automation(trigger), card=card, start=now, stopped_at=stopped_at) as it:
            while remaining:
                step = remaining.pop(0)
                if step in (RESTART, KILL):
                    break
                if step == FLUSH:
                    flushed = [*it.registry.list_devices()]
                    continue
                if step == SECTION:
                    replace_section(it.registry)
                elif isinstance(step, str) and step.endswith(" s"):
                    await it.pass_by(float(step.removesuffix(" s")))
                else:
                    observe(it, attribute, step, device_class)
                await it.drain()
            fired += it.events
            stopped_at = it.clock.now()
            now = stopped_at + timedelta(seconds=10)
        card.was_cut_off = step == KILL
        if card.was_cut_off:
            card.devices = flushed
    return fired


@pytest.mark.parametrize(
    ("trigger", "steps", "fires"),
    [
        # after a gap, a value is compared with the last known value
        (trigger_of(VALUE, above=22), [20, GAP, 25], 1),
        (trigger_of(VALUE, above=22), [25, GAP, 25], 0),
        (trigger_of(VALUE, above=22), [20, GAP, RESTART, GAP, 25], 1),
        (trigger_of(VALUE, above=22), [20, GAP, GAP, RESTART, GAP, GAP, Pushed(25)], 1),
        (trigger_of(VALUE, above=3), [2, 3, "4", 5], 1),
        (trigger_of(VALUE, above=3), [2, "4", GAP, RESTART, "4", 5], 1),
        (trigger_of(VALUE, above=3), [5, "4", 5], 0),
        (trigger_of(VALUE, equals="open"), ["closed", GAP, "open"], 1),
        (trigger_of(VALUE, equals="open"), ["open", GAP, "open"], 0),
        (trigger_of(VALUE), [1, GAP, 1], 0),
        (trigger_of(VALUE), [1, GAP, 2], 1),
        # alarms treat a first value as a change, other triggers do not
        (trigger_of(VALUE, equals="open"), ["open"], 0),
        (trigger_of(VALUE, equals=True), [GAP, True], 0),
        (trigger_of("water_leak", equals=True), [GAP, True], 1),
        (trigger_of("water_leak", equals=True), [True], 1),
        (trigger_of("water_leak", equals=True), [False, GAP, True], 1),
        (trigger_of("water_leak", equals=True), [True, GAP, True], 1),
        (trigger_of("water_leak", equals=False), [GAP, False], 0),
        (trigger_of("smoke"), [GAP, False], 0),
        (trigger_of("smoke"), [GAP, True], 1),
        (trigger_of(VALUE, equals="open", at_start=True), ["open"], 1),
        (trigger_of(VALUE, above=3, at_start=True), [5], 1),
        (trigger_of(VALUE, at_start=True), [5], 0),
        # the first observation after a start sets the baseline, but a pushed value does not
        (trigger_of(VALUE, equals="open"), ["closed", RESTART, "open", "closed", "open"], 1),
        (trigger_of(VALUE, equals="open"), ["closed", RESTART, Pushed("open")], 1),
        (trigger_of(VALUE, equals="open", at_start=True), ["closed", RESTART, "open"], 1),
        (trigger_of(VALUE, equals="open", at_start=True), ["open", RESTART, "open"], 1),
        (trigger_of("water_leak", equals=True), [False, RESTART, True], 1),
        (trigger_of("water_leak", equals=True), [True, RESTART, True], 1),
        (trigger_of("water_leak", equals=True, duration_secs=2), [False, RESTART, True, "3 s"], 1),
        # after a kill, an alarm may have ended and begun again after the last flush
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, True, True, RESTART, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, Pushed(True)], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, GAP, True], 2),
        (trigger_of("smoke", equals=True), [True, GAP, FLUSH, False, KILL, GAP, GAP, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, KILL, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, False, True], 2),
        (trigger_of("smoke", equals=True), [False, FLUSH, KILL, True], 1),
        # the values remain doubtful over restarts and reloads, until the device sends a value
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, RESTART, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, GAP, RESTART, RESTART, GAP, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, RESTART, True, RESTART, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, RESTART, KILL, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, SECTION, True, SECTION, True], 2),
        (trigger_of("smoke", equals=True), [True, FLUSH, False, KILL, SECTION, RESTART, SECTION, True], 2),
        (trigger_of("smoke", equals=True), [True, RESTART, SECTION, RESTART, True], 1),
        (trigger_of(VALUE, equals="open", at_start=True), ["open", FLUSH, KILL, RESTART, "open", RESTART, "open"], 2),
        (trigger_of("smoke"), [True, FLUSH, False, KILL, True], 3),
        (trigger_of("smoke", equals=True, duration_secs=2), [True, FLUSH, False, KILL, True, "3 s"], 1),
        (trigger_of("smoke", equals=True), [True, RESTART, False, RESTART, True], 2),
        (trigger_of("smoke", equals=False), [False, FLUSH, KILL, False], 0),
        (trigger_of("smoke", equals=False), [True, FLUSH, KILL, False], 1),
        (trigger_of(VALUE, equals="open", at_start=True), ["open", FLUSH, "closed", KILL, "open"], 2),
        (trigger_of(VALUE, above=3, at_start=True), [5, FLUSH, 2, KILL, 6], 2),
        (trigger_of(VALUE, at_start=True), [5, FLUSH, 2, KILL, 5], 1),
        (trigger_of(VALUE, equals="open"), ["closed", "open", FLUSH, "closed", KILL, "open"], 1),
        (trigger_of(VALUE), [1, FLUSH, KILL, 1], 0),
        (trigger_of(VALUE, above=3), [5, FLUSH, KILL, GAP, 6], 0),
        (trigger_of(VALUE, above=3), [2, FLUSH, KILL, GAP, 6], 1),
        # waits continue over a gap, and a wait that ends inside a gap fires once
        (trigger_of(VALUE, equals="open", duration_secs=5), ["closed", "open", "2 s", GAP, "open", "3 s"], 1),
        (trigger_of(VALUE, equals="open", duration_secs=5), ["closed", "open", "2 s", GAP, "9 s", "open", "9 s"], 1),
        (trigger_of(VALUE, equals="open", duration_secs=5), ["closed", "open", "2 s", GAP, "closed", "9 s"], 0),
        (trigger_of(VALUE, above=3, duration_secs=5), [2, 5, "2 s", "4", "3 s"], 1),
        (trigger_of(VALUE, above=3, debounce_secs=5), [2, 5, "2 s", GAP, 5, "3 s"], 1),
        (trigger_of(VALUE, above=3, debounce_secs=5), [2, 5, "2 s", GAP, 6, "3 s"], 0),
        (trigger_of(VALUE, above=3, debounce_secs=5), [2, 5, "2 s", GAP, 6, "5 s"], 1),
        (trigger_of(VALUE, equals="open", duration_secs=15), ["closed", "open", "2 s", GAP, RESTART, GAP, "3 s"], 1),
        (
            trigger_of(VALUE, equals="open", duration_secs=15),
            ["closed", "open", "2 s", GAP, RESTART, "closed", "9 s"],
            0,
        ),
    ],
)
async def test_examples_of_gaps(trigger: dict[str, Any], steps: list[Any], fires: int, tmp_path: Path) -> None:
    assert len(await play(tmp_path, trigger, steps)) == fires


async def test_the_event_has_the_last_known_values_and_late_secs(tmp_path: Path) -> None:
    (event,) = await play(tmp_path, trigger_of(VALUE, above=22), [20, GAP, "text", 25])
    assert (event["value"], event["previous_value"], "late_secs" in event) == (25, 20, False)
    (event,) = await play(tmp_path, trigger_of("water_leak"), [False, RESTART, "5 s", True])
    assert (event["value"], event["previous_value"], event["late_secs"]) == (True, False, 15.0)
    (event,) = await play(tmp_path, trigger_of("water_leak"), [True])
    assert (event["value"], "previous_value" in event, event["late_secs"]) == (True, False, 0)
    steps = [False, RESTART, True, "1 s", GAP, "9 s"]
    (event,) = await play(tmp_path, trigger_of("water_leak", equals=True, duration_secs=2), steps)
    assert (event["value"], event["previous_value"], event["late_secs"]) == (True, False, 10.0)


@pytest.mark.parametrize(
    ("device_class", "fires"), [("gas", 1), ("carbon_monoxide", 1), ("safety", 1), ("door", 0), (None, 0)]
)
async def test_booleans_of_dangerous_classes_are_alarms(device_class: str | None, fires: int, tmp_path: Path) -> None:
    steps = [False, RESTART, True]
    assert len(await play(tmp_path, trigger_of(VALUE, equals=True), steps, device_class)) == fires


async def test_a_trigger_for_every_device_listens_to_every_device_that_has_the_attribute(tmp_path: Path) -> None:
    low = {"type": "device_state_change", "device_id": "*", "attribute": "battery", "below": 15}
    waits = {**low, "duration_secs": 5}
    async with bench(tmp_path, automation(low, "low"), automation(waits, "waits")) as it:
        for device_id in ("desk:a", "desk:b"):
            it.show(device_id, battery=20)
            it.show(device_id, battery=10)
        it.show("desk:b", battery=30)
        it.show("desk:c", power="on")
        await it.pass_by(6)
        assert [(event["device_id"], play.name) for play, event in zip(it.stage.plays, it.events, strict=True)] == [
            ("desk:a", "low"),
            ("desk:b", "low"),
            ("desk:a", "waits"),
        ]


@pytest.mark.parametrize(
    ("requirement", "values", "fires"),
    [
        ({"equals": 5}, [5], 1),
        ({"above": 3}, [5], 1),
        ({"above": 3}, [2, None, 5], 1),
        ({"above": 3}, [5, None, 5], 1),
        ({"above": 3}, [5, None, RESTART, 5], 1),
        ({"above": 3}, [2, None, RESTART, 5], 1),
        ({"above": 3}, [2, 3, "4", 5], 1),
        ({"above": 3}, [5, "4", RESTART, 6], 1),
        ({"equals": "on"}, ["on", None, "on", "off", None, "on"], 2),
        ({"equals": []}, [[], RESTART, []], 1),
        ({}, [5, None, 5], 3),
    ],
)
async def test_a_variable_is_compared_with_its_last_value_and_does_not_match_before_it_has_one(
    requirement: dict[str, Any], values: list[Any], fires: int, tmp_path: Path
) -> None:
    card, fired = Card(), 0
    trigger = {"type": "variable_change", "name": "level", **requirement}
    remaining = list(values)
    while remaining:
        async with bench(tmp_path, automation(trigger), card=card) as it:
            while remaining and (value := remaining.pop(0)) != RESTART:
                it.variables.set("level", value, "variables")
            await it.drain()
            fired += len(it.fired)
    assert fired == fires


async def test_last_values_are_kept_only_for_variables_that_triggers_name(tmp_path: Path) -> None:
    card = Card()
    trigger = {"type": "variable_change", "name": "level", "above": 3}
    async with bench(tmp_path, automation(trigger), card=card) as it:
        for name in ("level", "other"):
            it.variables.set(name, 5, "variables")
            it.variables.set(name, None, "variables")
        assert card.values == {"variable/level": {"last": [5]}} and it.variables.list_all() == []
        await it.reload(automation())
        assert "variable/level" not in card.values


class Model(Struct):
    """A model of gaps, alarms, and waits for one trigger of one attribute."""

    requirement: Requirement
    is_alarm: bool
    at_start: bool
    secs: float
    must_rest: bool
    known: list[Any] = field(default_factory=list)
    is_observed: bool = True
    began: datetime | None = None
    value: Any = None
    is_suspended: bool = False
    fired: list[Any] = field(default_factory=list)

    def previous(self) -> Any:
        """Return the last value that can be compared."""
        return next((each for each in reversed(self.known) if self.requirement.is_usable(each)), None)

    def pass_to(self, now: datetime) -> None:
        if self.began is not None and not self.is_suspended and (now - self.began).total_seconds() >= self.secs:
            self.began = None
            self.fired.append(self.previous())

    def restart(self) -> None:
        self.is_observed = not self.known
        self.is_suspended = self.began is not None

    def observe(self, value: Any, now: datetime, *, is_pushed: bool) -> None:
        is_baseline = not self.is_observed and not is_pushed
        self.is_observed = True
        previous = self.previous()
        if value is not None:
            self.known.append(value)
        if self.is_suspended:
            self._resume(self.previous(), now)
        if not self.requirement.is_usable(value):
            pass
        elif self.began is not None:
            if not self.requirement.holds(value):
                self.began = None
            elif self.must_rest and value != previous and not is_baseline:
                self.began, self.value = now, value
        elif self._counts(value, previous, is_baseline=is_baseline):
            if self.secs:
                self.began, self.value = now, value
            else:
                self.fired.append(value)
        self.pass_to(now)

    def _resume(self, last: Any, now: datetime) -> None:
        self.is_suspended = False
        if not self.requirement.holds(last):
            self.began = None
        elif self.must_rest and last != self.value:
            self.began, self.value = (None if self.requirement.is_any else now), last

    def _counts(self, value: Any, previous: Any, *, is_baseline: bool) -> bool:
        if (is_baseline or previous is None) and not (self.is_alarm or self.at_start):
            return False
        if previous is None and self.is_alarm:
            previous = False
        if previous is None and self.requirement.is_any:
            return False
        is_change = previous is None or value != previous or type(value) is not type(previous)
        return (
            is_change
            and self.requirement.holds(value)
            and (self.requirement.is_any or not self.requirement.holds(previous))
        )


MATCHERS: tuple[dict[str, Any], ...] = (
    {},
    {"equals": "on"},
    {"equals": 2},
    {"above": 2},
    {"below": 3},
    {"above": 1, "below": 4},
)


async def run_random(chance: random.Random, folder: Path) -> str:
    """Run a random sequence with the automations and with the model. Return the differences."""
    is_alarm = chance.random() < 0.3
    requirement = {"equals": chance.random() < 0.8} if is_alarm and chance.random() < 0.7 else chance.choice(MATCHERS)
    if (
        (is_alarm and "above" in requirement)
        or (is_alarm and "below" in requirement)
        or (requirement.get("equals") in ("on", 2) and is_alarm)
    ):
        requirement = {}
    wait = chance.choice([{}, {}, {"duration_secs": 5}, {"debounce_secs": 5}])
    at_start = {"at_start": True} if chance.random() < 0.3 else {}
    attribute = "water_leak" if is_alarm else VALUE
    values = [True, False] if is_alarm else [0, 1, 2, 3, 4, 5, "on", "off"]
    model = Model(
        requirement=Requirement(**requirement),
        is_alarm=is_alarm,
        at_start=bool(at_start),
        secs=5 if wait else 0,
        must_rest="debounce_secs" in wait or not requirement,
    )
    trigger = trigger_of(attribute, **requirement, **wait, **at_start)
    card, now = Card(devices=[device({}, "desk:other")]), NOW
    reported = [str(trigger)]
    fired: list[Any] = []
    for _ in range(chance.randint(1, 4)):
        async with bench(folder, automation(trigger), card=card, start=now, stopped_at=now) as it:
            for _ in range(chance.randint(0, 8)):
                step = chance.choice(["value", "value", "value", "gap", "push", "time", "outage", "reload"])
                if step in ("value", "gap", "push"):
                    value = None if step == "gap" else chance.choice(values)
                    is_pushed = step == "push" or (step == "gap" and chance.random() < 0.5)
                    is_pushed = is_pushed and bool(it.registry.find_devices([SENSOR]))
                    observe(it, attribute, Pushed(value) if is_pushed else value)
                    model.observe(value, it.clock.now(), is_pushed=is_pushed)
                    reported.append(f"{'push' if is_pushed else 'show'} {value}")
                elif step == "time":
                    secs = chance.choice([1, 2, 3, 6])
                    await it.pass_by(secs)
                    model.pass_to(it.clock.now())
                    reported.append(f"{secs} s")
                elif step == "outage":
                    it.registry.set_state("desk", "offline")
                    reported.append("outage")
                else:
                    await it.reload(automation(trigger))
                    reported.append("reload")
                await it.drain()
                seen = [*fired, *(event["value"] for event in it.events)]
                if seen != model.fired:
                    return f"{'; '.join(reported)}: fired {seen}, must be {model.fired}"
            fired += [event["value"] for event in it.events]
            now = it.clock.now() + timedelta(seconds=chance.choice([0, 2, 10]))
        model.restart()
        reported.append("restart")
    return ""


@pytest.mark.parametrize(
    "seeds",
    [
        range(30),
        pytest.param(range(1000, 1200), marks=pytest.mark.slow),
        pytest.param(range(1200, 11_000), marks=[pytest.mark.slow(minutes=4), pytest.mark.release]),
    ],
)
async def test_random_sequences_match_the_model(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        assert await run_random(random.Random(seed), tmp_path) == "", f"seed {seed}"
