"""Maps Home Assistant's entity classes to capabilities, and back. MQTT and the import from Home Assistant use this
table."""

from __future__ import annotations

from msgspec import Struct

from appliance.home.model import ALARM_CLASSES
from appliance.home.values import Value


class SensorClass(Struct, frozen=True):
    """The capability of a measurement, and its allowed units. If `units` is None, any unit is allowed."""

    capability: str
    units: tuple[str, ...] | None = None


class BinaryClass(Struct, frozen=True):
    """The capability of a binary sensor, and its values for on and off."""

    capability: str
    on: Value = True
    off: Value = False


_PRESSURE = SensorClass("pressure", ("hPa", "kPa", "mbar", "inHg", "psi", "bar", "Pa", "mmHg"))
_CONTACT = BinaryClass("contact", "open", "closed")
_MOTION = BinaryClass("motion", "detected", "clear")
_OCCUPANCY = BinaryClass("occupancy", "occupied", "unoccupied")

SENSORS: dict[str, SensorClass] = {
    "temperature": SensorClass("temperature", ("°C", "°F", "K")),
    "humidity": SensorClass("humidity", ("%",)),
    "pressure": _PRESSURE,
    "atmospheric_pressure": _PRESSURE,
    "carbon_dioxide": SensorClass("co2", ("ppm",)),
    "power": SensorClass("power_consumption", ("W", "kW", "mW", "MW")),
    "voltage": SensorClass("voltage", ("V",)),
    "current": SensorClass("current", ("A", "mA")),
    "illuminance": SensorClass("illuminance", ("lx",)),
    "battery": SensorClass("battery", ("%", "")),
    "energy": SensorClass("energy_total", ("Wh", "kWh", "MWh")),
    "wind_speed": SensorClass("wind_speed"),
    "wind_direction": SensorClass("wind_direction"),
    "precipitation": SensorClass("rainfall"),
}

BINARY_SENSORS: dict[str, BinaryClass] = {
    **dict.fromkeys(("door", "window", "opening", "garage_door"), _CONTACT),
    **dict.fromkeys(("motion", "moving"), _MOTION),
    **dict.fromkeys(("occupancy", "presence"), _OCCUPANCY),
    "smoke": BinaryClass("smoke"),
    "moisture": BinaryClass("water_leak"),
}

DANGERS = {*ALARM_CLASSES, "smoke", "moisture"}
"""The classes of binary sensors that report a danger."""

COVERS: dict[str, str] = {"garage": "garage_door", "gate": "door", "door": "door"}
"""The capabilities of covers that are doors, by class. Covers of other classes have a position."""
