"""Lights of the default schema, a topic for each property."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from appliance.adapters.mqtt.entities.entity import (
    Intent,
    Update,
    is_unknown,
    number_parser,
    parse_number,
    word_parser,
)
from appliance.adapters.mqtt.entities.lights import LightChange, LightEntity, clamp_hs, clamp_rgb, clamp_xy
from appliance.adapters.mqtt.payloads import Outgoing
from appliance.home.commands import Command
from appliance.home.values import Value

_PARTS = {
    "rgb": {"red": "r", "green": "g", "blue": "b"},
    "hs": {"hue": "hue", "sat": "saturation"},
    "xy": {"x": "x", "y": "y"},
}
"""What command templates call the parts of a colour, and what Lares calls them."""

_COLOR_TOPICS = (
    ("rgb", "rgb", clamp_rgb),
    ("rgbw", "rgb", clamp_rgb),
    ("rgbww", "rgb", clamp_rgb),
    ("hs", "hs", clamp_hs),
    ("xy", "xy", clamp_xy),
)
"""First part of a topic's key, the notation of the colour, and what makes one of its numbers."""


class TopicLight(LightEntity):
    """A light that has a topic for each of its properties."""

    def setup(self) -> None:
        """Read every topic that is announced, and offer what can be published."""
        self._payloads = {"on": self.config.text("payload_on", "ON"), "off": self.config.text("payload_off", "OFF")}
        self._has_brightness = self.can("brightness_command")
        found = {name for name in ("rgb", "hs", "xy", "color_temp") if self.can(f"{name}_command")}
        found |= {name for name in ("rgbw", "rgbww", "white") if self.can(f"{name}_command")}
        self._modes = frozenset(found)
        states = {self._payloads[power]: power for power in ("off", "on")}
        parse_brightness = number_parser("brightness", self.brightness_of, ignores_unknown=True)
        self.read("state_topic", word_parser("power", states), "state_value_template", "value_template")
        self.read("brightness_state_topic", parse_brightness, "brightness_value_template")
        self.read("color_temp_state_topic", self._parse_temperature, "color_temp_value_template")
        for name, notation, make in _COLOR_TOPICS:
            self.read(f"{name}_state_topic", self._color_parser(notation, make), f"{name}_value_template")
        self.read("color_mode_state_topic", self.mode_update, "color_mode_value_template")
        self.read("effect_state_topic", self.effect_update, "effect_value_template")
        self.offer_all(can_switch=self.has_target("command_topic"))
        if not self.has_target("effect_command_topic"):
            self.offers.pop("effect", None)
            self.offers.pop("custom.mqtt.effect", None)

    def _parse_temperature(self, text: str) -> Update:
        update = self.parse_temperature(text)
        return {**self.mode_update("color_temp"), **update} if update else {}

    def _color_parser(self, notation: str, make: Callable[..., Value]) -> Callable[[str], Update]:
        """Parses lists of numbers such as `255,0,64`; behind three colours there may be one white or two."""

        def parse(text: str) -> Update:
            if text == "" or is_unknown(text):
                return {}
            parts = [parse_number(part) for part in text.split(",")[:5]]
            count = len(_PARTS[notation])
            if len(parts) < count or (len(parts) > count and notation != "rgb"):
                return {}
            whites = self.whites_update(parts[count:]) if notation == "rgb" else {}
            return {**self.mode_update(notation), f"color_{notation}": make(*parts[:count]), **whites}

        return parse

    @property
    def is_optimistic(self) -> bool:
        """Without a topic for its power no message confirms a command."""
        return self.config.flag("optimistic", self.config.topic("state_topic") is None)

    def write(self, command: Command) -> Intent:
        """The property's own message, and the one that switches on, before or behind it as announced."""
        change = self.change(command)
        if not change.name:
            return Intent(messages=(self._switch(change.power),), shows={"power": change.power})
        message, order = self._property(change), self.config.text("on_command_type", "last")
        if (order == "brightness" and change.name == "brightness") or "power" not in self.offers:
            return Intent(messages=(message,), shows=change.shows)
        on = (self._switch("on"),) if order != "brightness" else ()
        messages = (*on, message) if order == "first" else (message, *on)
        return Intent(messages=messages, shows={"power": "on", **change.shows})

    def _switch(self, power: str) -> Outgoing:
        if power == "on" and self.config.text("on_command_type") == "brightness" and self._has_brightness:
            percent = int(self.attributes.get("brightness") or 100)
            return self.publish("brightness_command", self.raw_brightness(percent))
        return self.publish_with(None, "command_topic", self._payloads[power])

    def _property(self, change: LightChange) -> Outgoing:
        """The message of one property; a colour is the list of its parts, with no white where there is a place."""
        if change.name == "whites":
            return self._with_whites(self.color_with(change.value))
        if change.name not in ("rgb", "hs", "xy"):
            return self.publish(f"{change.name}_command", change.value)
        names: dict[str, Any] = {name: change.value[part] for name, part in _PARTS[change.name].items()}
        if change.name == "rgb" and not self.has_target("rgb_command_topic"):
            is_single = self.has_target("rgbw_command_topic")
            return self._with_whites([*names.values(), 0] if is_single else [*names.values(), 0, 0])
        return self.publish(f"{change.name}_command", ",".join(map(str, names.values())), **names)

    def _with_whites(self, parts: list[Any]) -> Outgoing:
        """The message of a colour and the channels of white behind it."""
        whites = ("white",) if len(parts) == 4 else ("cold_white", "warm_white")
        names: dict[str, Any] = dict(zip(("red", "green", "blue", *whites), parts, strict=True))
        return self.publish(f"rgb{'w' * len(whites)}_command", ",".join(map(str, parts)), **names)


class TasmotaLight(TopicLight):
    """A light of Tasmota's own discovery: each command is complete, and switches on by itself."""

    def write(self, command: Command) -> Intent:
        """The property's own command; hue and saturation are two."""
        change = self.change(command)
        if not change.name:
            return super().write(command)
        messages: tuple[Outgoing, ...]
        if change.name == "hs":
            base = self.config.text("hs_command_topic")
            parts = (change.value["hue"], change.value["saturation"])
            messages = tuple(Outgoing(f"{base}{number}", str(part)) for number, part in enumerate(parts, 1))
        else:
            messages = (self._property(change),)
        return Intent(messages=messages, shows={"power": "on", **change.shows})
