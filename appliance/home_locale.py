"""The location of the home: its time zone and coordinates."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from appliance.errors import Invalid
from appliance.tables.checks import format_value, nearest, number_within, string, suggest
from appliance.tables.fields import Settings, key

TZDATA = Path(import_module("tzdata").__path__[0])
EARTH_RADIUS_METERS = 6_371_000

JOINED_ZONES = "zones.joined"
"""The name of the file with all zones. The first line of the file is JSON with the offset and size of each zone."""


@cache
def zone_names() -> frozenset[str]:
    return frozenset((TZDATA / "zones").read_text().split())


@cache
def load_zone(name: str) -> ZoneInfo:
    """Load the zone from the bundled data, because the operating system's data may be outdated."""
    if name not in zone_names():
        # suggest no abbreviation such as EST, and not Etc/GMT+1, which is the zone UTC-1
        places = (each for each in zone_names() if "/" in each and not each.startswith("Etc/"))
        near = nearest(name, places)
        hint = suggest(near, "names look like Europe/Berlin")
        raise Invalid(f"{format_value(name)} is not a time zone{hint}")
    return ZoneInfo.from_file(BytesIO(read_zone(name)), key=name)


def read_zone(name: str, folder: Path = TZDATA) -> bytes:
    """Return the zone's data."""
    joined = _open_joined(folder)
    if joined is None:
        return (folder / "zoneinfo" / name).read_bytes()
    start, size = joined.places[name]
    return os.pread(joined.descriptor, size, joined.start + start)


def find_zone(name: str, folder: Path = TZDATA) -> tuple[Path, int, int]:
    """Return the file with the zone's data, and the offset and the size of the data in this file."""
    joined = _open_joined(folder)
    if joined is None:
        path = folder / "zoneinfo" / name
        return path, 0, path.stat().st_size
    start, size = joined.places[name]
    return folder / JOINED_ZONES, joined.start + start, size


class _JoinedZones(NamedTuple):
    """The open file with all zones. `start` is the offset of the data. `places` maps each zone to its offset in the
    data and its size."""

    descriptor: int
    start: int
    places: Mapping[str, tuple[int, int]]


@cache
def _open_joined(folder: Path) -> _JoinedZones | None:
    """Open the file with all zones, if it exists. The file remains open, because a command of root cannot open it
    after the command has switched to the hub's user."""
    try:
        with (folder / JOINED_ZONES).open("rb") as file:
            index = file.readline()
            return _JoinedZones(os.dup(file.fileno()), len(index), orjson.loads(index))
    except FileNotFoundError:
        return None


def _zone(value: Any) -> ZoneInfo:
    name = string(value)
    try:
        return load_zone(name)
    except Invalid as fault:
        raise Invalid(f'must be the name of a time zone like "Europe/Berlin": {fault}') from None


class Locale(Settings, frozen=True, kw_only=True):
    """The home's time zone and, if known, its coordinates in degrees. North and east are positive."""

    timezone: ZoneInfo = key(_zone, load_zone("UTC"))
    latitude: float | None = key(number_within(-90, 90), required=False)
    longitude: float | None = key(number_within(-180, 180), required=False)

    @property
    def has_coordinates(self) -> bool:
        return self.latitude is not None and self.longitude is not None

    def distance_to(self, latitude: float, longitude: float) -> float:
        """Return the distance in metres to a place. The home must have coordinates."""
        here, there = math.radians(self.latitude or 0), math.radians(latitude)
        half_north, half_east = (there - here) / 2, math.radians(longitude - (self.longitude or 0)) / 2
        chord = math.sin(half_north) ** 2 + math.cos(here) * math.cos(there) * math.sin(half_east) ** 2
        return 2 * EARTH_RADIUS_METERS * math.asin(math.sqrt(min(chord, 1)))

    def local(self, instant: datetime) -> datetime:
        return instant.astimezone(self.timezone)

    def noon(self, day: date) -> datetime:
        """Return local noon on the date, as an instant in UTC."""
        return datetime(day.year, day.month, day.day, 12, tzinfo=self.timezone).astimezone(UTC)

    def clock(self, instant: datetime) -> str:
        """Return the local time of day to the minute: `06:05`."""
        return self.local(instant).strftime("%H:%M")

    def days_around(self, instant: datetime, before: int, after: int) -> list[date]:
        """Return local dates around the instant, from `before` days earlier to `after` days later."""
        today = self.local(instant).date()
        return [today + timedelta(days=n) for n in range(-before, after + 1)]


ANYWHERE = Locale()
"""A home in UTC without coordinates."""
