"""Sensors, by the capability of their class and unit."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.platforms.entity import Entity, Update, is_unknown, parse_number
from appliance.errors import Invalid
from appliance.home.values import Value

_TEMPERATURES = ("°C", "°F", "K")


_SPELLED = {"C": "°C", "F": "°F", "ºC": "°C", "ºF": "°F", "℃": "°C", "℉": "°F"}
"""Units as some announcers write them."""


_WORD_CLASSES = ("", "date", "enum", "timestamp", "uptime")
"""Device classes whose values are not numbers; an empty text is a missing class."""


_PRESSURES = ("hPa", "kPa", "mbar", "inHg", "psi", "bar", "Pa", "mmHg")


_MEASUREMENTS: Mapping[str, tuple[str, tuple[str, ...] | None]] = {
    "temperature": ("temperature", _TEMPERATURES),
    "humidity": ("humidity", ("%",)),
    "pressure": ("pressure", _PRESSURES),
    "atmospheric_pressure": ("pressure", _PRESSURES),
    "carbon_dioxide": ("co2", ("ppm",)),
    "power": ("power_consumption", ("W", "kW", "mW", "MW")),
    "voltage": ("voltage", ("V",)),
    "current": ("current", ("A", "mA")),
    "illuminance": ("illuminance", ("lx",)),
    "battery": ("battery", ("%", "")),
    "energy": ("energy_total", ("Wh", "kWh", "MWh")),
    "wind_speed": ("wind_speed", None),
    "wind_direction": ("wind_direction", None),
    "precipitation": ("rainfall", None),
}
"""Capability and units of the device classes that are measurements; None: any unit."""


_PERIODS = (
    "hourly", "daily", "weekly", "monthly", "yearly", "event", "today", "hour", "day", "week", "month", "year",
)  # fmt: skip
"""Words in a name that give the period of a sum."""


class Sensor(Entity):
    """A value that can only be read; without a capability that it comes to it is a custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        unit, device_class = self.config.text("unit_of_measurement"), self.config.text("device_class")
        self._unit = _SPELLED.get(unit, unit)
        self._is_number = bool(unit) or "state_class" in self.config or device_class not in _WORD_CLASSES
        self._options = self.config.texts("options")
        self._words = f"{self.announcement.object_id} {self.config.text('name')}".lower()
        self.claims = (key,) if (key := self._capability()) else ()
        self.read("state_topic", self._parse, "value_template")

    def _capability(self) -> str:
        device_class, unit, words = self.config.text("device_class"), self._unit, self._words
        if device_class not in _MEASUREMENTS:
            if unit == "°" and "wind" in words:
                return "wind_direction"
            if device_class == "aqi" and self._options:
                return "air_quality"
            return "uv_index" if unit == "UV index" else ""
        capability, units = _MEASUREMENTS[device_class]
        if units is not None and unit not in units:
            return ""
        if device_class == "energy":
            periods = (f"energy_{word}" for word in ("today", "yesterday", "month") if word in words)
            return next(periods, capability)
        if device_class == "wind_speed":
            return "" if "max" in words or "daily" in words else "wind_gust" if "gust" in words else capability
        return capability

    def _parse(self, text: str) -> Update:
        key, is_option = self.claims[0] if self.claims else "", text in self._options
        if not key and not self._is_number and not self._options:
            is_null = text == "None" and ("value_template" in self.config or "device_class" in self.config)
            return {self.custom: None if is_null else text[:1000]}
        if is_unknown(text) and not is_option:
            return {key or self.custom: None}
        if text == "" and not is_option:
            return {}
        if self._options and not is_option:
            raise Invalid(f"{text[:40]!r} is not one of the announced options")
        if key:
            return {key: text if key == "air_quality" else self._measurement(key, parse_number(text))}
        try:
            return {self.custom: parse_number(text) if self._is_number else text[:1000]}
        except Invalid:
            return {self.custom: text[:1000]}

    def _measurement(self, key: str, number: float) -> Value:
        """Return the value of a capability."""
        if key == "battery":
            return min(max(round(number), 0), 100)
        if key in ("illuminance", "wind_direction"):
            return round(number)
        if key == "uv_index":
            return number
        value: dict[str, Value] = {"value": number, "unit": self._unit}
        if key.startswith("energy_"):
            value["period"] = key.removeprefix("energy_")
        elif key == "rainfall":
            value["period"] = next((word for word in _PERIODS if word in self._words), "total")
        return value
