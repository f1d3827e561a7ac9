"""Sensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from appliance.adapters.mqtt.home_assistant_classes import SENSORS
from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.numbers import measured, percentage_parser, read_number
from appliance.adapters.mqtt.platforms.payloads import Update, is_unknown, read_word
from appliance.home.values import Value

_WORD_CLASSES = ("", "date", "enum", "timestamp", "uptime")
"""Device classes whose values are not numbers. An empty string means no class."""

_MOMENT_CLASSES = ("date", "timestamp", "uptime")
"""Device classes whose values are dates or points in time."""

_DAILY = re.compile(r"daily|(?:yield|energy)[ _]?day(?![a-z]|[ _]?tariff)|(?<![a-z])day[ _]?(?:yield|energy)")
"""Matches the name of a sum that starts again each day. The sum of a day tariff does not."""

_PERIODS = (
    "hourly", "daily", "weekly", "monthly", "yearly", "event", "today", "hour", "day", "week", "month", "year",
)  # fmt: skip
"""Words in a sensor's name that specify the period of a sum."""


class Sensor(Entity):
    """A read-only value. If no capability fits, the value is a custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        self.unit, device_class = self.announcement.unit, self.config.text("device_class")
        self._is_number = bool(self.unit or self.config.text("state_class")) or device_class not in _WORD_CLASSES
        self._options = self.config.texts("options")
        self._words = f"{self.announcement.object_id} {self.config.text('name')}".lower()
        self.claims = (key,) if (key := self._capability()) else ()
        self.add_reader("state_topic", Sensor._parse, "value_template")

    @property
    def units(self) -> Mapping[str, str]:
        return {} if self.claims else {self.custom_key: self.unit}

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
            return next(periods, "energy_today" if _DAILY.search(words) else capability)
        if device_class == "wind_speed":
            return "" if "max" in words or "daily" in words else "wind_gust" if "gust" in words else capability
        return capability

    def _parse(self, text: str) -> Update:
        key = self.claims[0] if self.claims else ""
        if not key and not self._is_number and not self._options:
            device_class = self.config.text("device_class")
            is_null = text == "None" and bool("value_template" in self.config or device_class)
            is_null |= device_class in _MOMENT_CLASSES and is_unknown(text)
            return {self.custom_key: None if is_null else text[:1000]}
        if self._options and text not in self._options:
            return read_word(text, {each: each for each in self._options}, self.main_attribute)
        if key == "air_quality" or not (key or self._is_number):
            return {self.main_attribute: text[:1000]}
        return read_number(text, self.main_attribute, partial(self._measurement, key))

    def _measurement(self, key: str, number: float) -> Value:
        """Convert a measured number to a value of the capability. Without a capability, return the number."""
        if key == "battery":
            return percentage_parser(key)(number)
        if key == "illuminance":
            return round(number) if number >= 0 else None  # some sensors report -1 without a measurement
        if key == "wind_direction":
            return round(number)
        if key in ("", "uv_index"):
            return number
        value = measured(key, number, self.unit)
        if key.startswith("energy_"):
            value["period"] = key.removeprefix("energy_")
        elif key == "rainfall":
            value["period"] = next((word for word in _PERIODS if word in self._words), "total")
        return value
