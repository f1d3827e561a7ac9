"""Heating and cooling: a topic for each property."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Offer,
    Update,
    is_unknown,
    parse_number,
    plain_number,
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
_WORDS = ("fan_mode", "swing_mode", "preset_mode")
_TARGETS = {
    "target_temperature": "temperature",
    "custom.mqtt.target_temperature_low": "temperature_low",
    "custom.mqtt.target_temperature_high": "temperature_high",
    "custom.mqtt.target_humidity": "target_humidity",
}
"""Attributes that are numbers to reach, and how the announcement calls them."""


class Climate(Entity):
    """A thermostat or an air conditioner."""

    component_class = "climate"

    def setup(self) -> None:
        """Listen to every property, and offer those with a command topic."""
        self._unit = "°F" if self.config.text("temperature_unit", "C").upper().startswith("F") else "°C"
        self._modes = tuple(mode for mode in self.config.texts("modes", _MODES) if mode in _MODES)
        self._read(
            "current_temperature_topic", self._measured("temperature", self._unit), "current_temperature_template"
        )
        self._read("current_humidity_topic", self._measured("humidity", "%"), "current_humidity_template")
        self._read("mode_state_topic", self._take_mode, "mode_state_template")
        self._read("action_topic", self._take_action, "action_template")
        for name in _WORDS:
            templates = (f"{name}_value_template", f"{name}_state_template")
            self._read(f"{name}_state_topic", self._word(name), *templates)
            if self.can(f"{name}_command_topic", f"{name}_command_template"):
                self.offers[name] = Offer(actions=("set",), schema=self._options(name))
        for attribute, name in _TARGETS.items():
            self._read(f"{name}_state_topic", self._target(attribute), f"{name}_state_template")
            if self.can(f"{name}_command_topic", f"{name}_command_template"):
                self.offers[attribute] = Offer(actions=("set",), schema=self._range(attribute))
        if self.can("mode_command_topic", "mode_command_template"):
            self.offers["hvac_mode"] = Offer(actions=("set",), schema={"values": list(self._modes)})
        if not self.readings and not self.offers:
            raise Invalid("has no topic at all")
        shown = [each for each in ("temperature", "humidity") if f"current_{each}_topic" in self.config]
        shown += [each for each, topic in (("hvac_mode", "mode_state_topic"), ("hvac_state", "action_topic"))
                  if topic in self.config]  # fmt: skip
        self.claims = tuple(dict.fromkeys((*self.offers, *shown)))

    def _read(self, key: str, take: Callable[[str], Update], *templates: str) -> None:
        self.read(key, take, *templates, "value_template")

    def _options(self, name: str) -> dict[str, Value]:
        key = {"preset_mode": "preset_modes", "fan_mode": "fan_modes", "swing_mode": "swing_modes"}[name]
        options = self.config.texts(key)
        return (
            {"values": [*options, "none"] if name == "preset_mode" and options else list(options)} if options else {}
        )

    def _range(self, attribute: str) -> dict[str, Value]:
        if attribute == "custom.mqtt.target_humidity":
            low, high = self.config.number("min_humidity", 30), self.config.number("max_humidity", 99)
            return {"type": "number", "min": plain_number(low), "max": plain_number(high), "unit": "%"}
        schema: dict[str, Value] = {"unit": self._unit} if attribute == "target_temperature" else {"type": "number"}
        for key, name in (("min_temp", "min"), ("max_temp", "max"), ("temp_step", "step")):
            if key in self.config:
                schema[name] = plain_number(self.config.number(key, 1))
        return schema

    def _measured(self, attribute: str, unit: str) -> Callable[[str], Update]:
        def take(text: str) -> Update:
            if is_unknown(text):
                return {attribute: None}
            return {attribute: {"value": parse_number(text), "unit": unit}} if text else {}

        return take

    def _target(self, attribute: str) -> Callable[[str], Update]:
        if attribute == "target_temperature":
            return self._measured(attribute, self._unit)

        def take(text: str) -> Update:
            if is_unknown(text):
                return {attribute: None}
            return {attribute: parse_number(text)} if text else {}

        return take

    def _word(self, name: str) -> Callable[[str], Update]:
        def take(text: str) -> Update:
            if text == "" or len(text) > 200:
                return {}
            return {name: None if text == "None" and name != "preset_mode" else "none" if text == "None" else text}

        return take

    def _take_mode(self, text: str) -> Update:
        if text == "None":
            return {"hvac_mode": None}
        return {"hvac_mode": text} if text in _MODES else {}

    def _take_action(self, text: str) -> Update:
        if text == "None":
            return {"hvac_state": None}
        return {"hvac_state": _ACTIONS[text]} if text in _ACTIONS else {}

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        if command.capability in _TARGETS:
            return self._write_target(command)
        name = "mode" if command.capability == "hvac_mode" else command.capability
        message = self.publish(
            f"{name}_command_topic", str(command.value), self.config.template(f"{name}_command_template")
        )
        is_shown = f"{name}_state_topic" in self.config
        return Intent(messages=(message,), shows={command.capability: command.value} if is_shown else {})

    def _write_target(self, command: Command) -> Intent:
        value: Any = command.value
        shown: Value = value
        if command.capability == "target_temperature":
            number = _in_unit(value["value"], value["unit"], self._unit)
            shown = {"value": number, "unit": self._unit}
        else:
            number = value
        name = _TARGETS[command.capability]
        template = self.config.template(f"{name}_command_template")
        message = self.publish(f"{name}_command_topic", str(number), template, value=number)
        is_shown = f"{name}_state_topic" in self.config
        return Intent(messages=(message,), shows={command.capability: shown} if is_shown else {})


def _in_unit(value: float, unit: str, wanted: str) -> int | float:
    """A temperature in the device's unit; `Invalid` for a unit that is none of temperature."""
    letter = unit.replace("°", "").strip().upper()[:1]
    if letter not in ("C", "F"):
        raise Invalid(f"target_temperature needs the unit {wanted}, not {unit[:20]!r}")
    if letter == wanted[1]:
        return plain_number(value)
    return plain_number(round(value * 9 / 5 + 32 if wanted == "°F" else (value - 32) * 5 / 9, 1))
