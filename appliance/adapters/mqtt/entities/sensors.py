"""What can only be read: sensors, by the capability that class and unit come to, and what happens at a device."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.entities.entity import Entity, EntityEvent, Update, is_unknown, parse_number
from appliance.adapters.mqtt.payloads import parse_object
from appliance.errors import Invalid
from appliance.home.values import Value

_TEMPERATURES = ("°C", "°F", "K")
_SPELLED = {"C": "°C", "F": "°F"}
"""Units as some announcers write them."""

_WORD_CLASSES = ("", "date", "enum", "timestamp", "uptime")
"""Device classes, and the missing one, whose values are not numbers."""

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
            raise Invalid(f"{text[:40]!r} is none of the announced options")
        if key:
            return {key: text if key == "air_quality" else self._measurement(key, parse_number(text))}
        try:
            return {self.custom: parse_number(text) if self._is_number else text[:1000]}
        except Invalid:
            return {self.custom: text[:1000]}

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


class BinarySensor(Entity):
    """A yes or no that can only be read; without a capability that it comes to it is a boolean custom attribute."""

    device_class = ""
    is_renamed = True

    def setup(self) -> None:
        self._on, self._off = self.payload("on"), self.payload("off")
        self._ignored = self.config.texts("_ignored")
        self.off_delay = self.config.number("off_delay", 0)
        device_class = self.config.text("device_class")
        key, *values = _BINARY.get(device_class, ("", True, False))
        self._values = values
        self.claims = (key,) if key else ()
        self.more_keys = ("presence",) if device_class == "presence" else ()
        self.read("state_topic", self._parse, "value_template")

    def showing(self, is_on: bool | None) -> Update:
        """What it shows when it is on or off, for `off_delay`, or where that is not known."""
        on, off = self._values if self.claims else (True, False)
        value = None if is_on is None else on if is_on else off
        return {self.label: value, **dict.fromkeys(self.more_keys, is_on)}

    def _parse(self, text: str) -> Update:
        if text in (self._on, self._off):
            return self.showing(text == self._on)
        if text in ("None", ""):
            return self.showing(None) if text else {}
        if text in self._ignored:
            return {}
        raise Invalid(f"{text[:40]!r} is neither {self._on!r} nor {self._off!r}")


class DeviceTracker(Entity):
    """A person's device: `presence`, and the name of the zone or room that it is in.

    A zone of GPS is away from home; a room that anything else sees, such as Bluetooth, is at home.
    """

    device_class = "person"
    is_renamed = True
    more_keys = ("custom.mqtt.zone",)

    def setup(self) -> None:
        self.claims = ("presence",)
        self.read("state_topic", self._parse, "value_template")

    def use_custom(self, suffix: str = "") -> None:
        super().use_custom(suffix)
        self.more_keys = (f"{self.custom}_zone",)

    def _parse(self, text: str) -> Update:
        [zone] = self.more_keys
        if text == self.config.text("payload_reset", "None") or is_unknown(text):
            return {self.label: None, zone: None}
        if text == "":
            return {}
        is_home = text == self.config.text("payload_home", "home")
        is_zone = not is_home and text != self.config.text("payload_not_home", "not_home")
        is_room = is_zone and self.config.text("source_type", "gps") != "gps"
        return {self.label: is_home or is_room, zone: text[:200] if is_zone else None}


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

    device_class = "button"
    reports_events = True
    source = ""

    def setup(self) -> None:
        self.read("state_topic", self._parse, "value_template")
        self.event_names = tuple(event_of(each).name for each in self.config.texts("event_types"))

    def _parse(self, text: str) -> EntityEvent | None:
        found = parse_object(text, "an event") if text else {}
        name = found.pop("event_type", None)
        if not isinstance(name, str) or not name or name == "None":
            return None
        return event_of(name, self.own_data() | found)

    def own_data(self) -> dict[str, Value]:
        """Which of several entities it is."""
        return {"entity": self.source} if self.source else {}


class ActionSensor(EventEntity):
    """A sensor named `action` whose texts are presses, as Zigbee2MQTT announces them to old readers."""

    def _parse(self, text: str) -> EntityEvent | None:
        return event_of(text, self.own_data()) if text and not is_unknown(text) else None


class Tag(Entity):
    """A reader of tags: each scan is an event `tag` with the tag's text in `tag`."""

    reports_events = True
    event_names = ("tag",)

    def setup(self) -> None:
        self.read("topic", self._parse, "value_template")

    def _parse(self, text: str) -> EntityEvent | None:
        return EntityEvent("tag", {"tag": text[:1000]}) if text and not is_unknown(text) else None


class TriggerEntity(Entity):
    """A trigger of a device automation: a payload at a topic. The event's name is type and subtype."""

    device_class = "button"
    reports_events = True

    def setup(self) -> None:
        words = [self.config.text(key) for key in ("type", "subtype")]
        name = "_".join(dict.fromkeys(each for each in words if each))
        if not name:
            raise Invalid("has no type")
        event = event_of(name)
        self.event_names = (event.name,)
        self.expected = self.config.text("payload") if "payload" in self.config else None

        def parse(text: str) -> EntityEvent | None:
            is_pressed = bool(text) if self.expected is None else text == self.expected
            return event if is_pressed else None

        self.read("topic", parse, "value_template")
