"""What can only be read: sensors, by the capability that class and unit come to, and what happens at a device."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.entities.entity import Entity, EntityEvent, Update, is_unknown, parse_number
from appliance.adapters.mqtt.payloads import parse_object
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
        self._options = self.config.texts("options")
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
        key, is_option = self._capability_key, text in self._options
        if not key and not self._is_number and not self._options:
            return {self.custom: None if self.is_null(text) else text[:1000]}
        if is_unknown(text) and not is_option:
            return {key or self.custom: None}
        if text == "" and not is_option:
            return {}
        if self._options and not is_option:
            raise Invalid(f"{text[:40]!r} is none of the announced options")
        if not key and not self._is_number:
            return {self.custom: text[:1000]}
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


_PREFIXES = ("action_", "button_", "click_", "btn_", "event_", "key_")
"""What announcers put in front of the name of a press."""

_PRESSES: Mapping[str, tuple[str, ...]] = {
    "single": ("single_press", "single_click", "single_push", "single_tap", "short_press", "short_click", "1_click"),
    "double": ("double_press", "double_click", "double_push", "double_tap", "2_click"),
    "triple": ("triple_press", "triple_click", "triple_push", "triple_tap", "3_click"),
    "long": ("long_press", "long_click", "long_push", "long_tap"),
    "release": ("long_release", "short_release", "hold_release", "long_press_release"),
}
"""The names of presses by what announcers write, alone or as the first or last words of a longer name."""

_ALONE: Mapping[str, str] = {
    **dict.fromkeys(("short", "press", "pressed", "click", "clicked", "tap", "s"), "single"),
    "press_release": "release",
    "ss": "double",
    "sss": "triple",
    "l": "long",
    "held": "hold",
    "released": "release",
}
"""Words that mean a press only where they are the whole name."""

_WORDS = sorted(((raw, word) for word, each in _PRESSES.items() for raw in each), key=lambda pair: -len(pair[0]))


def press_name(raw: str) -> str:
    """The name of an event however it is announced: in lower case, without prefixes, a press by its own word."""
    name = _without_prefix(raw.lower().replace(" ", "_"))
    if name in _ALONE:
        return _ALONE[name]
    for given, word in _WORDS:
        if name == given:
            return word
        if name.startswith(f"{given}_"):
            return f"{word}_{_without_prefix(name.removeprefix(f'{given}_'))}"
        if name.endswith(f"_{given}"):
            return f"{name.removesuffix(f'_{given}')}_{word}"
    return f"single_{_without_prefix(name.removeprefix('press_'))}" if name.startswith("press_") else name


def _without_prefix(name: str) -> str:
    while (prefix := next((each for each in _PREFIXES if name.startswith(each) and name != each), "")) != "":
        if any(name == given for given, _ in _WORDS):
            break
        name = name.removeprefix(prefix)
    return name


def event_of(raw: str, data: Mapping[str, Value] | None = None) -> EntityEvent:
    """The event of an announcer's word; the word itself stands in `raw` of its data."""
    return EntityEvent(press_name(raw)[:MAX_EVENT_CHARS], {"raw": raw[:MAX_EVENT_CHARS], **(data or {})})


MAX_EVENT_CHARS = 100
"""Characters of an event's name."""


class EventEntity(Entity):
    """An entity whose messages are events: JSON with `event_type`.

    `source` is its object id where the device has several such entities; it is `entity` in the data of the events.
    """

    component_class = "button"
    reports_events = True
    source = ""

    def setup(self) -> None:
        """Read the state topic."""
        self.read("state_topic", self._parse, "value_template")
        self.event_names = tuple(event_of(each).name for each in self.config.texts("event_types"))

    def _parse(self, text: str) -> EntityEvent | None:
        if text == "":
            return None
        found = parse_object(text, "an event")
        name = found.pop("event_type", None)
        if not isinstance(name, str) or not name or name == "None":
            return None
        return event_of(name, self._own_data() | found)

    def _own_data(self) -> dict[str, Value]:
        return {"entity": self.source} if self.source else {}


class ActionSensor(EventEntity):
    """A sensor named `action` whose texts are presses, as Zigbee2MQTT announces them to old readers."""

    def _parse(self, text: str) -> EntityEvent | None:
        return event_of(text, self._own_data()) if text and not is_unknown(text) else None


class Tag(Entity):
    """A reader of tags: each scan is an event `tag` with the tag's text in `tag`."""

    component_class = "tag"
    reports_events = True
    event_names = ("tag",)

    def setup(self) -> None:
        """Read the one topic."""
        self.read("topic", self._parse, "value_template")

    def _parse(self, text: str) -> EntityEvent | None:
        return EntityEvent("tag", {"tag": text[:1000]}) if text and not is_unknown(text) else None


class TriggerEntity(Entity):
    """A trigger of a device automation: a payload at a topic."""

    component_class = "button"
    reports_events = True

    def setup(self) -> None:
        """Read the one topic; the event's name is type and subtype."""
        words = [self.config.text(key) for key in ("type", "subtype")]
        self._name = "_".join(dict.fromkeys(each for each in words if each))
        if not self._name:
            raise Invalid("has no type")
        self.payload = self.config.text("payload") if "payload" in self.config else None
        self.read("topic", self._parse, "value_template")
        self.event_names = (event_of(self._name).name,)

    def _parse(self, text: str) -> EntityEvent | None:
        is_pressed = bool(text) if self.payload is None else text == self.payload
        return event_of(self._name) if is_pressed else None
