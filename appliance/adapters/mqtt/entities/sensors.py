"""Sensors and binary sensors: which capability a class and unit come to, and what else is a custom attribute."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.entities.entity import Entity, Update, is_unknown, parse_number
from appliance.errors import Invalid
from appliance.home.values import Value

_TEMPERATURES = ("°C", "°F", "K", "C", "F")
_PRESSURES = ("hPa", "kPa", "mbar", "inHg", "psi", "bar", "Pa", "mmHg")

_MEASUREMENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "temperature": ("temperature", _TEMPERATURES),
    "humidity": ("humidity", ("%",)),
    "pressure": ("pressure", _PRESSURES),
    "atmospheric_pressure": ("pressure", _PRESSURES),
    "carbon_dioxide": ("co2", ("ppm",)),
    "power": ("power_consumption", ("W", "kW", "mW", "MW")),
    "voltage": ("voltage", ("V",)),
    "current": ("current", ("A", "mA")),
}
"""Capability and units of the device classes that are measurements."""

_BINARY: Mapping[str, tuple[str, Value, Value]] = {
    "door": ("contact", "open", "closed"),
    "window": ("contact", "open", "closed"),
    "opening": ("contact", "open", "closed"),
    "garage_door": ("contact", "open", "closed"),
    "motion": ("motion", "detected", "clear"),
    "moving": ("motion", "detected", "clear"),
    "occupancy": ("occupancy", "occupied", "unoccupied"),
    "presence": ("occupancy", "occupied", "unoccupied"),
    "smoke": ("smoke", True, False),
    "moisture": ("water_leak", True, False),
}
"""Capability of a binary sensor's device class, and its values for on and off."""

_PERIODS = (
    "hourly", "daily", "weekly", "monthly", "yearly", "event", "today", "hour", "day", "week", "month", "year",
)  # fmt: skip
"""Words in a name that say over which time its value is summed up."""


class Sensor(Entity):
    """A value that can only be read."""

    def setup(self) -> None:
        """Find the capability; without one the value is a custom attribute."""
        self._unit = self.config.text("unit_of_measurement")
        self._is_number = bool(self._unit) or "state_class" in self.config
        self._capability_key = self._capability()
        self.claims = (self._capability_key,) if self._capability_key else ()
        self.read("state_topic", self._parse, "value_template")

    def use_custom(self, suffix: str = "") -> None:
        """Show the bare value under the object's id."""
        super().use_custom(suffix)
        self._capability_key = ""

    @property
    def _words(self) -> str:
        """The object's id and name, in which words such as `today` are looked for."""
        return f"{self.announcement.object_id} {self.config.text('name')}".lower()

    def _capability(self) -> str:
        device_class, unit = self.config.text("device_class"), self._unit
        if device_class in _MEASUREMENTS:
            capability, units = _MEASUREMENTS[device_class]
            return capability if unit in units else ""
        if device_class == "illuminance":
            return "illuminance" if unit == "lx" else ""
        if device_class == "battery":
            return "battery" if unit in ("%", "") else ""
        if device_class == "energy" and unit in ("Wh", "kWh", "MWh"):
            return next((f"energy_{word}" for word in ("today", "yesterday", "month") if word in self._words),
                        "energy_total")  # fmt: skip
        return self._weather_sensor(device_class, unit)

    def _weather_sensor(self, device_class: str, unit: str) -> str:
        words = self._words
        if device_class == "wind_speed":
            if "max" in words or "daily" in words:
                return ""
            return "wind_gust" if "gust" in words else "wind_speed"
        if device_class == "precipitation":
            return "rainfall"
        if device_class == "wind_direction" or (unit == "°" and "wind" in words):
            return "wind_direction"
        if device_class == "aqi" and self.config.texts("options"):
            return "air_quality"
        return "uv_index" if unit == "UV index" else ""

    def _parse(self, text: str) -> Update:
        key = self._capability_key
        if not key and not self._is_number:
            return {self.custom: None if self.is_null(text) else text[:1000]}
        if is_unknown(text) and text not in self.config.texts("options"):
            return {key or self.custom: None}
        if text == "":
            return {}
        if not key:
            return {self.custom: self._custom_value(text)}
        return {key: text if key == "air_quality" else self._measurement(key, parse_number(text))}

    def _measurement(self, key: str, number: float) -> Value:
        """The value of a capability."""
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

    def _custom_value(self, text: str) -> Value:
        try:
            return parse_number(text)
        except Invalid:
            return text[:1000]


class BinarySensor(Entity):
    """A yes or no that can only be read."""

    def setup(self) -> None:
        """Find the capability; without one the value is a boolean custom attribute."""
        self._on, self._off = self.config.text("payload_on", "ON"), self.config.text("payload_off", "OFF")
        self.off_delay = self.config.number("off_delay", 0)
        found = _BINARY.get(self.config.text("device_class"))
        self._key = found[0] if found else ""
        self._values: tuple[Value, Value] = found[1:] if found else (True, False)
        self.claims = (self._key,) if self._key else ()
        self.more_keys = ("presence",) if self.config.text("device_class") == "presence" else ()
        self.read("state_topic", self._parse, "value_template")

    def use_custom(self, suffix: str = "") -> None:
        """Show true or false under the object's id."""
        super().use_custom(suffix)
        self._key, self._values = "", (True, False)

    def when_off(self) -> Update:
        """What it shows when it is off, for `off_delay`."""
        return {self._key or self.custom: self._values[1], **dict.fromkeys(self.more_keys, False)}

    def _parse(self, text: str) -> Update:
        if text == self._on:
            return {self._key or self.custom: self._values[0], **dict.fromkeys(self.more_keys, True)}
        if text == self._off:
            return self.when_off()
        if text == "None":
            return {self._key or self.custom: None, **dict.fromkeys(self.more_keys)}
        if text == "":
            return {}
        raise Invalid(f"{text[:40]!r} is neither {self._on!r} nor {self._off!r}")


class DeviceTracker(Entity):
    """A person's device: `presence`, and where it is in a zone, the zone's name."""

    component_class = "person"
    more_keys = ("custom.mqtt.zone",)

    def setup(self) -> None:
        """Read where it is."""
        self._home = self.config.text("payload_home", "home")
        self._away = self.config.text("payload_not_home", "not_home")
        self._reset = self.config.text("payload_reset", "None")
        self.claims = ("presence",)
        self.read("state_topic", self._parse, "value_template")

    def use_custom(self, suffix: str = "") -> None:
        """Show true or false under the object's id."""
        super().use_custom(suffix)
        self.more_keys = (f"{self.custom}_zone",)

    def _parse(self, text: str) -> Update:
        key, [zone] = self.claims[0] if self.claims else self.custom, self.more_keys
        if text == self._reset or is_unknown(text):
            return {key: None, zone: None}
        if text == "":
            return {}
        is_zone = text not in (self._home, self._away)
        return {key: text == self._home, zone: text[:200] if is_zone else None}
