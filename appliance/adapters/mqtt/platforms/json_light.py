"""Lights with the JSON schema, as announced by Zigbee2MQTT, ESPHome, and most other announcers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from appliance.adapters.mqtt.messages import Outgoing, parse_object
from appliance.adapters.mqtt.platforms.entity import Update, plain_number, stated_number
from appliance.adapters.mqtt.platforms.light import COLOR_OF_MODE, RGB_MODES, LightChange, LightEntity, color_of
from appliance.home.commands import Command
from appliance.home.values import Value

_FLASH_SECS: Mapping[str, float] = {"short": 2, "long": 10}


class JsonLight(LightEntity):
    """A light with one JSON object for all properties."""

    def setup(self) -> None:
        modes = frozenset(self.config.texts("supported_color_modes"))
        if not modes:  # announcers older than Home Assistant 2021.5
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
        if not text:
            return {}
        state = parse_object(text, "the state")
        word = str(state.get("state", ""))
        update = self.power_update(word)
        if self._has_brightness and (level := stated_number(state.get("brightness"))) is not None:
            update["brightness"] = self.brightness_of(level)
        update.update(self._colors(state))
        if "effect" in state and self.config.flag("effect", True) and self.config.texts("effect_list"):
            update.update(self.effect_update(state["effect"]))
        return self.check_power(word, update)

    def _colors(self, state: Mapping[str, Any]) -> Update:
        mode = state.get("color_mode")
        if not isinstance(mode, str):
            mode = self._likely_mode(state)
        update = self.mode_update(mode)
        color, temperature = state.get("color"), stated_number(state.get("color_temp"))
        if mode == "color_temp" and temperature is not None and temperature > 0:
            update["color_temperature"] = self.kelvin_of(temperature)
        elif isinstance(color, dict):
            update.update(_color(mode, color))
        if isinstance(color, dict):
            whites = ("c", "w") if "rgbww" in self._modes else ("w",)
            update.update(self.whites_update([stated_number(color.get(each)) for each in whites]))
        return update

    def _likely_mode(self, state: Mapping[str, Any]) -> str:
        """Return the mode of a message that does not name its mode, if only one mode is possible."""
        color = state.get("color")
        if isinstance(color, dict):
            for mode, key in (("xy", "x"), ("hs", "h"), ("rgb", "r")):
                if key in color and self._modes & ({mode} if mode != "rgb" else set(RGB_MODES)):
                    return mode
        has_temperature = stated_number(state.get("color_temp")) is not None
        return "color_temp" if has_temperature and "color_temp" in self._modes else ""

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return one object, including the fade."""
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
        return (self.publish_with(None, "command_topic", orjson.dumps(body).decode()),)


def _color(mode: str, color: Mapping[str, Any]) -> dict[str, Value]:
    for notation, keys in (("rgb", "rgb"), ("xy", "xy"), ("hs", "hs"), ("hs", ("hue", "saturation"))):
        parts = [each for key in keys if (each := stated_number(color.get(key))) is not None]
        if COLOR_OF_MODE.get(mode) == f"color_{notation}" and len(parts) == len(keys):
            return color_of(notation, parts)
    return {}
