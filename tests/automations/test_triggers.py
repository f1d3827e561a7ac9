"""Triggers on events: which changes match, the phases of waits, and the event table for Lua."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.automations.requirement import Requirement
from appliance.automations.triggers.base import Match
from appliance.automations.triggers.device import Devices, DeviceTrigger, WaitOutcome
from appliance.home.events import AdapterStarted, DeviceRemoved, DeviceStateChanged, Event
from appliance.home.model import LastValues, last_values
from tests.automations.homes import LAMP, change
from tests.fakes.rows import each_row

POWER = DeviceTrigger(devices=Devices(ids=(LAMP,)), attribute="power")
ON = DeviceTrigger(devices=Devices(ids=(LAMP,)), attribute="power", requirement=Requirement(equals="on"))


def brightness(
    requirement: Requirement, debounce_secs: float | None = None, duration_secs: float | None = None
) -> DeviceTrigger:
    return DeviceTrigger(
        devices=Devices(ids=(LAMP,)),
        attribute="brightness",
        requirement=requirement,
        debounce_secs=debounce_secs,
        duration_secs=duration_secs,
    )


def shift(before: Any, after: Any, attribute: str = "brightness") -> DeviceStateChanged:
    """Return a change of the attribute. If a value is None, the device does not have the attribute."""

    def shown(value: Any) -> dict[str, Any]:
        return {"state": "online"} if value is None else {"state": "online", attribute: value}

    return change(shown(before), shown(after))


def celsius(value: float) -> dict[str, Any]:
    return {"value": value, "unit": "celsius"}


@each_row(
    ("requirement", "before", "after", "fires"),
    [
        (Requirement(), 20, 21, True),
        (Requirement(), 20, 20.5, True),
        (Requirement(), 20, 20.0, False),
        (Requirement(), None, 20, False),
        (Requirement(), 20, None, False),
        (Requirement(), celsius(20), celsius(21), True),
        (Requirement(), celsius(20), celsius(20.0), False),
        (Requirement(), celsius(20), {"value": 20, "unit": "kelvin"}, True),
        (Requirement(equals=5), 4, 5, True),
        (Requirement(equals=5), 4, 5.0, True),
        (Requirement(equals=5), 5, 5.0, False),
        (Requirement(equals=5), 5, 6, False),
        (Requirement(equals=5), None, 5, False),
        (Requirement(equals=5), 4, True, False),
        (Requirement(equals=1), 0, True, False),
        (Requirement(equals=21), celsius(20), celsius(21), True),
        (Requirement(equals=21), celsius(21), {"value": 21, "unit": "kelvin"}, False),
        (Requirement(equals=celsius(21)), celsius(20), celsius(21.0), True),
        (Requirement(above=50), 49, 50, False),
        (Requirement(above=50), 49, 51, True),
        (Requirement(above=50), 50, 50.5, True),
        (Requirement(above=50), 50.0, 51, True),
        (Requirement(above=50), 51, 52, False),
        (Requirement(above=50), 52, 49, False),
        (Requirement(above=50), None, 60, False),
        (Requirement(above=50), "low", 60, False),
        (Requirement(above=50), True, 60, False),
        (Requirement(above=50), 40, "high", False),
        (Requirement(below=50), 50, 49, True),
        (Requirement(below=50), 51, 50, False),
        (Requirement(below=50), 49, 48, False),
        (Requirement(below=50), 50, 49.9, True),
        (Requirement(above=20, below=30), 20, 21, True),
        (Requirement(above=20, below=30), 30, 29, True),
        (Requirement(above=20, below=30), 31, 19, False),
        (Requirement(above=20, below=30), 19, 31, False),
        (Requirement(above=20, below=30), 21, 29, False),
        (Requirement(above=20, below=30), 25, 30, False),
        (Requirement(above=20, below=30), 19, 20, False),
        (Requirement(above=20), celsius(20), celsius(20.5), True),
        (Requirement(above=20), celsius(20), celsius(20.0), False),
        (Requirement(above=20), 19, celsius(21), True),
    ],
)
def test_a_change_to_the_expected_value_matches(
    requirement: Requirement, before: Any, after: Any, fires: bool
) -> None:
    assert (brightness(requirement).match(shift(before, after)) is not None) is fires


@pytest.mark.parametrize(
    "event",
    [
        change(None, {"power": "on"}),
        change({"power": "on", "brightness": 1}, {"power": "on", "brightness": 2}),
        change({"power": "off"}, {"power": "on"}, "desk:light:1"),
        DeviceRemoved(device_id=LAMP),
        AdapterStarted(adapter="desk"),
    ],
    ids=["a first appearance", "another attribute", "another device", "a removal", "another event"],
)
def test_unchanged_attributes_do_not_match(event: Event) -> None:
    assert POWER.match(event) is None
    assert ON.match(event) is None


def test_without_an_attribute_every_change_of_the_device_matches_once_and_has_no_value() -> None:
    trigger = DeviceTrigger(devices=Devices(ids=(LAMP,)))
    after = {"power": "on", "brightness": 2}
    assert trigger.match(change({"power": "off", "brightness": 1}, after)) == Match(
        event={"type": "device_state_change", "device_id": LAMP, "attributes": after},
        subject=("device", LAMP),
    )
    assert trigger.match(change({"power": "off"}, {})) is not None
    assert trigger.match(change(None, after)) is None
    assert trigger.match(change({}, after, "desk:light:1")) is None


def path(trigger: DeviceTrigger, *shown: Any) -> list[str]:
    """Return the state of the wait after each of these brightness values."""
    is_waiting, matched = False, []
    last: LastValues = {}
    for before, after in itertools.pairwise(shown):
        event = shift(before, after)
        assert event.previous is not None
        previous = replace(event.previous, last=last)
        event, last = replace(event, previous=previous), last_values(previous, event.device.attributes, event.changed)
        if is_waiting:
            outcome = trigger.follow(event)
            matched.append("anew" if isinstance(outcome, Match) else outcome.name.lower())
            is_waiting = outcome is not WaitOutcome.ENDS
        else:
            is_waiting = trigger.match(event) is not None
            matched.append("begins" if is_waiting else "none")
    return matched


RANGE = Requirement(above=50)


@each_row(
    ("trigger", "values", "steps"),
    [
        (brightness(RANGE, debounce_secs=5), (40, 60, 61, 61.0, 40), ["begins", "anew", "continues", "ends"]),
        (brightness(RANGE, duration_secs=5), (40, 60, 61, 50, 60), ["begins", "continues", "ends", "begins"]),
        (brightness(Requirement(), debounce_secs=5), (1, 2, 3, None, 4), ["begins", "anew", "continues", "anew"]),
        (brightness(Requirement(), duration_secs=5), (1, 2, 2.0, 3), ["begins", "continues", "anew"]),
        (
            brightness(Requirement(equals=5), debounce_secs=5),
            (4, 5, 4, 5, 5),
            ["begins", "ends", "begins", "continues"],
        ),
        (brightness(Requirement(equals=5), duration_secs=5), (4, 5, 5.0, None), ["begins", "continues", "continues"]),
        (brightness(Requirement(equals=5), duration_secs=5), (5, 5, 6, 7), ["none", "none", "none"]),
    ],
)
def test_waits_continue_restart_or_end(trigger: DeviceTrigger, values: tuple[Any, ...], steps: list[str]) -> None:
    assert path(trigger, *values) == steps


def test_a_wait_continues_when_the_device_returns() -> None:
    trigger = brightness(RANGE, duration_secs=5)
    assert trigger.match(shift(40, 60)) is not None
    assert trigger.follow(change(None, {"brightness": 60})) is WaitOutcome.CONTINUES
