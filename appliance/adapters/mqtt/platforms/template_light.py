"""Lights with the template schema."""

from __future__ import annotations

import re
from collections.abc import Callable

from appliance.adapters.mqtt.fields import is_unreadable
from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import Update, is_unknown, number_parser, parse_number
from appliance.adapters.mqtt.platforms.light import NOTATIONS, LightChange, LightEntity, color_of
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class TemplateLight(LightEntity):
    """A light with one command, which is rendered by templates."""

    def setup(self) -> None:
        self._has_brightness = "brightness_template" in self.config
        modes = {"color_temp"} if "color_temp_template" in self.config else set()
        if all(f"{color}_template" in self.config for color in ("red", "green", "blue")):
            modes.add("rgb")
        self._modes = frozenset(modes)
        for key, attribute, parse in (
            ("state", "power", lambda word: self.check_power(word, self.power_update(word))),
            ("brightness", "brightness", number_parser("brightness", self.brightness_of, ignores_unknown=True)),
            ("color_temp", "color_temperature", self.parse_temperature),
            ("effect", "effect", self.effect_update),
        ):
            if f"{key}_template" in self.config:
                self.read("state_topic", parse, f"{key}_template", shows=(attribute,))
        on = self.config.text("command_on_template")
        self._can_flash = re.search(r"\bflash\b", on) is not None
        self._parts: dict[str, float | None] = {}
        for color in ("red", "green", "blue") if "rgb" in modes else ():
            self.read("state_topic", self._part(color), f"{color}_template", shows=("color_rgb",))
        if not self._can_send("on"):
            raise Invalid("the entity has no command topic, or an unreadable template")
        self.offer_all(can_switch=self._can_send("off"))

    def _can_send(self, power: str) -> bool:
        template = self.config.template(f"command_{power}_template")
        return self.has_target("command_topic") and not is_unreadable(template)

    def _part(self, part: str) -> Callable[[str], Update]:
        """Return a parser for one of three colours; the last one completes the update.

        An unknown colour clears the colour attribute, because lamps with white channels report white this way.
        """

        def parse(text: str) -> Update:
            if text:
                self._parts[part] = None if is_unknown(text) else parse_number(text)
            parts = [self._parts.get(color) for color in ("red", "green", "blue")]
            if part != "blue" or not text:
                return {}
            if None in parts:
                is_white = "color_temperature" in self.attributes or "color_temp" in self._modes
                return {"color_rgb": None, "color_mode": "color_temp" if is_white else None}
            return {**self.mode_update("rgb"), **color_of("rgb", [each for each in parts if each is not None])}

        return parse

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return one message. Its template has access only to the values of the command."""
        names: dict[str, Value] = {}
        if change.name == "rgb":
            names = {name: change.value[key] for name, key, _ in NOTATIONS["rgb"]}
        elif change.name:
            names = {change.name: change.value}
        if command.transition_secs is not None:
            names["transition"] = command.transition_secs
        template = self.config.template(f"command_{change.power}_template")
        return (self.publish_with(template, "command_topic", "", state=change.power, **names),)
