"""Heating, cooling and humidity: a topic for each property."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from appliance.adapters.mqtt.announced_fields import AnnouncedFields
from appliance.adapters.mqtt.entities.entity import (
    SWITCHABLE,
    Entity,
    Intent,
    Offer,
    PayloadParser,
    Update,
    is_unknown,
    number_parser,
    plain_number,
    word_parser,
)
from appliance.errors import Invalid
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import Value

_MODES = CAPABILITIES["hvac_mode"].values
_ACTIONS = {
    "off": "off", "heating": "heating", "cooling": "cooling", "drying": "dry", "idle": "idle", "fan": "fan_only",
    "preheating": "heating", "defrosting": "idle",
}  # fmt: skip
"""`hvac_state` by the words of Home Assistant's `action_topic`."""

_WORDS = {
    "fan_mode": "fan_mode",
    "swing_mode": "swing_mode",
    "preset_mode": "preset_mode",
    "custom.mqtt.swing_horizontal_mode": "swing_horizontal_mode",
}
"""Attributes that are words, and how the announcement calls them."""

_TARGETS = {
    "target_temperature": "temperature",
    "custom.mqtt.target_temperature_low": "temperature_low",
    "custom.mqtt.target_temperature_high": "temperature_high",
    "custom.mqtt.target_humidity": "target_humidity",
}
"""Attributes that are numbers to reach, and how the announcement calls them."""


_DEFAULT_RANGE = {"°C": (7, 35), "°F": (44.6, 95)}
"""The temperatures that can be set where the announcement states no bounds, as in Home Assistant."""


_HEATER_RANGE = {"°C": (43.3, 60.0), "°F": (110.0, 140.0)}
"""The same of a water heater."""

_HEATER_MODES = ("off", "eco", "electric", "gas", "heat_pump", "high_demand", "performance")
"""The modes of a water heater that does not say which it has."""


class Climate(Entity):
    """A thermostat or an air conditioner."""

    component_class = "climate"

    def setup(self) -> None:
        """Read every property, and offer those with a command topic."""
        self._unit = unit_of(self.config)
        for name, unit in (("temperature", self._unit), ("humidity", "%")):
            parse = number_parser(name, measured_in(unit))
            self.read(f"current_{name}_topic", parse, f"current_{name}_template", "value_template")
        self.read("action_topic", word_parser("hvac_state", _ACTIONS), "action_template", "value_template")
        for key, name in _WORDS.items():
            parse = _text_parser(key, self.config.texts(f"{name}s"))
            self._add(key, name, parse, self._options(name), f"{name}_value_template")
        if self.can("power_command"):
            self.offers["power"] = Offer(actions=("on", "off"))
        for key, name in _TARGETS.items():
            is_main = key == "target_temperature"
            parse = number_parser(key, measured_in(self._unit) if is_main else None)
            convert = temperature(self._unit) if is_main else {}
            self._add(key, name, parse, self._range(key), **convert)
        modes = [mode for mode in self.config.texts("modes", _MODES) if mode in _MODES]
        parse = word_parser("hvac_mode", {mode: mode for mode in _MODES})
        self._add("hvac_mode", "mode", parse, {"values": modes})
        shown = {"temperature": "current_temperature_topic", "humidity": "current_humidity_topic",
                 "hvac_mode": "mode_state_topic", "hvac_state": "action_topic"}  # fmt: skip
        read = (each for each, topic in shown.items() if topic in self.config)
        words = {**_WORDS, **_TARGETS}
        self.more_keys = tuple(key for key, name in words.items() if f"{name}_state_topic" in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *read)))

    def _add(
        self, key: str, name: str, parse: PayloadParser, schema: Mapping[str, Value], *templates: str, **convert: Any
    ) -> None:
        self.add(key, name, parse, schema, templates=(*templates, "value_template"), **convert)

    def _options(self, name: str) -> dict[str, Value]:
        options = self.config.texts(f"{name}s")
        if not options:
            return {} if name != "swing_horizontal_mode" else {"type": "string"}
        if name == "swing_horizontal_mode":
            return {"type": "enum", "values": list(options)}
        return {"values": [*options, "none"] if name == "preset_mode" else list(options)}

    def _range(self, attribute: str) -> dict[str, Value]:
        if attribute == "custom.mqtt.target_humidity":
            return {"type": "number", "unit": "%", **bounds_of(self.config, "humidity", 30, 99)}
        kind: dict[str, Value] = {"unit": self._unit} if attribute == "target_temperature" else {"type": "number"}
        step = {"step": plain_number(each)} if (each := self.config.number("temp_step", 0)) > 0 else {}
        return {**kind, **bounds_of(self.config, "temp", *_DEFAULT_RANGE[self._unit]), **step}

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        if command.capability != "power":
            return self.set_property(command)
        payload = self.config.text(f"payload_{command.action}", command.action.upper())
        return Intent(messages=(self.publish("power_command", payload),))


