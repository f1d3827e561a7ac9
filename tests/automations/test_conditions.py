"""Conditions: whether each holds, and the sentence with the values compared when it does not."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any, cast

from appliance.automations.automation_fields import Matcher
from appliance.automations.conditions import Condition, DeviceState, PlaceState
from appliance.automations.time_conditions import Edge, SunCondition, TimeWindow
from appliance.automations.times_of_day import SunEvent
from tests.automations.homes import BERLIN, LAMP, NOW, at, device, home
from tests.fakes.registry import PromptRegistry
from tests.fakes.rows import each_row


def state(attribute: str, matcher: Matcher) -> DeviceState:
    """A condition on the lamp."""
    return DeviceState(device_id=LAMP, attribute=attribute, matcher=matcher)


def reason(condition: Condition, attributes: dict[str, Any] | None, instant: datetime | None = NOW) -> str:
    """Why the condition does not hold in a home with this lamp (None: without); empty if it does."""
    outcome = condition.holds(home() if attributes is None else home(device(attributes)), instant)
    assert outcome.holds is (outcome.reason == "")
    return outcome.reason


@each_row(
    ("matcher", "value", "why"),
    [
        (Matcher(above=50), 50, "brightness was 50, needs above 50"),
        (Matcher(above=50), 50.5, ""),
        (Matcher(below=50), 50.0, "brightness was 50.0, needs below 50"),
        (Matcher(above=20, below=30), 20, "brightness was 20, needs above 20 and below 30"),
        (Matcher(above=20, below=30), 21, ""),
        (Matcher(above=20, below=30), 30, "brightness was 30, needs above 20 and below 30"),
        (Matcher(above=20), {"value": 21, "unit": "celsius"}, ""),
        (Matcher(above=21), {"value": 21, "unit": "celsius"}, "brightness was 21 celsius, needs above 21"),
        (Matcher(above=20), "high", "brightness was 'high', needs a number above 20"),
        (Matcher(above=0), True, "brightness was true, needs a number above 0"),
        (Matcher(equals="on"), "off", "brightness was 'off', needs 'on'"),
        (Matcher(equals=True), 1, "brightness was 1, needs true"),
        (Matcher(equals=21), {"value": 21.0, "unit": "celsius"}, ""),
        (Matcher(), 0, ""),
    ],
)
def test_a_device_state_holds_or_tells_both_values(matcher: Matcher, value: Any, why: str) -> None:
    assert reason(state("brightness", matcher), {"brightness": value}) == why


def test_a_missing_device_or_attribute_is_told() -> None:
    condition = state("brightness", Matcher(above=50))
    assert reason(condition, None) == "device 'desk:light:0' not found"
    assert reason(condition, {"power": "on"}) == "device 'desk:light:0' has no brightness, needs above 50"
    assert reason(state("brightness", Matcher()), {}) == "device 'desk:light:0' has no brightness, needs any value"


def test_presence_is_asked_as_any_state() -> None:
    present = DeviceState(type="presence", device_id=LAMP, attribute="presence", matcher=Matcher(equals=True))
    assert reason(present, {"presence": True}) == ""
    assert reason(present, {"presence": False}) == "presence was false, needs true"


@each_row(
    ("least", "most", "why"),
    [
        (None, None, ""),
        (2, None, ""),
        (3, None, "room 'hall' had 2 devices, needs at least 3"),
        (None, 2, ""),
        (None, 1, "room 'hall' had 2 devices, needs at most 1"),
        (2, 2, ""),
        (3, 4, "room 'hall' had 2 devices, needs at least 3 and at most 4"),
        (0, 0, "room 'hall' had 2 devices, needs at least 0 and at most 0"),
    ],
)
def test_a_room_has_so_many_devices(least: int | None, most: int | None, why: str) -> None:
    house = home(device({}), device({}, "desk:light:1"), device({}, "desk:light:2"))
    registry = cast("PromptRegistry", house.registry)
    registry.put_room("hall", "Hall")
    for device_id in (LAMP, "desk:light:1"):
        registry.assign_room(device_id, "hall")
    assert PlaceState(place_id="hall", min_devices=least, max_devices=most).holds(house, NOW).reason == why
    registry.assign_room(LAMP, None)
    one = PlaceState(place_id="hall", min_devices=2).holds(house, NOW)
    assert one.reason == "room 'hall' had 1 device, needs at least 2"


def test_a_room_that_does_not_exist_is_told() -> None:
    assert reason(PlaceState(place_id="attic", max_devices=5), None) == "room 'attic' not found"


NIGHT = TimeWindow(start=time(22), end=time(6), locale=BERLIN)
DARK = SunCondition(after=Edge(event=SunEvent.SUNSET), locale=BERLIN)


@each_row(
    ("condition", "instant", "why"),
    [
        (NIGHT, at("2026-06-01T19:59"), "time was 21:59, needs 22:00 to 06:00"),
        (NIGHT, at("2026-06-01T20:00"), ""),
        (NIGHT, at("2026-06-01T04:00"), "time was 06:00, needs 22:00 to 06:00"),
        (NIGHT, None, "the clock is not trusted yet, needs 22:00 to 06:00"),
        (DARK, at("2026-03-01T12:00"), "time was 13:00, needs after sunset (17:45)"),
        (DARK, at("2026-03-01T17:00"), ""),
        (DARK, None, "the clock is not trusted yet, needs after sunset"),
    ],
)
def test_a_time_is_compared_and_nothing_holds_while_it_is_not_known(
    condition: Condition, instant: datetime | None, why: str
) -> None:
    assert reason(condition, {}, instant) == why
