"""Read-only components."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.numbers import clamped, read_number, stated_number
from appliance.adapters.mqtt.platforms.payloads import Update, is_unknown, read_word
from appliance.errors import Invalid
from appliance.home.device_classes import BINARY_SENSORS, SENSORS
from appliance.home.values import Value

_SPELLED = {"C": "°C", "F": "°F", "ºC": "°C", "ºF": "°F", "℃": "°C", "℉": "°F"}
"""Standard units by the spellings that some devices use."""

HOME_RADIUS_METERS = 100
"""Distance within which a person is at home. Home Assistant's zone has the same default."""

_WORD_CLASSES = ("", "date", "enum", "timestamp", "uptime")
"""Device classes whose values are not numbers. An empty string means no class."""

_PERIODS = (
    "hourly", "daily", "weekly", "monthly", "yearly", "event", "today", "hour", "day", "week", "month", "year",
)  # fmt: skip
"""Words in a sensor's name that specify the period of a sum."""


class Sensor(Entity):
    """A read-only value. If no capability fits, the value is a custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        unit, device_class = self.config.text("unit_of_measurement"), self.config.text("device_class")
        self.unit = _SPELLED.get(unit, unit)
        self._is_number = bool(unit) or "state_class" in self.config or device_class not in _WORD_CLASSES
        self._options = self.config.texts("options")
        self._words = f"{self.announcement.object_id} {self.config.text('name')}".lower()
        self.claims = (key,) if (key := self._capability()) else ()
        self.add_reader("state_topic", Sensor._parse, "value_template")

    def _capability(self) -> str:
        device_class, unit, words = self.config.text("device_class"), self.unit, self._words
        if device_class not in SENSORS:
            if unit == "°" and "wind" in words:
                return "wind_direction"
            if device_class == "aqi" and self._options:
                return "air_quality"
            return "uv_index" if unit == "UV index" else ""
        capability, units = SENSORS[device_class].capability, SENSORS[device_class].units
        if units is not None and unit not in units:
            return ""
        if device_class == "energy":
            periods = (f"energy_{word}" for word in ("today", "yesterday", "month") if word in words)
            return next(periods, capability)
        if device_class == "wind_speed":
            return "" if "max" in words or "daily" in words else "wind_gust" if "gust" in words else capability
        return capability

    def _parse(self, text: str) -> Update:
        key = self.claims[0] if self.claims else ""
        if not key and not self._is_number and not self._options:
            is_null = text == "None" and ("value_template" in self.config or "device_class" in self.config)
            return {self.custom_key: None if is_null else text[:1000]}
        if self._options and text not in self._options:
            return read_word(text, dict.fromkeys(self._options), self.main_attribute)
        if key == "air_quality" or not (key or self._is_number):
            return {self.main_attribute: text[:1000]}
        return read_number(text, self.main_attribute, partial(self._measurement, key))

    def _measurement(self, key: str, number: float) -> Value:
        """Convert a measured number to a value of the capability. Without a capability, return the number."""
        if key == "battery":
            return clamped(number)
        if key in ("illuminance", "wind_direction"):
            return round(number)
        if key in ("", "uv_index"):
            return number
        value: dict[str, Value] = {"value": number, "unit": self.unit}
        if key.startswith("energy_"):
            value["period"] = key.removeprefix("energy_")
        elif key == "rainfall":
            value["period"] = next((word for word in _PERIODS if word in self._words), "total")
        return value


class BinarySensor(Entity):
    """A read-only binary value. If no capability fits, the value is a boolean custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        self._on, self._off = self.payload("on"), self.payload("off")
        self._ignored = self.config.texts("_ignored")
        self.off_delay = self.config.number("off_delay", 0)
        device_class = self.config.text("device_class")
        found = BINARY_SENSORS.get(device_class)
        self._values = (True, False) if found is None else (found.on, found.off)
        self.claims = () if found is None else (found.capability,)
        self.more_attributes = ("presence",) if device_class == "presence" else ()
        self.add_reader("state_topic", BinarySensor._parse, "value_template")

    def showing(self, is_on: Value) -> Update:
        """Return the values for on, off, or unknown (None)."""
        on, off = self._values if self.claims else (True, False)
        value = None if is_on is None else on if is_on else off
        return {self.main_attribute: value, **dict.fromkeys(self.more_attributes, is_on)}

    def _parse(self, text: str) -> Update:
        found = read_word(text, {self._on: True, self._off: self._off == self._on}, "is_on", ignored=self._ignored)
        return self.showing(found["is_on"]) if found else {}


class DeviceTracker(Entity):
    """A person's device. The device reports `presence` and the name of the zone or room.

    A person in a GPS zone is away from home. A person whom another sensor (for example, a Bluetooth sensor) detects
    in a room is at home. Without a state topic, the coordinates of the person decide.
    """

    device_class = "person"
    is_renamed = True
    more_attributes = ("custom.mqtt.zone",)

    def setup(self) -> None:
        self.claims = ("presence",)
        self.add_reader("state_topic", DeviceTracker._parse, "value_template")
        self.add_reader("json_attributes_topic", DeviceTracker._parse_zones, "json_attributes_template")

    def use_custom(self, suffix: str = "") -> None:
        super().use_custom(suffix)
        self.more_attributes = (f"{self.custom_key}_zone",)

    def _parse(self, text: str) -> Update:
        [zone] = self.more_attributes
        if text == self.config.text("payload_reset", "None") or is_unknown(text):
            return {self.main_attribute: None, zone: None}
        if text == "":
            return {}
        is_home = text == self.config.text("payload_home", "home")
        is_zone = not is_home and text != self.config.text("payload_not_home", "not_home")
        is_room = is_zone and self.config.text("source_type", "gps") != "gps"
        return {self.main_attribute: is_home or is_room, zone: text[:200] if is_zone else None}

    def _parse_zones(self, text: str) -> Update:
        """Return the presence that a JSON object reports through coordinates or through `in_zones`, a list such as
        `["zone.home"]`. Ignore other objects."""
        attributes = parse_object(text, "the attributes") if text else {}
        zones = attributes.get("in_zones")
        if not isinstance(zones, list):
            return {} if "state_topic" in self.config else self._located(attributes)
        names = [str(each).removeprefix("zone.")[:200] for each in zones]
        is_home = "home" in names
        [zone] = self.more_attributes
        return {self.main_attribute: is_home, zone: None if is_home or not names else names[0]}

    def _located(self, attributes: Mapping[str, Any]) -> Update:
        """Return the presence at the coordinates. Within `HOME_RADIUS_METERS`, plus the accuracy of the position, the
        person is at home."""
        latitude, longitude = (stated_number(attributes.get(each)) for each in ("latitude", "longitude"))
        if latitude is None or longitude is None:
            return {}
        if not self.locale.has_coordinates:
            raise Invalid("the home has no coordinates; set latitude and longitude in [locale]")
        accuracy = max(stated_number(attributes.get("gps_accuracy")) or 0, 0)
        is_home = self.locale.distance_to(latitude, longitude) - accuracy < HOME_RADIUS_METERS
        [zone] = self.more_attributes
        return {self.main_attribute: is_home, zone: None}
