"""Lights of the schema `template`: one command, made by a template."""

from __future__ import annotations

import re
from collections.abc import Callable

from appliance.adapters.mqtt.announced_fields import is_unreadable
from appliance.adapters.mqtt.entities.entity import Intent, Update, is_unknown, number_parser, parse_number
from appliance.adapters.mqtt.entities.lights import LightEntity, clamp_rgb
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
        for key, parse in (
            ("state", self._parse_power),
            ("brightness", number_parser("brightness", self.brightness_of, ignores_unknown=True)),
            ("color_temp", self.parse_temperature),
            ("effect", self.effect_update),
        ):
            if f"{key}_template" in self.config:
                self.read("state_topic", parse, f"{key}_template")
        on = self.config.text("command_on_template")
        self._can_flash = re.search(r"\bflash\b", on) is not None
        self._parts: dict[str, float] = {}
        for color in ("red", "green", "blue") if "rgb" in modes else ():
            self.read("state_topic", self._part(color), f"{color}_template")
        if not self._can_send("on"):
            raise Invalid("has no command topic or a template that cannot be read")
        self.offer_all(can_switch=self._can_send("off"))

    def _can_send(self, power: str) -> bool:
        template = self.config.template(f"command_{power}_template")
        return self.has_target("command_topic") and not is_unreadable(template)

    def _parse_power(self, text: str) -> Update:
        power = text.lower()
        return {"power": None if power == "none" else power} if power in ("on", "off", "none") else {}

    def _part(self, part: str) -> Callable[[str], Update]:
        def parse(text: str) -> Update:
            if text == "" or is_unknown(text):
                return {}
            self._parts[part] = parse_number(text)
            if len(self._parts) < 3:
                return {}
            return {"color_rgb": clamp_rgb(*(self._parts[color] for color in ("red", "green", "blue")))}

        return parse

    @property
    def is_optimistic(self) -> bool:
        """Without a template for its power no message confirms a command."""
        return self.config.flag("optimistic", "state_template" not in self.config or not self.readers)

    def write(self, command: Command) -> Intent:
        """One message; the template sees only what the command names."""
        change = self.change(command)
        names: dict[str, Value] = {}
        if change.name == "rgb":
            names = {"red": change.value["r"], "green": change.value["g"], "blue": change.value["b"]}
        elif change.name:
            names = {change.name: change.value}
        if command.transition_secs is not None:
            names["transition"] = command.transition_secs
        template = self.config.template(f"command_{change.power}_template")
        message = self.publish_with(template, "command_topic", "", state=change.power, **names)
        return Intent(messages=(message,), shows={"power": change.power, **change.shows})
