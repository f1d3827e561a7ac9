"""Sensors of Tasmota's discovery: the values' names, units, and quantities, and the values' paths in messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import Struct

from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.templates.template_limits import MAX_STRING_CHARS, TOO_LONG, TemplateFailed, ValueMissing

JsonPath = tuple[str | int, ...]
"""Keys and list indexes from the outermost to the innermost, such as `("ENERGY", "Power", 0)`."""

_MISSING = object()

MAX_KEYS = 100
"""Maximum number of keys per object, and of elements per list."""

MAX_PATH_KEYS = 4
"""Maximum nesting depth of objects and lists."""

MAX_TEXT_CHARS = 500
"""Maximum length of an announced text. A longer text is not a value."""

TEMPERATURE, PRESSURE, SPEED = "TempUnit", "PressureUnit", "SpeedUnit"
"""Keys of the units that the device announces."""

DEFAULT_UNITS: Mapping[str, str] = {TEMPERATURE: "°C", PRESSURE: "hPa", SPEED: "km/h"}
"""Units for the values of devices that do not announce units."""


class Quantity(Struct, frozen=True):
    """The unit of a value (or the key that contains the unit), and the device class, which determines the
    capability."""

    unit: str = ""
    device_class: str = ""


_LUX, _PPM, _PPB, _DUST = "lx", "ppm", "ppb", "µg/m³"
_KWH, _PARTICLES = "kWh", "ppd"

QUANTITIES: Mapping[str, Quantity] = {
    "Temperature": Quantity(TEMPERATURE, "temperature"),
    "DewPoint": Quantity(TEMPERATURE),
    "HeatIndex": Quantity(TEMPERATURE),
    "ObjectTemp": Quantity(TEMPERATURE),
    "ProbeTemp": Quantity(TEMPERATURE),
    "Humidity": Quantity("%", "humidity"),
    "AHumidity": Quantity("g/m³"),
    "Moisture": Quantity("%", "moisture"),
    "Pressure": Quantity(PRESSURE, "pressure"),
    "SeaPressure": Quantity(PRESSURE),
    "Illuminance": Quantity(_LUX, "illuminance"),
    "Ambient": Quantity(_LUX, "illuminance"),
    "Infrared": Quantity(_LUX),
    "CCT": Quantity("K"),
    "Red": Quantity(),
    "Green": Quantity(),
    "Blue": Quantity(),
    "UvIndex": Quantity("UV index"),
    "UvPower": Quantity("W/m²"),
    "CarbonDioxide": Quantity(_PPM, "carbon_dioxide"),
    "eCO2": Quantity(_PPM),
    "TVOC": Quantity(_PPB, "volatile_organic_compounds_parts"),
    "CarbonMonoxide": Quantity(_PPM, "carbon_monoxide"),
    "HCHO": Quantity(_PPB),
    "NH3": Quantity(_PPM),
    "O2": Quantity("%"),
    "Gas": Quantity("kΩ"),
    "AirQuality": Quantity("%"),
    "PM1": Quantity(_DUST, "pm1"),
    "PM2.5": Quantity(_DUST, "pm25"),
    "PM4": Quantity(_DUST),
    "PM10": Quantity(_DUST, "pm10"),
    "CF1": Quantity(_DUST),
    "CF2.5": Quantity(_DUST),
    "CF10": Quantity(_DUST),
    "PB0.3": Quantity(_PARTICLES),
    "PB0.5": Quantity(_PARTICLES),
    "PB1": Quantity(_PARTICLES),
    "PB2.5": Quantity(_PARTICLES),
    "PB5": Quantity(_PARTICLES),
    "PB10": Quantity(_PARTICLES),
    "Power": Quantity("W", "power"),
    "ActivePower": Quantity("W", "power"),
    "ApparentPower": Quantity("VA", "apparent_power"),
    "ReactivePower": Quantity("var", "reactive_power"),
    "Factor": Quantity("", "power_factor"),
    "PhaseAngle": Quantity("°"),
    "Frequency": Quantity("Hz", "frequency"),
    "Voltage": Quantity("V", "voltage"),
    "Current": Quantity("A", "current"),
    "CurrentNeutral": Quantity("A"),
    "Total": Quantity(_KWH, "energy"),
    "Today": Quantity(_KWH, "energy"),
    "Yesterday": Quantity(_KWH, "energy"),
    "Energy": Quantity(_KWH, "energy"),
    "Period": Quantity("Wh"),
    "TotalTariff": Quantity(_KWH),
    "ImportActive": Quantity(_KWH),
    "ImportReactive": Quantity("kvarh"),
    "ExportActive": Quantity(_KWH),
    "ExportReactive": Quantity("kvarh"),
    "ExportTariff": Quantity(_KWH),
    "Battery": Quantity("%", "battery"),
    "Distance": Quantity("cm", "distance"),
    "Proximity": Quantity(),
    "Weight": Quantity("kg", "weight"),
    "Speed": Quantity(SPEED),
    "Deg": Quantity("°"),
    "Noise": Quantity("dB"),
    "pH": Quantity("", "ph"),
    "EC": Quantity("µS/cm"),
    "ORP": Quantity("mV"),
    "DO": Quantity("mg/L"),
}
"""Quantities by name. All of Tasmota's drivers use these names with the same meaning.

