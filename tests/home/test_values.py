"""The schema types: values around all bounds, and their canonical form."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Invalid
from appliance.home.values import CHECKS, level_of, percent_of
from appliance.tables.checks import format_value, one_of

NAN, INF = math.nan, math.inf


ODD: list[Any] = [True, False, None, "5", "", [], [5], {}, NAN, INF, -INF, 2**64, -(2**63) - 1, 10**400]
"""Values that are not numbers."""

ODD_UNITS: list[Any] = [None, "", "K", "Kelvin", "kelvin ", "mired", 1, ["kelvin"], {}]


def kelvin(value: Any) -> dict[str, Any]:
    return {"value": value, "unit": "kelvin"}


def mireds(value: Any) -> dict[str, Any]:
    return {"value": value, "unit": "mireds"}


ACCEPTED: dict[str, list[Any]] = {
    "number": [0, -0.5, 50.0, -(2**63), 2**64 - 1, 1e300],
    "integer": [0, -7, 2**64 - 1, -(2**63)],
    "string": ["", "on", "50"],
    "boolean": [True, False],
    "integer_or_string": [270, "NW", ""],
    "percentage": [0, 1, 99, 100],
    "measurement": [{"value": 21.5, "unit": "celsius"}, {"value": -40, "unit": ""}],
    "accumulation": [{"value": 1.5, "unit": "mm", "period": "1h"}],
    "rgb_color": [{"r": 0, "g": 0, "b": 0}, {"r": 255, "g": 255, "b": 255}],
    "hex_color": ["#000000", "#ffa500", "#FFa5F9"],
    "xy_color": [{"x": 0, "y": 1}, {"x": 0.0, "y": 1.0}],
    "hs_color": [{"hue": 0, "saturation": 0}, {"hue": 360, "saturation": 100}],
    "color_temperature": [
        *map(kelvin, (2200, 2201, 6999, 7000)),
        *map(mireds, (153, 154, 556)),
    ],
}
"""Values that are already canonical, by type."""

MADE_CANONICAL: list[tuple[str, Any, Any]] = [
    ("integer", 50.0, 50),
    ("integer", -0.0, 0),
    ("integer", -(2.0**63), -(2**63)),
    ("integer_or_string", 270.0, 270),
    ("percentage", -0.0, 0),
    ("percentage", 100.0, 100),
    ("measurement", {"unit": "W", "value": 3.0, "phase": 2}, {"value": 3.0, "unit": "W"}),
    (
        "accumulation",
        {"period": "day", "value": 0, "unit": "kWh", "a": 1},
        {"value": 0, "unit": "kWh", "period": "day"},
    ),
    ("rgb_color", {"b": 3.0, "g": 254, "r": 1, "a": 9}, {"r": 1, "g": 254, "b": 3}),
    ("xy_color", {"x": 0.3127, "y": 0.329, "Y": 1}, {"x": 0.3127, "y": 0.329}),
    ("hs_color", {"hue": 359.0, "saturation": 99.0, "value": 1}, {"hue": 359, "saturation": 99}),
    ("color_temperature", {**kelvin(4000.0), "note": 1}, kelvin(4000)),
    ("color_temperature", mireds(555.0), mireds(555)),
]
"""Type, value, and canonical form."""

REFUSED: dict[str, list[Any]] = {
    "number": ODD,
    "integer": [*ODD, 0.5, 49.999999, 1e300, 2.0**64],
    "string": [None, 5, True, ["on"], {}],
    "boolean": [0, 1, 1.0, "true", None, []],
    "integer_or_string": [0.5, True, None, NAN, ["N"]],
    "percentage": [*ODD, -1, 101, -0.5, 0.5, 99.5, 100.5, 101.0],
    "measurement": [
        *(21.5, None, "21.5 C", [21.5, "C"], {}, {"value": 1}, {"unit": "C"}),
        *({"value": value, "unit": "C"} for value in (None, "1", True, NAN, INF)),
        *({"value": 1, "unit": unit} for unit in (None, 1)),
    ],
    "accumulation": [
        *(1, {"value": 1, "unit": "mm"}, {"value": 1, "period": "1h"}, {"unit": "mm", "period": "1h"}),
        *({"value": 1, "unit": "mm", "period": period} for period in (None, 3600)),
        *({"value": "1", "unit": "mm", "period": "1h"}, {"value": 1, "unit": 1, "period": "1h"}),
    ],
    "rgb_color": [
        *({"r": 1, "g": 2, "b": 3, each: value} for each in "rgb" for value in (-1, 256, 0.5, True, "7", None, NAN)),
        *({"r": 1, "g": 2}, [1, 2, 3], "#010203", None),
    ],
    "hex_color": [
        *("", "#", "ffa500", "#ffa50", "#ffa5000", "#ffa50g", "#ffa500\n", " #ffa500", "#fff", "#ＦFa500"),
        *(0xFFA500, None, ["#ffa500"]),
    ],
    "xy_color": [
        *({"x": 0.5, "y": 0.5, axis: each} for axis in "xy" for each in (-0.0001, 1.0001, 2, True, "0.5", None, NAN)),
        *({"x": 0.5}, [0.3, 0.3]),
    ],
    "hs_color": [
        *({"hue": hue, "saturation": 50} for hue in (-1, 361, 0.5, 359.9, True, "0", None, NAN)),
        *({"hue": 50, "saturation": value} for value in (-1, 101, 0.5, False, "0", None, INF)),
        *({"saturation": 50}, {"hue": 50}, [50, 50]),
    ],
    "color_temperature": [
        *map(kelvin, (2199, 7001, 0, -2200, 2200.5, True, "4000", None, NAN)),
        *map(mireds, (152, 557, 2200, 200.5, False, "200", None, INF)),
        *({"value": 4000, "unit": unit} for unit in ODD_UNITS),
        *({"value": 4000}, {"unit": "kelvin"}, 4000, None),
    ],
}
"""Rejected values by type."""


def test_a_value_within_the_schema_comes_back_in_canonical_form() -> None:
    assert ACCEPTED.keys() == REFUSED.keys() == CHECKS.keys()
    same = [(type_, value, value) for type_, values in ACCEPTED.items() for value in values]
    for type_, value, canonical in (*same, *MADE_CANONICAL):
        assert repr(CHECKS[type_](value)) == repr(canonical), type_


def test_a_value_outside_the_schema_is_refused_with_a_sentence_of_one_line() -> None:
    for type_, value in ((type_, value) for type_, values in REFUSED.items() for value in values):
        with pytest.raises(Invalid) as refused:
            assert CHECKS[type_](value) is None, f"{type_} takes {value!r}"
        sentence = str(refused.value)
        assert sentence.isprintable() and len(sentence) < 200
        assert "must be" in sentence or "lacks the field" in sentence


@pytest.mark.parametrize(
    ("type_", "value", "sentence"),
    [
        ("percentage", 101, "must be an integer from 0 to 100, not 101"),
        ("percentage", "50", "must be an integer from 0 to 100, not '50'"),
        ("integer", True, "must be an integer, not true"),
        ("number", None, "must be a number, not null"),
        ("boolean", 1, "must be true or false, not 1"),
        ("string", [], "must be a string, not an array"),
        ("hex_color", "red", "must be a colour like #ffa500, not 'red'"),
        ("measurement", 4, "must be an object with value, unit, not 4"),
        ("measurement", {"value": 4}, "lacks the field unit"),
        ("accumulation", {"value": 4, "unit": "mm"}, "lacks the field period"),
        ("rgb_color", {"r": 0, "g": 256, "b": 0}, "g must be an integer from 0 to 255, not 256"),
        ("xy_color", {"x": 0, "y": 1.5}, "y must be a number from 0 to 1, not 1.5"),
        ("hs_color", {"hue": 361, "saturation": 0}, "hue must be an integer from 0 to 360, not 361"),
        ("color_temperature", kelvin(2199), "value must be an integer from 2200 to 7000, not 2199"),
        ("color_temperature", mireds(557), "value must be an integer from 153 to 556, not 557"),
        ("color_temperature", {"value": 1, "unit": "K"}, "unit must be kelvin or mireds, not 'K'"),
    ],
    ids=lambda part: repr(part)[:60],
)
def test_the_error_has_the_expected_and_the_actual_value(type_: str, value: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        CHECKS[type_](value)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("value", ["off", "ON", "", " on", None, True, 1, ["on"], {"on": 1}], ids=repr)
def test_an_enum_accepts_only_its_words(value: Any) -> None:
    with pytest.raises(Invalid, match=r"^must be one of on, away, not "):
        one_of("on", "away")(value)


def test_an_enum_returns_its_word() -> None:
    assert one_of("on", "away")("away") == "away"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ({"a": 1}, "an object"),
        ([1], "an array"),
        ("on", "'on'"),
        ("http://a/write?p=secret#x", "'http://a/write?…'"),
        ("mqtt://u:se/c?ret@broker:1883", "'mqtt://…@broker:1883'"),
        ("a\nb\x1b[31m", "'a\\nb\\x1b[31m'"),
        ("x" * 59, repr("x" * 59)[:59] + "…"),
        ("x" * 58, repr("x" * 58)),
        (12, "12"),
        (1.5, "1.5"),
        (2**64 - 1, "18446744073709551615"),
        (2**64, "a number of 65 bits"),
        (1 << 99_999, "a number of 100000 bits"),
    ],
    ids=lambda part: repr(part)[:30] if not isinstance(part, int) else "int",
)
def test_a_value_is_shown_on_one_line_that_is_not_too_long(value: Any, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("highest", "level", "percent"),
    [(255, 0, 0), (255, 1, 1), (255, 128, 50), (255, 255, 100), (255, 300, 100), (255, -1, 0), (254, 64, 25)],
)
def test_a_level_becomes_percent_and_only_level_0_is_0(highest: int, level: int, percent: int) -> None:
    assert percent_of(level, highest) == percent


@pytest.mark.parametrize("highest", [100, 254, 255, 1000])
def test_a_percentage_is_shown_again_after_it_was_sent(highest: int) -> None:
    levels = [level_of(percent, highest) for percent in range(101)]
    assert [percent_of(level, highest) for level in levels] == [*range(101)]
    assert (levels[0], levels[100], level_of(1, 10)) == (0, highest, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=6,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("value", "unit", "period", "r", "g", "b", "x", "y", "hue", "saturation"), JSON),
)


@given(type_=st.sampled_from(sorted(CHECKS)), value=JSON | FIELDS)
def test_any_input_is_refused_or_becomes_json(type_: str, value: Any) -> None:
    try:
        canonical = CHECKS[type_](value)
    except Invalid:
        return
    assert repr(CHECKS[type_](canonical)) == repr(canonical)
    assert "NaN" not in repr(canonical)
    if "\\ud" not in repr(canonical):
        assert orjson.loads(orjson.dumps(canonical)) == canonical
