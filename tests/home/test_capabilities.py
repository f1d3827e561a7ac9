"""The canonical table, against the contract's own, written down here a second time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import Invalid
from appliance.home.capabilities import CAPABILITIES, OWNERSHIP, UNITS
from appliance.home.values import CHECKS
from tests.fakes.rows import each_row

ADAPTERS_PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"

MEASUREMENT, ACCUMULATION, PERCENTAGE = "measurement", "accumulation", "percentage"
GET = ["get"]

Rows = dict[str, tuple[str, list[str], list[str], bool]]
"""Key: type, values, actions, read_only."""

WEATHER: Rows = {
    "temperature_outdoor": (MEASUREMENT, [], GET, True),
    "temperature_apparent": (MEASUREMENT, [], GET, True),
    "temperature_high": (MEASUREMENT, [], GET, True),
    "temperature_low": (MEASUREMENT, [], GET, True),
    "wind_speed": (MEASUREMENT, [], GET, True),
    "wind_gust": (MEASUREMENT, [], GET, True),
    "visibility": (MEASUREMENT, [], GET, True),
    "wind_direction": ("integer_or_string", [], GET, True),
    "rainfall": (ACCUMULATION, [], GET, True),
    "uv_index": ("number", [], GET, True),
    "weather_condition": ("string", [], GET, True),
    "cloud_coverage": ("integer", [], GET, True),
}
LIGHTING: Rows = {
    "power": ("enum", ["on", "off"], ["on", "off", "toggle"], False),
    "state": ("enum", ["online", "offline", "unavailable", "unknown"], GET, True),
    "brightness": (PERCENTAGE, [], ["set", "increase", "decrease"], False),
    "color_rgb": ("rgb_color", [], ["set"], False),
    "color_hex": ("hex_color", [], ["set"], False),
    "color_xy": ("xy_color", [], ["set"], False),
    "color_hs": ("hs_color", [], ["set"], False),
    "color_temperature": ("color_temperature", [], ["set", "increase", "decrease"], False),
    "color_mode": ("enum", ["color_temp", "rgb", "xy", "hs", "white"], ["set"], False),
    "effect": ("enum", ["none", "flash", "strobe", "colorloop", "random"], ["set", "stop"], False),
    "transition": ("number", [], ["set"], False),
    "illuminance": ("integer", [], GET, True),
    "led_indication": ("boolean", [], ["get", "set"], False),
}
SENSOR: Rows = {
    "battery": (PERCENTAGE, [], GET, True),
    "temperature": (MEASUREMENT, [], GET, True),
    "humidity": (MEASUREMENT, [], GET, True),
    "pressure": (MEASUREMENT, [], GET, True),
    "co2": (MEASUREMENT, [], GET, True),
    "air_quality": (
        "enum",
        ["unknown", "excellent", "good", "moderate", "poor", "unhealthy", "hazardous"],
        GET,
        True,
    ),
    "motion": ("enum", ["detected", "clear"], GET, True),
    "contact": ("enum", ["open", "closed"], GET, True),
    "occupancy": ("enum", ["occupied", "unoccupied"], GET, True),
    "smoke": ("boolean", [], GET, True),
    "water_leak": ("boolean", [], GET, True),
}
CLIMATE: Rows = {
    "target_temperature": (MEASUREMENT, [], ["set"], False),
    "hvac_mode": ("enum", ["off", "heat", "cool", "auto", "heat_cool", "dry", "fan_only"], ["set"], False),
    "hvac_state": ("enum", ["off", "idle", "heating", "cooling", "fan_only", "dry"], GET, True),
    "fan_mode": ("string", [], ["set"], False),
    "swing_mode": ("string", [], ["set"], False),
    "preset_mode": ("string", [], ["set"], False),
}
ENERGY: Rows = {
    "power_consumption": (MEASUREMENT, [], GET, True),
    "voltage": (MEASUREMENT, [], GET, True),
    "current": (MEASUREMENT, [], GET, True),
    "energy_total": (ACCUMULATION, [], ["reset"], False),
    "energy_today": (ACCUMULATION, [], GET, True),
    "energy_yesterday": (ACCUMULATION, [], GET, True),
    "energy_month": (ACCUMULATION, [], GET, True),
}
MEDIA: Rows = {
    "volume": (PERCENTAGE, [], ["set", "increase", "decrease"], False),
    "muted": ("boolean", [], ["set", "mute", "unmute"], False),
    "media_source": ("string", [], ["set"], False),
    "media_app": ("string", [], ["set"], False),
    "media_title": ("string", [], GET, True),
    "media_playback": (
        "enum",
        ["playing", "paused", "stopped", "buffering", "idle"],
        ["play", "pause", "stop", "next", "previous"],
        False,
    ),
}
POSITIONS = ["open", "closed", "opening", "closing", "stopped", "jammed"]
ACCESS: Rows = {
    "lock": ("enum", ["locked", "unlocked", "jammed"], ["lock", "unlock"], False),
    "door": ("enum", POSITIONS, ["open", "close", "stop"], False),
    "garage_door": ("enum", POSITIONS, ["open", "close", "stop"], False),
    "cover_position": (PERCENTAGE, [], ["open", "close", "stop", "set"], False),
    "cover_tilt": (PERCENTAGE, [], ["open", "close", "stop", "set"], False),
}
DOMAINS = {
    "weather": WEATHER,
    "lighting": LIGHTING,
    "sensor": SENSOR,
    "climate": CLIMATE,
    "energy": ENERGY,
    "media": MEDIA,
    "access-control": ACCESS,
}

EXPECTED = [(domain, key, *row) for domain, rows in DOMAINS.items() for key, row in rows.items()]


def test_the_catalog_holds_the_contracts_sixty_entries_in_its_order() -> None:
    found = [
        (each.domain, each.key, each.type, list(each.values), list(each.actions), each.read_only)
        for each in CAPABILITIES.values()
    ]
    assert found == EXPECTED
    assert len(found) == 60


def test_an_entry_is_found_by_its_key_and_describes_itself_in_a_sentence() -> None:
    for key, entry in CAPABILITIES.items():
        assert entry.key == key
        assert re.fullmatch(r"[A-Z][^\n]{10,}\.", entry.description)
        assert entry.type == "enum" or entry.type in CHECKS
        assert (entry.type == "enum") == bool(entry.values)


@each_row("key", [key for key, entry in CAPABILITIES.items() if entry.type == "enum"])
def test_an_enum_capability_takes_each_of_its_values_and_no_other(key: str) -> None:
    entry = CAPABILITIES[key]
    assert [entry.check(value) for value in entry.values] == list(entry.values)
    strangers: list[Any] = ["", "something", entry.values[0].upper(), None, True, 0, [entry.values[0]]]
    for stranger in strangers:
        with pytest.raises(Invalid):
            entry.check(stranger)


@each_row(
    ("key", "good", "bad"),
    [
        ("brightness", 50.0, 101),
        ("color_rgb", {"r": 1, "g": 2, "b": 3}, {"r": 1, "g": 2, "b": 300}),
        ("color_hex", "#102030", "102030"),
        ("color_xy", {"x": 0.1, "y": 0.2}, {"x": 0.1, "y": 1.2}),
        ("color_hs", {"hue": 1, "saturation": 2}, {"hue": 361, "saturation": 2}),
        ("color_temperature", {"value": 2200, "unit": "kelvin"}, {"value": 2199, "unit": "kelvin"}),
        ("transition", 0.5, "fast"),
        ("led_indication", True, 1),
        ("wind_direction", "NNW", 1.5),
        ("rainfall", {"value": 1, "unit": "mm", "period": "1h"}, {"value": 1, "unit": "mm"}),
        ("target_temperature", {"value": 21, "unit": "celsius"}, 21),
        ("fan_mode", "breeze", 3),
        ("illuminance", 300, 300.5),
    ],
)
def test_a_capability_checks_by_its_own_type(key: str, good: Any, bad: Any) -> None:
    assert CAPABILITIES[key].check(good) == good
    with pytest.raises(Invalid):
        CAPABILITIES[key].check(bad)


def test_read_only_means_that_get_is_all_one_can_do() -> None:
    for entry in CAPABILITIES.values():
        assert entry.read_only == (entry.actions == ("get",)), entry.key


def test_ownership_names_where_each_sort_of_data_lives() -> None:
    assert OWNERSHIP["canonical_attribute_location"] == "device.attributes.<capability_key>"
    assert OWNERSHIP["custom_attribute_prefix"] == "custom."
    assert OWNERSHIP["vendor_metadata_field"] == "metadata.vendor_specific"
    assert OWNERSHIP["rules"] and all(re.fullmatch(r"[A-Z].+\.", rule) for rule in OWNERSHIP["rules"])
    assert set(OWNERSHIP) == {
        "canonical_attribute_location",
        "custom_attribute_prefix",
        "vendor_metadata_field",
        "rules",
    }


def test_every_number_that_has_a_unit_says_which_and_every_sum_over_what() -> None:
    entries = CAPABILITIES.values()
    needing = {each.key for each in entries if each.type in (MEASUREMENT, ACCUMULATION, PERCENTAGE)}
    others = {"wind_direction", "uv_index", "cloud_coverage", "illuminance", "transition", "color_temperature"}
    assert UNITS.keys() == needing | others
    assert set(UNITS.values()) >= {"°C", "%", "W", "kWh", "V", "A", "lx", "hPa", "ppm", "kelvin"}
    [units] = [line for line in ADAPTERS_PAGE.read_text().splitlines() if line.startswith("| units |")]
    assert set(UNITS.values()) <= set(re.findall("`([^`]+)`", units))
    assert {each.key for each in entries if each.period} == {
        each.key for each in entries if each.type == ACCUMULATION
    }