A quantity without a device class never becomes a capability.
"""

_WIND = re.compile(r"TX2[03]|WINDMETER")
"""Wind sensors, whose values are `Speed` and `Dir`."""

_CHIP = re.compile(r"ESP\d*\w*|CPU|AXP\d+|MPU\w*|DS3231|(BL09|CSE77|ADE7|HLW80|MCP39|V92)\w*")
"""Chips that measure their own temperature instead of the room temperature."""

_NOT_KWH = ("AS3935", "LD2410")
"""Sensors whose `Energy` is not electrical."""

_RENUMBERED = ("DS18", "MAX31850")
"""Beginnings of the names that Tasmota numbers again when a sensor appears or fails."""

CARD_READERS = ("RDM6300", "PN532", "MFRC522", "WIEGAND")
"""Card readers, which send a card's `UID`."""

_DIAGNOSTIC = ("Id", "Address", "TotalStartTime")
"""Keys of hardware ids and start times, which are diagnostic values."""

_KEY = re.compile(r"[A-Za-z0-9_. -]{1,60}")


def sensor_values(found: Mapping[str, Any]) -> Iterator[tuple[JsonPath, Any]]:
    """Yield the path and value of each number, text, and null in an announcement.

    A null is a value that the sensor had not yet measured.
    """
    for key, value in list(found.items())[:MAX_KEYS]:
        if isinstance(value, dict) and _KEY.fullmatch(key):
            yield from _inner_values(value, (key,))


def _inner_values(found: Any, path: JsonPath) -> Iterator[tuple[JsonPath, Any]]:
    if isinstance(found, dict | list):
        if len(path) < MAX_PATH_KEYS:
            pairs = found.items() if isinstance(found, dict) else enumerate(found)
            for key, value in list(pairs)[:MAX_KEYS]:
                if isinstance(key, int) or _KEY.fullmatch(key):
                    yield from _inner_values(value, (*path, key))
    elif not isinstance(found, str) or len(found) <= MAX_TEXT_CHARS:
        yield path, found


