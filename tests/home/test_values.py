"""The schema types: what each takes before, at and after every edge, and the form in which it gives it back."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Invalid
from appliance.home.values import CHECKS
from appliance.tables.checks import one_of, shown

NAN, INF = math.nan, math.inf


ODD: list[Any] = [True, False, None, "5", "", [], [5], {}, NAN, INF, -INF, 2**64, -(2**63) - 1, 10**400]
"""What no kind of number is."""

ODD_UNITS: list[Any] = [None, "", "K", "Kelvin", "kelvin ", "mired", 1, ["kelvin"], {}]


def kelvin(value: Any) -> dict[str, Any]:
    """A colour temperature in kelvin."""
    return {"value": value, "unit": "kelvin"}


def mireds(value: Any) -> dict[str, Any]:
    """A colour temperature in mireds."""
    return {"value": value, "unit": "mireds"}


ACCEPTED: list[tuple[str, Any, Any]] = [
    ("number", 0, 0),
    ("number", -0.5, -0.5),
    ("number", 50.0, 50.0),
    ("number", -(2**63), -(2**63)),
    ("number", 2**64 - 1, 2**64 - 1),
    ("number", 1e300, 1e300),
    ("integer", 0, 0),
    ("integer", -7, -7),
    ("integer", 50.0, 50),
    ("integer", -0.0, 0),
    ("integer", 2**64 - 1, 2**64 - 1),
    ("integer", -(2**63), -(2**63)),
    ("integer", -(2.0**63), -(2**63)),
    ("string", "", ""),
    ("string", "on", "on"),
    ("string", "50", "50"),
    ("boolean", True, True),
    ("boolean", False, False),
    ("integer_or_string", 270, 270),
    ("integer_or_string", 270.0, 270),
    ("integer_or_string", "NW", "NW"),
    ("integer_or_string", "", ""),
    ("percentage", 0, 0),
    ("percentage", 1, 1),
    ("percentage", 99, 99),
    ("percentage", 100, 100),
    ("percentage", 0.0, 0),
    ("percentage", -0.0, 0),
    ("percentage", 50.0, 50),
    ("percentage", 100.0, 100),
    ("measurement", {"value": 21.5, "unit": "celsius"}, {"value": 21.5, "unit": "celsius"}),
    ("measurement", {"value": -40, "unit": ""}, {"value": -40, "unit": ""}),
    ("measurement", {"unit": "W", "value": 3.0, "phase": 2}, {"value": 3.0, "unit": "W"}),
    (
        "accumulation",
        {"value": 1.5, "unit": "mm", "period": "1h"},
        {"value": 1.5, "unit": "mm", "period": "1h"},
    ),
    (
        "accumulation",
        {"value": 0, "unit": "kWh", "period": "day", "since": "noon"},
        {"value": 0, "unit": "kWh", "period": "day"},
    ),
    ("rgb_color", {"r": 0, "g": 0, "b": 0}, {"r": 0, "g": 0, "b": 0}),
    ("rgb_color", {"r": 255, "g": 255, "b": 255}, {"r": 255, "g": 255, "b": 255}),
    ("rgb_color", {"b": 3.0, "g": 254, "r": 1, "a": 9}, {"r": 1, "g": 254, "b": 3}),
    ("hex_color", "#000000", "#000000"),
    ("hex_color", "#ffa500", "#ffa500"),
    ("hex_color", "#FFa5F9", "#FFa5F9"),
    ("xy_color", {"x": 0, "y": 1}, {"x": 0, "y": 1}),
    ("xy_color", {"x": 0.0, "y": 1.0}, {"x": 0.0, "y": 1.0}),
    ("xy_color", {"x": 0.3127, "y": 0.329, "Y": 1}, {"x": 0.3127, "y": 0.329}),
    ("hs_color", {"hue": 0, "saturation": 0}, {"hue": 0, "saturation": 0}),
    ("hs_color", {"hue": 360, "saturation": 100}, {"hue": 360, "saturation": 100}),
    ("hs_color", {"hue": 359.0, "saturation": 99.0, "value": 1}, {"hue": 359, "saturation": 99}),
    ("color_temperature", kelvin(2200), kelvin(2200)),
    ("color_temperature", kelvin(2201), kelvin(2201)),
    ("color_temperature", kelvin(4000.0), kelvin(4000)),
    ("color_temperature", kelvin(6999), kelvin(6999)),
    ("color_temperature", kelvin(7000), kelvin(7000)),
    ("color_temperature", mireds(153), mireds(153)),
    ("color_temperature", mireds(154), mireds(154)),
    ("color_temperature", mireds(555.0), mireds(555)),
    ("color_temperature", mireds(556), mireds(556)),
    ("color_temperature", {**kelvin(3000), "note": 1}, kelvin(3000)),
]
"""Type, value, canonical form."""

REFUSED: list[tuple[str, Any]] = [
    *[(type_, value) for type_ in ("number", "integer", "percentage") for value in ODD],
    ("integer", 0.5),
    ("integer", 49.999999),
    ("integer", 1e300),
    ("integer", 2.0**64),
    ("string", None),
    ("string", 5),
    ("string", True),
    ("string", ["on"]),
    ("string", {}),
    ("boolean", 0),
    ("boolean", 1),
    ("boolean", 1.0),
    ("boolean", "true"),
    ("boolean", None),
    ("boolean", []),
    ("integer_or_string", 0.5),
    ("integer_or_string", True),
    ("integer_or_string", None),
    ("integer_or_string", NAN),
    ("integer_or_string", ["N"]),
    ("percentage", -1),
    ("percentage", 101),
    ("percentage", -0.5),
    ("percentage", 0.5),
    ("percentage", 99.5),
    ("percentage", 100.5),
    ("percentage", 101.0),
    ("measurement", 21.5),
    ("measurement", None),
    ("measurement", "21.5 C"),
    ("measurement", [21.5, "C"]),
    ("measurement", {}),
    ("measurement", {"value": 1}),
    ("measurement", {"unit": "C"}),
    ("measurement", {"value": None, "unit": "C"}),
    ("measurement", {"value": "1", "unit": "C"}),
    ("measurement", {"value": True, "unit": "C"}),
    ("measurement", {"value": NAN, "unit": "C"}),
    ("measurement", {"value": INF, "unit": "C"}),
    ("measurement", {"value": 1, "unit": None}),
    ("measurement", {"value": 1, "unit": 1}),
    ("accumulation", {"value": 1, "unit": "mm"}),
    ("accumulation", {"value": 1, "period": "1h"}),
    ("accumulation", {"unit": "mm", "period": "1h"}),
    ("accumulation", {"value": 1, "unit": "mm", "period": None}),
    ("accumulation", {"value": 1, "unit": "mm", "period": 3600}),
    ("accumulation", {"value": "1", "unit": "mm", "period": "1h"}),
    ("accumulation", {"value": 1, "unit": 1, "period": "1h"}),
    ("accumulation", 1),
    *[
        ("rgb_color", {"r": 1, "g": 2, "b": 3, channel: value})
        for channel in "rgb"
        for value in (-1, 256, 0.5, True, "7", None, NAN)
    ],
    ("rgb_color", {"r": 1, "g": 2}),
    ("rgb_color", [1, 2, 3]),
    ("rgb_color", "#010203"),
    ("rgb_color", None),
    *[
        ("hex_color", value)
        for value in ("", "#", "ffa500", "#ffa50", "#ffa5000", "#ffa50g", "#ffa500\n", " #ffa500", "#fff", "#ＦFa500")
    ],
    ("hex_color", 0xFFA500),
    ("hex_color", None),
    ("hex_color", ["#ffa500"]),
    *[
        ("xy_color", {"x": 0.5, "y": 0.5, axis: value})
        for axis in "xy"
        for value in (-0.0001, 1.0001, -1, 2, True, "0.5", None, NAN, INF)
    ],
    ("xy_color", {"x": 0.5}),
    ("xy_color", [0.3, 0.3]),
    *[("hs_color", {"hue": hue, "saturation": 50}) for hue in (-1, 361, 0.5, 359.9, True, "0", None, NAN)],
    *[("hs_color", {"hue": 50, "saturation": value}) for value in (-1, 101, 0.5, False, "0", None, INF)],
    ("hs_color", {"saturation": 50}),
    ("hs_color", {"hue": 50}),
    ("hs_color", [50, 50]),
    *[("color_temperature", kelvin(value)) for value in (2199, 7001, 0, -2200, 2200.5, True, "4000", None, NAN)],
    *[("color_temperature", mireds(value)) for value in (152, 557, 2200, 200.5, False, "200", None, INF)],
    *[("color_temperature", {"value": 4000, "unit": unit}) for unit in ODD_UNITS],
    ("color_temperature", {"value": 4000}),
    ("color_temperature", {"unit": "kelvin"}),
    ("color_temperature", 4000),
    ("color_temperature", None),
]
"""Type and value."""


def test_every_schema_type_is_tried() -> None:
    assert {type_ for type_, _, _ in ACCEPTED} == {type_ for type_, _ in REFUSED} == set(CHECKS)


def test_a_value_within_the_schema_comes_back_in_canonical_form() -> None:
    for type_, value, canonical in ACCEPTED:
        assert repr(CHECKS[type_](value)) == repr(canonical), type_


def test_a_value_outside_the_schema_is_refused_with_a_sentence_of_one_line() -> None:
    for type_, value in REFUSED:
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
def test_the_sentence_says_what_was_expected_and_what_came(type_: str, value: Any, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        CHECKS[type_](value)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("value", ["off", "ON", "", " on", None, True, 1, ["on"], {"on": 1}], ids=repr)
def test_an_enum_takes_none_but_its_own_words(value: Any) -> None:
    with pytest.raises(Invalid, match=r"^must be one of on, away, not "):
        one_of("on", "away")(value)


def test_an_enum_gives_its_word_back() -> None:
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
        ("a\nb\x1b[31m", "'a\\nb\\x1b[31m'"),
        ("x" * 59, repr("x" * 59)[:57] + "…"),
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
    assert shown(value) == text


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
def test_whatever_comes_is_refused_or_becomes_something_that_json_carries(type_: str, value: Any) -> None:
    try:
        canonical = CHECKS[type_](value)
    except Invalid:
        return
    assert repr(CHECKS[type_](canonical)) == repr(canonical)
    assert "NaN" not in repr(canonical)
    if "\\ud" not in repr(canonical):
        assert orjson.loads(orjson.dumps(canonical)) == canonical
