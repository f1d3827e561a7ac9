"""Lights of the default schema, a topic for each property."""

from __future__ import annotations

from typing import Any

from appliance.adapters.mqtt.entities.entity import Intent, Update, is_unknown, parse_number
from appliance.adapters.mqtt.entities.lights import LightEntity, clamp_hs, clamp_rgb, clamp_xy, rgb_of_hex
from appliance.adapters.mqtt.payloads import Outgoing
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value

_COLORS = {"color_rgb": "rgb", "color_hex": "rgb", "color_hs": "hs", "color_xy": "xy"}


def numbers_of(text: str) -> list[float]:
    """The numbers of a list such as `255,0,64`; none where it is not known."""
    if text == "" or is_unknown(text):
        return []
    return [parse_number(part) for part in text.split(",")[:5]]


class TopicLight(LightEntity):
    """A light that has a topic for each of its properties."""

    def setup(self) -> None:
        """Listen to every topic that is announced, and offer what can be published."""
        self._on, self._off = self.config.text("payload_on", "ON"), self.config.text("payload_off", "OFF")
        self._has_brightness = self.can("brightness_command_topic", "brightness_command_template")
        found = {
            name
            for name in ("rgb", "hs", "xy", "color_temp")
            if self.can(f"{name}_command_topic", f"{name}_command_template")
        }
        found |= {"rgb" for name in ("rgbw", "rgbww") if self.can(f"{name}_command_topic")}
        self._modes = frozenset(found)
        self.read("state_topic", self._take_power, "state_value_template", "value_template")
        self.read("brightness_state_topic", self._take_brightness, "brightness_value_template")
        self.read("color_temp_state_topic", self._take_temperature, "color_temp_value_template")
        self.read("rgb_state_topic", self._take_rgb, "rgb_value_template")
        self.read("rgbw_state_topic", self._take_rgb, "rgbw_value_template")
        self.read("rgbww_state_topic", self._take_rgb, "rgbww_value_template")
        self.read("hs_state_topic", self._take_hs, "hs_value_template")
        self.read("xy_state_topic", self._take_xy, "xy_value_template")
        self.read("color_mode_state_topic", self.mode_update, "color_mode_value_template")
        self.read("effect_state_topic", self.effect_update, "effect_value_template")
        self.offer_all(can_switch=self.config.target("command_topic") is not None)
        if not self.can("effect_command_topic"):
            self.offers.pop("effect", None)
            self.offers.pop("custom.mqtt.effect", None)
        if not self.readings and not self.offers:
            raise Invalid("has neither a state topic nor a command topic")

    def _take_power(self, text: str) -> Update:
        if text == self._on:
            return {"power": "on"}
        if text == self._off:
            return {"power": "off"}
        return {"power": None} if text == "None" else {}

    def _take_brightness(self, text: str) -> Update:
        if text == "" or is_unknown(text):
            return {}
        return {"brightness": self.brightness_of(parse_number(text))}

    def _take_temperature(self, text: str) -> Update:
        if text == "" or is_unknown(text) or parse_number(text) <= 0:
            return {}
        return {**self.mode_update("color_temp"), "color_temperature": self.kelvin_of(parse_number(text))}

    def _take_rgb(self, text: str) -> Update:
        if not (parts := numbers_of(text)):
            return {}
        return {**self.mode_update("rgb"), "color_rgb": clamp_rgb(*parts[:3])} if len(parts) >= 3 else {}

    def _take_hs(self, text: str) -> Update:
        parts = numbers_of(text)
        return {**self.mode_update("hs"), "color_hs": clamp_hs(*parts)} if len(parts) == 2 else {}

    def _take_xy(self, text: str) -> Update:
        parts = numbers_of(text)
        return {**self.mode_update("xy"), "color_xy": clamp_xy(*parts)} if len(parts) == 2 else {}

    @property
    def is_optimistic(self) -> bool:
        """Without a topic for its power nobody says what was done."""
        return self.config.flag("optimistic", self.config.topic("state_topic") is None)

    def write(self, command: Command) -> Intent:
        """The property's own message, and that which switches on, before or behind it as announced."""
        if command.capability == "power":
            action = command.action
            if action == "toggle":
                action = "off" if self.attributes.get("power") == "on" else "on"
            return Intent(messages=self._switch(action), shows={"power": action})
        if command.capability == "brightness" and command.value == 0:
            return Intent(messages=self._switch("off"), shows={"power": "off"})
        message, shows = self._property(command)
        order = self.config.text("on_command_type", "last")
        if (order == "brightness" and command.capability == "brightness") or "power" not in self.offers:
            return Intent(messages=(message,), shows=shows)
        on = self._switch("on") if order != "brightness" else ()
        messages = (*on, message) if order == "first" else (message, *on)
        return Intent(messages=messages, shows={"power": "on", **shows})

    def _switch(self, action: str) -> tuple[Outgoing, ...]:
        if action == "on" and self.config.text("on_command_type") == "brightness" and self._has_brightness:
            percent = self.attributes.get("brightness") or 100
            return (self._brightness(int(percent)),)
        return (self.publish("command_topic", self._on if action == "on" else self._off),)

    def _brightness(self, percent: int) -> Outgoing:
        raw = self.raw_brightness(percent)
        template = self.config.template("brightness_command_template")
        return self.publish("brightness_command_topic", str(raw), template)

    def _property(self, command: Command) -> tuple[Outgoing, Update]:
        value: Any = command.value
        if command.capability == "brightness":
            shown = self.brightness_of(self.raw_brightness(value))
            return self._brightness(value), {"brightness": shown}
        if command.capability == "color_temperature":
            raw = self.raw_temperature(value)
            template = self.config.template("color_temp_command_template")
            message = self.publish("color_temp_command_topic", str(raw), template)
            return message, {"color_temperature": self.kelvin_of(raw)}
        if command.capability in _COLORS:
            return self._color(command.capability, value)
        effect = self.wanted_effect(command)
        template = self.config.template("effect_command_template")
        return self.publish("effect_command_topic", effect, template), {}

    def _color(self, capability: str, value: Any) -> tuple[Outgoing, Update]:
        notation = _COLORS[capability]
        names: dict[str, Value]
        if notation == "rgb":
            color = rgb_of_hex(value) if capability == "color_hex" else value
            names, shows = {"red": color["r"], "green": color["g"], "blue": color["b"]}, {"color_rgb": color}
            if not self.can("rgb_command_topic"):
                notation = "rgbw" if self.can("rgbw_command_topic") else "rgbww"
                names["white"] = 0
        elif notation == "hs":
            names, shows = {"hue": value["hue"], "sat": value["saturation"]}, {"color_hs": value}
        else:
            names, shows = dict(value), {"color_xy": value}
        template = self.config.template(f"{notation}_command_template")
        payload = ",".join(str(each) for each in names.values()) + (",0" if notation == "rgbww" else "")
        return self.publish(f"{notation}_command_topic", payload, template, **names), shows


class TasmotaLight(TopicLight):
    """A light of Tasmota's own discovery."""

    def write(self, command: Command) -> Intent:
        """The property's own command; hue and saturation are two."""
        if command.capability == "power" or command.value == 0:
            return super().write(command)
        if command.capability == "color_hs":
            base = self.config.text("hs_command_topic").removesuffix("HsbColor")
            messages = (
                Outgoing(f"{base}HsbColor1", str(command.value["hue"])),
                Outgoing(f"{base}HsbColor2", str(command.value["saturation"])),
            )
            return Intent(messages=messages, shows={"power": "on", "color_hs": command.value})
        message, shows = self._property(command)
        return Intent(messages=(message,), shows={"power": "on", **shows})