def units_of(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the announced units by `TempUnit`, `PressureUnit`, and `SpeedUnit`."""
    return {key: str(found.get(key) or default)[:10] for key, default in DEFAULT_UNITS.items()}


def object_id(path: JsonPath) -> str:
    """Join the keys of a path with `_`. List elements are numbered from 1."""
    steps = (str(step + 1) if isinstance(step, int) else step for step in path)
    return re.sub(r"[^A-Za-z0-9_-]", "_", "_".join(steps))


def sensor_name(path: JsonPath) -> str:
    """Join the keys of a path with spaces. List elements are numbered from 1."""
    return " ".join(str(step + 1) if isinstance(step, int) else step for step in path)


def sensor_fields(path: JsonPath, value: Any, units: Mapping[str, str]) -> dict[str, Any]:
    """Describe a value with the keys of Home Assistant's discovery format."""
    keys = [step for step in path if isinstance(step, str)]
    if isinstance(value, str):
        return {"entity_category": "diagnostic"} if keys[-1] in _DIAGNOSTIC else {}
    if isinstance(value, bool):
        return {}
    quantity = _quantity(keys)
    fields: dict[str, Any] = {"state_class": "measurement"}
    if unit := units.get(quantity.unit, quantity.unit):
        fields["unit_of_measurement"] = unit
    if quantity.device_class:
        fields["device_class"] = quantity.device_class
    return fields


def _quantity(keys: list[str]) -> Quantity:
    """Find the quantity of a value by its own key, otherwise by the key above it (`Speed.Avg`)."""
    if _WIND.fullmatch(keys[0]) and keys[1:] in (["Speed", "Act"], ["Speed"]):
        return Quantity(SPEED, "wind_speed")
    if _WIND.fullmatch(keys[0]) and keys[1:] in (["Dir", "Deg"], ["Dir"]):
        return Quantity("°", "wind_direction")
    for key in reversed(keys[1:]):
        name = key.rstrip("0123456789") if keys[0] == "ANALOG" and key not in QUANTITIES else key
        if name == "Energy" and keys[0] in _NOT_KWH:
            return Quantity()
        if (found := QUANTITIES.get(name)) is not None:
            is_chip = any(map(_CHIP.fullmatch, keys)) or keys[0] == "ENERGY"
            is_own = name == "Temperature" and is_chip
            return Quantity(found.unit) if is_own else found
    return Quantity()


class JsonPaths(Template, frozen=True, gc=False):
    """The value at the first of these paths in a message, formatted as a template would render it.

    For a value that is not a list, index 0 is the value itself, because some devices send a list only for two or more
    elements.
    """

    paths: tuple[JsonPath, ...]

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """Return the text. Raise `ValueMissing` if the message contains none of the paths."""
        del now
        for path in self.paths:
            if (value := _value_at(names.get("value_json"), path)) is not _MISSING:
                if len(text := str(value)) > MAX_STRING_CHARS:
                    raise TemplateFailed(TOO_LONG)
                return text.strip()
        raise ValueMissing("the message has no such value")


def at_paths(*paths: JsonPath) -> JsonPaths:
    return JsonPaths(paths)


class ValueOfSensor(Template, frozen=True, gc=False):
    """A value of the sensor with this hardware id, whatever its name in the message is.

    If the message contains no ids of such sensors, the value is at the announced path. If the message contains other
    ids only, the sensor has failed, because Tasmota always sends all of these sensors together.
    """

    id: str
    path: JsonPath
    announced: Template

    def render(self, names: Mapping[str, Any], now: datetime) -> str:
        """Return the text, which is `None` if the sensor has failed. Raise `ValueMissing` if the message contains no
        such sensors."""
        message, has_others = names.get("value_json"), False
        for prefix in ((), ("StatusSNS",)):
            sensors = _value_at(message, prefix)
            if not isinstance(sensors, dict):
                continue
            for name, each in islice(sensors.items(), MAX_KEYS):
                if isinstance(each, dict) and name.startswith(_RENUMBERED) and "Id" in each:
                    if each["Id"] == self.id:
                        return at_paths((*prefix, name, *self.path[1:])).render(names, now)
                    has_others = True
        if has_others:
            return "None"
        return self.announced.render(names, now)


def value_of(sensors: Mapping[str, Any], path: JsonPath) -> Template:
    """Return the template for the value at this path of the announced sensors."""
    announced = at_paths(("StatusSNS", *path), path)
    id_ = _value_at(sensors, (path[0], "Id"))
    if str(path[0]).startswith(_RENUMBERED) and isinstance(id_, str) and id_ and path[1:] != ("Id",):
        return ValueOfSensor(id_, path, announced)
    return announced


def _value_at(value: Any, path: JsonPath) -> Any:
    for step in path:
        if isinstance(step, int):
            if isinstance(value, list):
                value = value[step] if step < len(value) else _MISSING
            elif step:
                return _MISSING
        else:
            value = value.get(step, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            return _MISSING
    return value
