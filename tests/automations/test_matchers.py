"""What a value must be: equality of JSON values, ranges at their edges, values with units."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.automations.automation_fields import Matcher, check_equal, describe, same
from appliance.errors import Invalid
from tests.fakes.rows import each_row

CELSIUS = {"value": 21.5, "unit": "celsius"}


@each_row(
    ("one", "other", "equal"),
    [
        (5, 5.0, True),
        (5, 5.1, False),
        (0, -0.0, True),
        (True, True, True),
        (True, 1, False),
        (1.0, True, False),
        (False, 0, False),
        ("on", "on", True),
        ("5", 5, False),
        ("on", "On", False),
        ({"r": 1, "g": 2}, {"g": 2.0, "r": 1}, True),
        ({"r": 1}, {"r": 1, "g": 2}, False),
        ({"r": True}, {"r": 1}, False),
        ([1, 2], [1.0, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([], {}, False),
        (None, False, False),
    ],
)
def test_values_are_the_same_as_json_has_it(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is same(other, one) is equal


@each_row(
    ("attribute", "value", "canonical"),
    [
        ("power", "on", "on"),
        ("brightness", 50.0, 50),
        ("muted", False, False),
        ("temperature", 21, 21),
        ("temperature", 21.5, 21.5),
        ("temperature", CELSIUS, CELSIUS),
        ("rainfall", 2, 2),
        ("color_temperature", 2900.0, 2900),
        ("color_temperature", 344, 344),
        ("color_temperature", {"value": 2900, "unit": "kelvin"}, {"value": 2900, "unit": "kelvin"}),
        ("color_hs", {"hue": 1.0, "saturation": 2}, {"hue": 1, "saturation": 2}),
        ("custom.desk.mode", ["anything"], ["anything"]),
        ("presence", True, True),
    ],
)
def test_a_value_that_the_attribute_can_take_is_made_canonical(attribute: str, value: Any, canonical: Any) -> None:
    assert check_equal(attribute, value) == canonical


@each_row(
    ("attribute", "value", "sentence"),
    [
        ("power", True, "must be one of on, off, not true"),
        ("power", "On", "must be one of on, off, not 'On'"),
        ("brightness", 101, "must be an integer from 0 to 100, not 101"),
        ("brightness", 50.5, "must be an integer from 0 to 100, not 50.5"),
        ("muted", 1, "must be true or false, not 1"),
        ("temperature", "warm", "must be an object with value, unit, not 'warm'"),
        ("temperature", True, "must be an object with value, unit, not true"),
        ("color_temperature", 1000, "must be from 2200 to 7000 (kelvin) or 153 to 556 (mireds), not 1000"),
        ("color_temperature", 2900.5, "must be an integer, not 2900.5"),
    ],
)
def test_a_value_that_the_attribute_cannot_take_is_refused(attribute: str, value: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_equal(attribute, value)
    assert str(refused.value) == sentence


def test_what_is_wanted_and_what_there_is_are_told_in_words() -> None:
    assert str(Matcher(above=20, below=30.5)) == "above 20 and below 30.5"
    assert [str(Matcher(above=1)), str(Matcher(below=2)), str(Matcher())] == ["above 1", "below 2", "any value"]
    assert [str(Matcher(equals="on")), str(Matcher(equals=True)), str(Matcher(equals=CELSIUS))] == [
        "'on'",
        "true",
        "21.5 celsius",
    ]
    assert [describe(20), describe({"r": 1}), describe({"value": 3})] == ["20", "an object", "an object"]