class Regulator(Entity):
    """A humidifier or a water heater: on and off, a mode, a target, and what is measured."""

    confirmed_by: Mapping[str, tuple[str, ...]] = {"power": ("state_topic",)}

    def setup(self) -> None:
        """Read and offer what is announced; attributes are those of the component."""
        self.component_class = self.announcement.component
        self._is_heater = self.component_class == "water_heater"
        self._unit = unit_of(self.config) if self._is_heater else "%"
        self._payloads = {word: self.config.text(f"payload_{word}", word.upper()) for word in ("on", "off")}
        self._power = "power_command" if self._is_heater else "command"
        measured = "temperature" if self._is_heater else "humidity"
        if self._is_heater:
            shown = {"current_temperature_topic": "temperature", "temperature_state_topic": "target_temperature"}
            parse, schema = number_parser("target_temperature", measured_in(self._unit)), {"unit": self._unit}
            schema |= bounds_of(self.config, "temp", *_HEATER_RANGE[self._unit])
            self._add("target_temperature", "temperature", parse, schema, **temperature(self._unit))
        else:
            shown = {"current_humidity_topic": "humidity", "state_topic": "power"}
            words = {payload: word for word, payload in self._payloads.items()}
            self.read("state_topic", word_parser("power", words), "state_value_template")
            parse = self._or_reset("humidity", number_parser("custom.mqtt.target_humidity", plain_number))
            schema = {"type": "number", "unit": "%", **bounds_of(self.config, "humidity", 0, 100)}
            self.add("custom.mqtt.target_humidity", "target_humidity", parse, schema)
        current = self._or_reset(measured, number_parser(measured, measured_in(self._unit)))
        self.read(f"current_{measured}_topic", current, f"current_{measured}_template", "value_template")
        modes = self.config.texts("modes", _HEATER_MODES if self._is_heater else ())
        parse = self._or_reset("mode", _text_of("custom.mqtt.mode", self.config.texts("modes")))
        self._add("custom.mqtt.mode", "mode", parse, {"type": "enum", "values": list(modes)} if modes else None)
        parse = self._or_reset("action", _text_of("custom.mqtt.action", ()))
        self.read("action_topic", parse, "action_template", "value_template")
        if self.can(self._power):
            self.offers["power"] = Offer(actions=("on", "off")) if self._is_heater else SWITCHABLE
        own = ("custom.mqtt.mode", "custom.mqtt.action", "custom.mqtt.target_humidity")
        self.more_keys = own[:1] if self._is_heater else own
        read = (attribute for topic, attribute in shown.items() if topic in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *read)))

    def _add(self, key: str, name: str, parse: PayloadParser, schema: Any, **convert: Any) -> None:
        self.add(key, name, parse, schema, templates=("value_template",), **convert)

    def _or_reset(self, name: str, parse: Callable[[str], Update]) -> Callable[[str], Update]:
        """The parser, which takes `payload_reset_<name>` for the word of what is unknown."""
        reset = self.config.text(f"payload_reset_{name}", "None")
        return lambda text: parse("None" if text == reset else text)

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        if command.capability != "power":
            return self.set_property(command)
        action = self.toggled(command.action)
        message = self.publish(self._power, self._payloads[action])
        return Intent(messages=(message,), shows={} if self._is_heater else {"power": action})


def unit_of(config: AnnouncedFields) -> str:
    """The unit of its temperatures."""
    return "°F" if config.text("temperature_unit", "C").upper().startswith("F") else "°C"


def bounds_of(config: AnnouncedFields, name: str, low: float, high: float) -> dict[str, Value]:
    """The range of a target, `min_<name>` to `max_<name>`, as it is announced or by default."""
    low, high = config.bounds(f"min_{name}", f"max_{name}", low, high)
    return {"min": plain_number(low), "max": plain_number(high)}


def temperature(unit: str) -> dict[str, Callable[[Any], Any]]:
    """The conversions of a temperature that is set."""
    return {"to_payload": lambda value: in_unit(value["value"], value["unit"], unit), "to_shown": measured_in(unit)}


def _text_of(attribute: str, options: tuple[str, ...]) -> Callable[[str], Update]:
    def parse(text: str) -> Update:
        if is_unknown(text) and text not in options:
            return {attribute: None}
        return {attribute: text[:200]} if text else {}

    return parse


def measured_in(unit: str) -> Callable[[float], Value]:
    """What makes a measurement of a number."""
    return lambda value: {"value": value, "unit": unit}


def _text_parser(attribute: str, options: tuple[str, ...]) -> Callable[[str], Update]:
    """Parses a mode by its announced name; of presets `None` is the one that is called so."""

    def parse(text: str) -> Update:
        if text == "" or len(text) > 200:
            return {}
        if text == "None" and text not in options:
            return {attribute: "none" if attribute == "preset_mode" else None}
        return {attribute: text}

    return parse


def in_unit(value: float, unit: str, expected: str) -> int | float:
    """A temperature in the device's unit; `Invalid` for a unit that is none of temperature."""
    letter = unit.replace("°", "").strip().upper()[:1]
    if letter not in ("C", "F"):
        raise Invalid(f"target_temperature needs the unit {expected}, not {unit[:20]!r}")
    if letter == expected[1]:
        return plain_number(value)
    return plain_number(round(value * 9 / 5 + 32 if expected == "°F" else (value - 32) * 5 / 9, 1))
