"""Lights of the schema `template`: one command, made by a template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.mqtt.entities.entity import Intent, Update, is_unknown, parse_number
from appliance.adapters.mqtt.entities.lights import LightEntity, clamp_rgb, rgb_of_hex
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class TemplateLight(LightEntity):
    """A light whose one command is made by templates."""

    def setup(self) -> None:
        """A property is there if its template is."""
        self._has_brightness = "brightness_template" in self.config
        modes = {"color_temp"} if "color_temp_template" in self.config else set()
        if all(f"{color}_template" in self.config for color in ("red", "green", "blue")):
            modes.add("rgb")
        self._modes = frozenset(modes)
        for key, take in (
            ("state", self._take_power),
            ("brightness", self._take_brightness),
            ("color_temp", self._take_temperature),
            ("effect", self.effect_update),
        ):
            if f"{key}_template" in self.config:
                self.read("state_topic", take, f"{key}_template")
        self._parts: dict[str, float] = {}
        for color in ("red", "green", "blue") if "rgb" in modes else ():
            self.read("state_topic", self._part(color), f"{color}_template")
        if not self.can("command_topic", "command_on_template"):
            raise Invalid("has no command topic or a template that cannot be read")
        self.offer_all(can_switch=self.can("command_topic", "command_off_template"))

    def _take_power(self, text: str) -> Update:
        word = text.lower()
        return {"power": word} if word in ("on", "off") else {"power": None} if word == "none" else {}

    def _take_brightness(self, text: str) -> Update:
        return {} if text == "" or is_unknown(text) else {"brightness": self.brightness_of(parse_number(text))}

    def _take_temperature(self, text: str) -> Update:
        if text == "" or is_unknown(text) or parse_number(text) <= 0:
            return {}
        return {"color_temperature": self.kelvin_of(parse_number(text))}

    def _part(self, part: str) -> Callable[[str], Update]:
        def take(text: str) -> Update:
            if text == "" or is_unknown(text):
                return {}
            self._parts[part] = parse_number(text)
            if len(self._parts) < 3:
                return {}
            return {"color_rgb": clamp_rgb(*(self._parts[color] for color in ("red", "green", "blue")))}

        return take

    @property
    def is_optimistic(self) -> bool:
        """Without a template for its power nobody says what was done."""
        return self.config.flag("optimistic", "state_template" not in self.config or not self.readings)

    def write(self, command: Command) -> Intent:
        """One message; the template sees only what the command names."""
        value: Any = command.value
        action = command.action
        names: dict[str, Value] = {}
        shows: dict[str, Value] = {"power": "on"}
        if action == "toggle":
            action = "off" if self.attributes.get("power") == "on" else "on"
        if action == "off" or (command.capability == "brightness" and value == 0):
            shows = {"power": "off"}
        elif command.capability == "brightness":
            names["brightness"] = self.raw_brightness(value)
            shows["brightness"] = self.brightness_of(names["brightness"])
        elif command.capability == "color_temperature":
            names["color_temp"] = self.raw_temperature(value)
            shows["color_temperature"] = self.kelvin_of(names["color_temp"])
        elif command.capability in ("color_rgb", "color_hex"):
            color = rgb_of_hex(value) if command.capability == "color_hex" else value
            names, shows["color_rgb"] = {"red": color["r"], "green": color["g"], "blue": color["b"]}, color
        elif command.capability != "power":
            names["effect"] = self.wanted_effect(command)
        if command.transition_secs is not None:
            names["transition"] = command.transition_secs
        key = "command_off_template" if shows["power"] == "off" else "command_on_template"
        message = self.publish("command_topic", "", self.config.template(key), state=shows["power"], **names)
        return Intent(messages=(message,), shows=shows)
