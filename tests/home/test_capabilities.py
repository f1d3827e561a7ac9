"""The catalog of capabilities, compared with a second copy of the contract's catalog."""

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

CONTRACT = """
weather: temperature_outdoor, temperature_apparent, temperature_high, temperature_low, wind_speed, wind_gust,
  visibility (measurement; get; ro)
weather: wind_direction (integer_or_string; get; ro)
weather: rainfall (accumulation; get; ro)
weather: uv_index (number; get; ro)
weather: weather_condition (string; get; ro)
weather: cloud_coverage (integer; get; ro)
lighting: power (enum on, off; on, off, toggle)
lighting: state (enum online, offline, unavailable, unknown; get; ro)
lighting: brightness (percentage; set, increase, decrease)
lighting: color_rgb (rgb_color; set)
lighting: color_hex (hex_color; set)
lighting: color_xy (xy_color; set)
lighting: color_hs (hs_color; set)
lighting: color_temperature (color_temperature; set, increase, decrease)
lighting: color_mode (enum color_temp, rgb, xy, hs, white; set)
lighting: effect (enum none, flash, strobe, colorloop, random; set, stop)
lighting: transition (number; set)
lighting: illuminance (integer; get; ro)
lighting: led_indication (boolean; get, set)
sensor: battery (percentage; get; ro)
sensor: temperature, humidity, pressure, co2 (measurement; get; ro)
sensor: air_quality (enum unknown, excellent, good, moderate, poor, unhealthy, hazardous; get; ro)
sensor: motion (enum detected, clear; get; ro)
sensor: contact (enum open, closed; get; ro)
sensor: occupancy (enum occupied, unoccupied; get; ro)
sensor: smoke, water_leak (boolean; get; ro)
climate: target_temperature (measurement; set)
climate: hvac_mode (enum off, heat, cool, auto, heat_cool, dry, fan_only; set)
climate: hvac_state (enum off, idle, heating, cooling, fan_only, dry; get; ro)
climate: fan_mode, swing_mode, preset_mode (string; set)
energy: power_consumption, voltage, current (measurement; get; ro)
energy: energy_total (accumulation; reset)
energy: energy_today, energy_yesterday, energy_month (accumulation; get; ro)
media: volume (percentage; set, increase, decrease)
media: muted (boolean; set, mute, unmute)
media: media_source, media_app (string; set)
media: media_title (string; get; ro)
media: media_playback (enum playing, paused, stopped, buffering, idle; play, pause, stop, next, previous)
access-control: lock (enum locked, unlocked, jammed; lock, unlock)
access-control: door, garage_door (enum open, closed, opening, closing, stopped, jammed; open, close, stop)
access-control: cover_position, cover_tilt (percentage; open, close, stop, set)
"""

ROW = re.compile(r"(.+): ([^(]+) \((\w+) ?(.*?); (.+?)(; ro)?\)")


def test_the_catalog_has_the_contracts_sixty_entries_in_order() -> None:
    found = [
        (each.domain, each.key, each.type, ", ".join(each.values), ", ".join(each.actions), each.read_only)
        for each in CAPABILITIES.values()
    ]
    rows = ROW.findall(CONTRACT)
    assert found == [
        (domain, key, *row, bool(ro)) for domain, keys, *row, ro in rows for key in re.split(r",\s+", keys)
    ]
    assert len(found) == 60


def test_an_entry_is_found_by_its_key_and_describes_itself_in_a_sentence() -> None:
    for key, entry in CAPABILITIES.items():
        assert entry.key == key
        assert re.fullmatch(r"[A-Z][^\n]{10,}\.", entry.description)
        assert entry.type == "enum" or entry.type in CHECKS
        assert (entry.type == "enum") == bool(entry.values)


@each_row("key", [key for key, entry in CAPABILITIES.items() if entry.type == "enum"])
def test_an_enum_capability_accepts_only_its_values(key: str) -> None:
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


def test_ownership_names_the_place_of_each_kind_of_data() -> None:
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


def test_every_number_has_its_unit_and_every_sum_its_period() -> None:
    entries = CAPABILITIES.values()
    needing = {each.key for each in entries if each.type in ("measurement", "accumulation", "percentage")}
    others = {"wind_direction", "uv_index", "cloud_coverage", "illuminance", "transition", "color_temperature"}
    assert UNITS.keys() == needing | others
    assert set(UNITS.values()) >= {"°C", "%", "W", "kWh", "V", "A", "lx", "hPa", "ppm", "kelvin"}
    [units] = [line for line in ADAPTERS_PAGE.read_text().splitlines() if line.startswith("| units |")]
    assert set(UNITS.values()) <= set(re.findall("`([^`]+)`", units))
    assert {each.key for each in entries if each.period} == {
        each.key for each in entries if each.type == "accumulation"
    }
