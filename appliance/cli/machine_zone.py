"""The time zone of the machine, for an initial configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from appliance.cli.initial_config import ConfigTemplate
from appliance.home_locale import zone_names

LOCALTIME = Path("/etc/localtime")

_UTC_NAMES = frozenset({"UTC", "UCT", "Universal", "Zulu"})
_BUNDLED_LINE = b'\ntimezone = "UTC"\n'


def in_machine_zone(template: ConfigTemplate) -> ConfigTemplate:
    """Return the template with the machine's time zone, so that 18:00 in an automation is 18:00 at home."""
    zone = find_machine_zone(os.environ)
    if zone is None:
        return template
    line = f'\ntimezone = "{zone}"\n'.encode()
    return {path: (text.replace(_BUNDLED_LINE, line), mode) for path, (text, mode) in template.items()}


def find_machine_zone(environment: Mapping[str, str], localtime: Path = LOCALTIME) -> str | None:
    """Return the IANA name of the machine's time zone. Return None for UTC, and if the name is unknown."""
    name = environment.get("TZ", "").removeprefix(":") or os.path.realpath(localtime)
    name = name.rpartition("zoneinfo/")[2]
    is_utc = name.rpartition("/")[2] in _UTC_NAMES
    return name if name in zone_names() and not is_utc else None
