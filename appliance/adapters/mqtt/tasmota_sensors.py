"""The sensors of a Tasmota: which values its discovery names, and what each is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

SensorPath = tuple[str, ...]
"""Where a value stands in a sensor message: `("BME280", "Temperature")`."""

MAX_KEYS = 100
"""Keys of one object that are read."""

MAX_PATH_KEYS = 4
"""Levels of objects that are read."""

_SENSORS: Mapping[str, tuple[str, str]] = {
    "Temperature": ("temperature", "°C"),
    "Humidity": ("humidity", "%"),
    "Pressure": ("pressure", "hPa"),
    "Illuminance": ("illuminance", "lx"),
    "CarbonDioxide": ("carbon_dioxide", "ppm"),
    "Power": ("power", "W"),
    "Voltage": ("voltage", "V"),
    "Current": ("current", "A"),
    "Total": ("energy", "kWh"),
    "Today": ("energy", "kWh"),
    "Yesterday": ("energy", "kWh"),
    "ApparentPower": ("apparent_power", "VA"),
    "ReactivePower": ("reactive_power", "var"),
    "Factor": ("power_factor", ""),
}
"""Device class and unit of what Tasmota's sensors call their values."""

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,60}")


def sensor_paths(found: Mapping[str, Any], path: SensorPath = ()) -> Iterator[SensorPath]:
    """The paths of all numbers that stand inside an object of what was found."""
    for key, value in list(found.items())[:MAX_KEYS]:
        if not _KEY.fullmatch(key) or len(path) >= MAX_PATH_KEYS:
            continue
        if isinstance(value, dict):
            yield from sensor_paths(value, (*path, key))
        elif path and isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key)


def sensor_fields(path: SensorPath) -> dict[str, Any]:
    """The fields of an announcement that say where the value stands and what it is."""
    keys = "".join(f"['{key}']" for key in path)
    source = "(value_json.StatusSNS if value_json.StatusSNS is defined else value_json)"
    fields: dict[str, Any] = {"value_template": f"{{{{ {source}{keys} | is_defined }}}}"}
    device_class, unit = _SENSORS.get(path[-1], ("", ""))
    if device_class:
        fields |= {"device_class": device_class, "state_class": "measurement"}
        fields |= {"unit_of_measurement": unit} if unit else {}
    return fields
