"""Lights of the schema `json`: one object says and takes everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from appliance.adapters.mqtt.entities.entity import Intent, Update, plain_number
from appliance.adapters.mqtt.entities.lights import RGB_MODES, LightEntity, clamp_hs, clamp_rgb, clamp_xy
from appliance.adapters.mqtt.payloads import parse_object
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tables.checks import is_number

_FLASH_SECS: Mapping[str, float] = {"short": 2, "long": 10}
"""Seconds that a flash lasts unless the announcement says otherwise."""


class JsonLight(LightEntity):
    """A light as Zigbee2MQTT, ESPHome and most others announce it."""

    def setup(self) -> None:
        """Find the colour modes and offer what they allow."""
        modes = frozenset(self.config.texts("supported_color_modes"))
        if not modes:  # announcers before Home Assistant 2021.5
            modes = frozenset(mode for mode in ("color_temp", "xy", "hs", "rgb") if self.config.flag(mode))
        self._modes = modes
        self._has_brightness = self.config.flag("brightness") or bool(modes - {"onoff"})
        has_times = any(f"flash_time_{each}" in self.config for each in _FLASH_SECS)
        self._can_flash = self.config.flag("flash", has_times)
        self.read("state_topic", self._parse)
        if self.has_target("command_topic"):
            self.offer_all()
        self.claims = self.claims or ("power",)

    def _parse(self, text: str) -> Update:
        state = parse_object(text, "a state")
        update: dict[str, Value] = {}
        power = str(state.get("state", "")).lower()
        if power in ("on", "off", "none"):
            update["power"] = None if power == "none" else power
        if self._has_brightness and is_number(state.get("brightness")):
            update["brightness"] = self.brightness_of(state["brightness"])
        update.update(self._colors(state))
        if "effect" in state and self.config.flag("effect", True) and self.config.texts("effect_list"):
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
            whites = ("w",) if mode == "rgbw" else ("c", "w") if mode == "rgbww" else ()
            update.update(self.whites_update([color.get(each) for each in whites]))
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
        change = self.change(command)
        body: dict[str, Value] = {"state": change.power.upper()}
        if change.name == "hs":
            body["color"] = {"h": change.value["hue"], "s": change.value["saturation"]}
        elif change.name == "whites":
            names = "rgbw" if len(change.value) == 1 else "rgbcw"
            body["color"] = dict(zip(names, self.color_with(change.value), strict=True))
        elif change.name == "flash":
            body["flash"] = plain_number(self.config.number(f"flash_time_{change.value}", _FLASH_SECS[change.value]))
        elif change.name:
            body["color" if change.name in ("rgb", "xy") else change.name] = change.value
        can_fade = self.config.flag("transition", True) and command.action != "toggle"
        if command.transition_secs is not None and can_fade:
            body["transition"] = command.transition_secs
        message = self.publish_with(None, "command_topic", orjson.dumps(body).decode())
        return Intent(messages=(message,), shows={"power": change.power, **change.shows})


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
