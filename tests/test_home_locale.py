"""Lares contains the data of the home's time zone, and computes times and dates correctly."""

from __future__ import annotations

import zoneinfo
from datetime import date
from pathlib import Path

import pytest

from appliance.errors import Invalid
from appliance.home_locale import JOINED_ZONES, Locale, load_zone, read_zone, zone_names
from tests.automations.homes import BERLIN, NOWHERE, at
from tests.fakes.rows import each_row


def test_time_zones_do_not_come_from_the_box() -> None:
    path = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=())
    try:
        assert load_zone.__wrapped__("Asia/Kathmandu").key == "Asia/Kathmandu"
    finally:
        zoneinfo.reset_tzpath(to=path)


def test_every_zone_can_be_read_after_root_has_become_another_user(tmp_path: Path) -> None:
    (tmp_path / JOINED_ZONES).write_bytes(b'{"UTC":[0,3],"Europe/Berlin":[3,4]}\nutchere')
    assert read_zone("UTC", tmp_path) == b"utc"
    (tmp_path / JOINED_ZONES).unlink()  # root can no longer open the file, either
    assert read_zone("Europe/Berlin", tmp_path) == b"here"


@pytest.mark.slow
def test_every_zone_can_be_loaded_and_is_cached() -> None:
    assert len(zone_names()) > 500
    for name in zone_names():
        assert load_zone(name) is load_zone(name)


@each_row(
    ("name", "sentence"),
    [
        ("Europe/Berln", "'Europe/Berln' is not a time zone; did you mean Europe/Berlin?"),
        ("Nowhere", "'Nowhere' is not a time zone; names look like Europe/Berlin"),
        *((each, f"'{each}' is not a time zone; names look like Europe/Berlin") for each in ("CEST", "GMT+1")),
        ("Berlin", "'Berlin' is not a time zone; did you mean Europe/Berlin?"),
        ("../zones", "'../zones' is not a time zone; names look like Europe/Berlin"),
        ("", "'' is not a time zone; names look like Europe/Berlin"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest(name: str, sentence: str) -> None:
    with pytest.raises(Invalid) as refused:
        load_zone(name)
    assert str(refused.value) == sentence


def test_clocks_and_noon_follow_the_zone() -> None:
    assert BERLIN.clock(at("2026-03-29T00:59:59")) == "01:59"
    assert BERLIN.clock(at("2026-03-29T01:00:00")) == "03:00"
    assert BERLIN.noon(date(2026, 3, 28)) == at("2026-03-28T11:00:00")
    assert BERLIN.noon(date(2026, 3, 29)) == at("2026-03-29T10:00:00")
    assert BERLIN.days_around(at("2026-03-31T23:00:00"), 1, 1) == [
        date(2026, 3, 31),
        date(2026, 4, 1),
        date(2026, 4, 2),
    ]


def test_a_home_has_a_place_if_both_coordinates_are_known() -> None:
    assert BERLIN.has_coordinates and not NOWHERE.has_coordinates
    assert Locale(timezone=BERLIN.timezone, latitude=0.0, longitude=0.0).has_coordinates
    assert not Locale(timezone=BERLIN.timezone, latitude=0.0).has_coordinates


def test_the_distance_between_two_places_in_metres() -> None:
    berlin = Locale(latitude=52.52, longitude=13.405)
    assert berlin.distance_to(52.52, 13.405) == 0
    assert round(berlin.distance_to(48.8566, 2.3522) / 1000) == 877  # to Paris
    assert round(berlin.distance_to(-52.52, -166.595) / 1000) == 20015  # to the other side of the Earth
