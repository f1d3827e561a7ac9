"""The time zone of the machine, for an initial configuration."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from appliance.cli.initial_config import ConfigTemplate, find_template, read_template
from appliance.home_locale import zone_names
from appliance.tables.plain_files import read_plain

ETC = Path("/etc")

MAX_TIMEZONE_BYTES = 1 << 10

_UTC_NAMES = frozenset({"UTC", "UCT", "Universal", "Zulu"})
_BUNDLED_LINE = b'\ntimezone = "UTC"\n'


def read_initial_config(arguments: argparse.Namespace) -> ConfigTemplate:
    """Return the named configuration, or the bundled configuration with the machine's time zone."""
    template = read_template(find_template(arguments))
    return template if arguments.config else in_machine_zone(template)


def in_machine_zone(template: ConfigTemplate) -> ConfigTemplate:
    """Return the template with the machine's time zone, so that 18:00 in an automation is 18:00 at home."""
    zone = find_machine_zone(os.environ)
    if zone is None:
        return template
    line = f'\ntimezone = "{zone}"\n'.encode()
    return {path: (text.replace(_BUNDLED_LINE, line), mode) for path, (text, mode) in template.items()}


def find_machine_zone(environment: Mapping[str, str], etc: Path = ETC) -> str | None:
    """Return the IANA name of the machine's time zone. Return None for UTC, and if the name is unknown."""
    variable = environment.get("TZ", "").removeprefix(":")
    places = [variable] if variable else [os.path.realpath(etc / "localtime"), _read_timezone(etc / "timezone")]
    name = next((name for name in map(_zone_in, places) if name in zone_names()), None)
    return None if name is None or name.rpartition("/")[2] in _UTC_NAMES else name


def _zone_in(place: str) -> str:
    """Return the name in the path of a zone's file. The folder `right` counts leap seconds, and `posix` does not."""
    return place.rpartition("zoneinfo/")[2].removeprefix("posix/").removeprefix("right/")


def _read_timezone(file: Path) -> str:
    """Return the content of `/etc/timezone`, which some systems write in addition to `/etc/localtime`."""
    with suppress(OSError):
        return read_plain(file, MAX_TIMEZONE_BYTES).decode(errors="replace").strip()
    return ""
