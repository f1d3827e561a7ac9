"""Lights of the schema `json`: one object says and takes everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from appliance.adapters.mqtt.entities.entity import Intent, StateTopic, Update
from appliance.adapters.mqtt.entities.lights import RGB_MODES, LightEntity, clamp_hs, clamp_rgb, clamp_xy, rgb_of_hex
from appliance.adapters.mqtt.payloads import parse_json
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tables.checks import is_number


class JsonLight(LightEntity):
    """A light as Zigbee2MQTT, ESPHome and most others announce it."""

    def setup(self) -> None:
        """Find the colour modes and offer what they allow."""
        modes = frozenset(self.config.texts("supported_color_modes"))
        if not modes:
            old = {"color_temp": "color_temp", "xy": "xy", "hs": "hs", "rgb": "rgb"}
            modes = frozenset(mode for key, mode in old.items() if self.config.flag(key))
        self._modes = modes
        self._has_brightness = self.config.flag("brightness") or bool(modes - {"onoff"})
        if topic := self.config.topic("state_topic"):
            self.readings.append(StateTopic(topic, None, self._take))
        if self.config.target("command_topic"):
            self.offer_all()
        if not self.readings and not self.offers:
            raise Invalid("has neither a state topic nor a command topic")
        self.claims = self.claims or ("power",)

    def _take(self, text: str) -> Update:
        state = parse_json(text)
        if not isinstance(state, dict):
            raise Invalid("a state is no JSON object")
        update: dict[str, Value] = {}
        if "state" in state:
            power = {"ON": "on", "OFF": "off", None: None}.get(state["state"] if state["state"] is None else
                                                               str(state["state"]).upper(), ...)  # fmt: skip
            if power is not ...:
                update["power"] = power
        if self._has_brightness and is_number(state.get("brightness")):
            update["brightness"] = self.brightness_of(state["brightness"])
        update.update(self._colors(state))
        if "effect" in state and self.config.texts("effect_list"):
            update.update(self.effect_update(state["effect"]))
        return update

    def _colors(self, state: Mapping[str, Any]) -> Update:
        mode = state.get("color_mode")
        if not isinstance(mode, str):
            mode = self._likely_mode(state)
        update = self.mode_update(mode)
        color = state.get("color")
        if mode == "color_temp" and is_number(state.get("color_temp")) and state["color_temp"] > 0:
            update["color_temperature"] = self.kelvin_of(state["color_temp"])
        elif isinstance(color, dict):
            update.update(_color(mode, color))
        return update

    def _likely_mode(self, state: Mapping[str, Any]) -> str:
        """The mode that a message without one speaks of, if it can only be one."""
        color = state.get("color")
        if isinstance(color, dict):
            for mode, key in (("xy", "x"), ("hs", "h"), ("rgb", "r")):
                if key in color and self._modes & ({mode} if mode != "rgb" else set(RGB_MODES)):
                    return mode
        return "color_temp" if is_number(state.get("color_temp")) and "color_temp" in self._modes else ""

    def write(self, command: Command) -> Intent:
        """One object; a fade goes along."""
        wish, shows = self._as_command(command)
        if command.transition_secs is not None and command.action != "toggle":
            wish["transition"] = command.transition_secs
        return Intent(messages=(self.publish("command_topic", orjson.dumps(wish).decode()),), shows=shows)

    def _as_command(self, command: Command) -> tuple[dict[str, Value], Update]:
        value: Any = command.value
        on: dict[str, Value] = {"state": "ON"}
        match command.capability:
            case "power":
                return self._power(command.action)
            case "brightness":
                if value == 0:
                    return self._power("off")
                raw = self.raw_brightness(value)
                return {**on, "brightness": raw}, {"power": "on", "brightness": self.brightness_of(raw)}
            case "color_temperature":
                raw = self.raw_temperature(value)
                return {**on, "color_temp": raw}, {"power": "on", "color_temperature": self.kelvin_of(raw)}
            case "color_xy":
                return {**on, "color": value}, {"power": "on", "color_xy": value}
            case "color_hs":
                color = {"h": value["hue"], "s": value["saturation"]}
                return {**on, "color": color}, {"power": "on", "color_hs": value}
            case "color_rgb" | "color_hex":
                color = rgb_of_hex(value) if command.capability == "color_hex" else value
                return {**on, "color": color}, {"power": "on", "color_rgb": color}
        return {**on, "effect": self.wanted_effect(command)}, {"power": "on"}

    def _power(self, action: str) -> tuple[dict[str, Value], Update]:
        if action == "toggle":
            action = "off" if self.attributes.get("power") == "on" else "on"
        return {"state": action.upper()}, {"power": action}


def _color(mode: str, color: Mapping[str, Any]) -> dict[str, Value]:
    def has(*keys: str) -> bool:
        return all(is_number(color.get(key)) for key in keys)

    if mode in RGB_MODES and has("r", "g", "b"):
        return {"color_rgb": clamp_rgb(color["r"], color["g"], color["b"])}
    if mode == "xy" and has("x", "y"):
        return {"color_xy": clamp_xy(color["x"], color["y"])}
    if mode == "hs" and has("h", "s"):
        return {"color_hs": clamp_hs(color["h"], color["s"])}
    if mode == "hs" and has("hue", "saturation"):
        return {"color_hs": clamp_hs(color["hue"], color["saturation"])}
    return {}
