"""Heating and cooling: a topic for each property."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Offer,
    PayloadParser,
    Update,
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


class Climate(Entity):
    """A thermostat or an air conditioner."""

    component_class = "climate"

    def setup(self) -> None:
        """Read every property, and offer those with a command topic."""
        self._unit = "°F" if self.config.text("temperature_unit", "C").upper().startswith("F") else "°C"
        modes = tuple(mode for mode in self.config.texts("modes", _MODES) if mode in _MODES)
        for name, unit in (("temperature", self._unit), ("humidity", "%")):
            self._read(f"current_{name}_topic", number_parser(name, _measured_in(unit)), f"current_{name}_template")
        parse_mode = word_parser("hvac_mode", {mode: mode for mode in _MODES})
        self._read("mode_state_topic", parse_mode, "mode_state_template")
        self._read("action_topic", word_parser("hvac_state", _ACTIONS), "action_template")
        for key, name in _WORDS.items():
            parse = _text_parser(key, self.config.texts(f"{name}s"))
            self._read(f"{name}_state_topic", parse, f"{name}_value_template", f"{name}_state_template")
            if self.can(f"{name}_command"):
                self.offers[key] = Offer(actions=("set",), schema=self._options(name))
        if self.can("power_command"):
            self.offers["power"] = Offer(actions=("on", "off"))
        for attribute, name in _TARGETS.items():
            convert = _measured_in(self._unit) if attribute == "target_temperature" else None
            self._read(f"{name}_state_topic", number_parser(attribute, convert), f"{name}_state_template")
            if self.can(f"{name}_command"):
                self.offers[attribute] = Offer(actions=("set",), schema=self._range(attribute))
        if self.can("mode_command"):
            self.offers["hvac_mode"] = Offer(actions=("set",), schema={"values": list(modes)})
        shown = {"temperature": "current_temperature_topic", "humidity": "current_humidity_topic",
                 "hvac_mode": "mode_state_topic", "hvac_state": "action_topic"}  # fmt: skip
        read = (each for each, topic in shown.items() if topic in self.config)
        words = {**_WORDS, **_TARGETS}
        self.more_keys = tuple(key for key, name in words.items() if f"{name}_state_topic" in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *read)))

    def _read(self, key: str, parse: PayloadParser, *templates: str) -> None:
        self.read(key, parse, *templates, "value_template")

    def _options(self, name: str) -> dict[str, Value]:
        options = self.config.texts(f"{name}s")
        if not options:
            return {} if name != "swing_horizontal_mode" else {"type": "string"}
        if name == "swing_horizontal_mode":
            return {"type": "enum", "values": list(options)}
        return {"values": [*options, "none"] if name == "preset_mode" else list(options)}

    def _range(self, attribute: str) -> dict[str, Value]:
        if attribute == "custom.mqtt.target_humidity":
            low, high = self.config.number("min_humidity", 30), self.config.number("max_humidity", 99)
            return {"type": "number", "min": plain_number(low), "max": plain_number(high), "unit": "%"}
        low, high = _DEFAULT_RANGE[self._unit]
        schema: dict[str, Value] = {"unit": self._unit} if attribute == "target_temperature" else {"type": "number"}
        schema["min"] = plain_number(self.config.number("min_temp", low))
        schema["max"] = plain_number(self.config.number("max_temp", high))
        if "temp_step" in self.config:
            schema["step"] = plain_number(self.config.number("temp_step", 1))
        return schema

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        value: Any = command.value
        capability, names, shown = command.capability, dict[str, Value](), value
        if capability == "power":
            payload = self.config.text(f"payload_{command.action}", command.action.upper())
            return Intent(messages=(self.publish("power_command", payload),))
        name = (
            _TARGETS.get(capability)
            or _WORDS.get(capability)
            or ("mode" if capability == "hvac_mode" else capability)
        )
        if capability == "target_temperature":
            value = in_unit(value["value"], value["unit"], self._unit)
            shown = {"value": value, "unit": self._unit}
        if capability in _TARGETS:
            names["value"] = value
        message = self.publish(f"{name}_command", value, **names)
        is_shown = f"{name}_state_topic" in self.config
        return Intent(messages=(message,), shows={capability: shown} if is_shown else {})


def _measured_in(unit: str) -> Callable[[float], Value]:
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
