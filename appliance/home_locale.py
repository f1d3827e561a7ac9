"""Where the home is: its time zone, and its place under the sun."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from appliance.errors import Invalid
from appliance.tables.checks import nearest, number_within, shown, string
from appliance.tables.fields import Settings, key

JOINED_ZONES = "zones.joined"
"""A line of JSON, where behind it each zone begins and its size, and then all zones."""


@cache
def zone_names() -> frozenset[str]:
    """The names of all zones that Lares brings with it."""
    return frozenset((files("tzdata") / "zones").read_text().split())


@cache
def load_zone(name: str) -> ZoneInfo:
    """The zone of this name, always from the data that Lares brings, never from the box's own, which may be old.

    `Invalid` names the nearest zone that exists.
    """
    if name not in zone_names():
        near = nearest(name, zone_names())
        hint = "names look like Europe/Berlin" if near is None else f"did you mean {near}"
        raise Invalid(f"{shown(name)} is not a time zone; {hint}")
    path, start, size = find_zone(name)
    with path.open("rb") as file:
        file.seek(start)
        return ZoneInfo.from_file(BytesIO(file.read(size)), key=name)


def find_zone(name: str) -> tuple[Path, int, int]:
    """The file that holds this zone of tzdata, from where in it, and its size; in the single file, one holds all."""
    folder = Path(str(files("tzdata")))
    joined = folder / JOINED_ZONES
    try:
        with joined.open("rb") as file:
            start, size = orjson.loads(file.readline())[name]
            return joined, file.tell() + start, size
    except FileNotFoundError:
        path = folder / "zoneinfo" / name
        return path, 0, path.stat().st_size


def _zone(value: Any) -> ZoneInfo:
    """A check: the name of a time zone."""
    name = string(value)
    try:
        return load_zone(name)
    except Invalid as fault:
        raise Invalid(f'must be the name of a time zone like "Europe/Berlin": {fault}') from None


class Locale(Settings, frozen=True, kw_only=True):
    """The home's zone, and its coordinates in degrees (north and east are positive) where they are known."""

    timezone: ZoneInfo = key(_zone, load_zone("UTC"))
    latitude: float | None = key(number_within(-90, 90), required=False)
    longitude: float | None = key(number_within(-180, 180), required=False)

    @property
    def is_placed(self) -> bool:
        """Whether both coordinates are known."""
        return self.latitude is not None and self.longitude is not None

    def local(self, instant: datetime) -> datetime:
        """What the home's clocks show at the instant."""
        return instant.astimezone(self.timezone)

    def noon(self, day: date) -> datetime:
        """Twelve o'clock of a local date, in UTC."""
        return datetime(day.year, day.month, day.day, 12, tzinfo=self.timezone).astimezone(UTC)

    def clock(self, instant: datetime) -> str:
        """The local time of day to the minute, as sentences show it: `06:05`."""
        return self.local(instant).strftime("%H:%M")

    def days_around(self, instant: datetime, before: int, after: int) -> list[date]:
        """The local dates from so many days before the instant's to so many after it."""
        today = self.local(instant).date()
        return [today + timedelta(days=n) for n in range(-before, after + 1)]
