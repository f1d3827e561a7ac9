"""The three schemas of lights: one topic per property, JSON, and templates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson

from appliance.adapters.mqtt.fields import is_unreadable
from appliance.adapters.mqtt.messages import Outgoing, parse_object
from appliance.adapters.mqtt.platforms.entity import PayloadParser
from appliance.adapters.mqtt.platforms.light import (
    COLOR_OF_MODE,
    MODES,
    NOTATIONS,
    ON_OFF,
    RGB_MODES,
    WHITES,
    LightChange,
    LightEntity,
    color_of,
)
from appliance.adapters.mqtt.platforms.numbers import parse_number, plain_number, stated_number
from appliance.adapters.mqtt.platforms.payloads import (
    UnknownValue,
    Update,
    WordParser,
    is_unknown,
    read_parts,
    read_word,
    same_word,
)
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value, clamped_kelvin


class TopicLight(LightEntity):
    """A light with one topic per property."""

    def setup(self) -> None:
        self._has_brightness = self.can("brightness_command")
        modes = ("rgb", "rgbw", "rgbww", "hs", "xy", "color_temp", "white")
        self._modes = frozenset(name for name in modes if self.can(f"{name}_command"))
        states = {self.payload(power): power for power in ("off", "on")}
        self._by_notation: dict[str, Update] = {}
        self._named_mode = ""
        self._has_mode_topic = self.config.topic("color_mode_state_topic") is not None
        self.add_reader("state_topic", WordParser(states, "power"), "state_value_template", "value_template",
                  reports=("power",))  # fmt: skip
        # first, because one message may contain both the mode and colours
        self._read("color_mode", "color_mode", TopicLight._parse_mode)
        self._read("brightness", "brightness", TopicLight.parse_brightness)
        self._read("color_temp", "color_temperature", TopicLight._parse_temperature)
        for name in (*RGB_MODES, "hs", "xy"):
            whites = {"rgbw": WHITES[:1], "rgbww": WHITES[1:]}.get(name, ())
            self._read(name, COLOR_OF_MODE[name], _color_parser(COLOR_OF_MODE[name].removeprefix("color_")), *whites)
        self._read("effect", "effect", TopicLight.effect_update)
        self.offer_all(can_switch=self.has_target("command_topic"))
        if not self.has_target("effect_command_topic"):
            self.offers.pop("effect", None)
            self.offers.pop("custom.mqtt.effect", None)

    def _read(self, name: str, attribute: str, parse: PayloadParser, *more: str) -> None:
        self.add_reader(f"{name}_state_topic", parse, f"{name}_value_template", reports=(attribute, *more))

    def _parse_mode(self, text: str) -> Update:
        if text:
            self._named_mode = same_word(text, MODES) or ""
        update = self.read_mode(text)
        return {**update, **self._by_notation.get(COLOR_OF_MODE.get(self._named_mode, ""), {})} if update else {}

    def _of_notation(self, mode: str, read: Callable[[str], Update], text: str) -> Update:
        """Return a colour with the mode that it implies.

        If a topic reports the mode, a colour implies no mode. The colour is then used only while the reported mode is
        the colour's mode.
        """
        if text == "":
            return {}
        key = COLOR_OF_MODE[mode]
        self._by_notation.pop(key, None)
        if (update := read(text)).get(key) is None:
            return update
        if not self._has_mode_topic:
            return {**self.mode_update(mode), **update}
        self._by_notation[key] = update
        named = self._named_mode or str(self.attributes.get("color_mode"))
        return update if COLOR_OF_MODE.get(named) == key else {}

    def _parse_temperature(self, text: str) -> Update:
        return self._of_notation("color_temp", self.parse_temperature, text)

    def parse_color(self, notation: str, text: str) -> Update:
        """Parse a list such as `255,0,64`. Up to two white values may follow the three colours."""
        return self._of_notation(notation, partial(self._color, notation), text)

    def _color(self, notation: str, text: str) -> Update:
        key, whites = COLOR_OF_MODE[notation], self._whites() if notation == "rgb" else ()
        if is_unknown(text):
            return dict.fromkeys((key, *whites))
        parts = [parse_number(part, key) for part in text.split(",")[:5]]
        count = len(NOTATIONS[notation])
        if len(parts) < count or (len(parts) > count and notation != "rgb"):
            raise UnknownValue(text, f"a list of {count} numbers", key)
        return {**color_of(notation, parts[:count]), **(self.whites_update(parts[count:]) if whites else {})}

    def shows_of(self, change: LightChange) -> Update:
        return change.shows if change.name and not self._switches_on(change) else super().shows_of(change)

    def _switches_on(self, change: LightChange) -> bool:
        """Return whether a property needs an additional message that switches the light on."""
        is_brightness = change.name == "brightness" and self.config.text("on_command_type") == "brightness"
        return "power" in self.offers and not is_brightness

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return the property's message. If necessary, add a message before or after the property's message to switch
        the light on."""
        if not change.name:
            return (self._switch(change.power),)
        message, order = self._property(change), self.config.text("on_command_type", "last")
        if order == "brightness" or not self._switches_on(change):
            return (message,)
        return (self._switch("on"), message) if order == "first" else (message, self._switch("on"))

    def _switch(self, power: str) -> Outgoing:
        if power == "on" and self.config.text("on_command_type") == "brightness" and self._has_brightness:
            percent = int(self.attributes.get("brightness") or 100)
            return self.publish("brightness_command", self.raw_brightness(percent))
        return self.publish_with(None, "command_topic", self.payload(power))

    def _property(self, change: LightChange) -> Outgoing:
        """Return the message of one property. A colour is a list of its components, with 0 for the white channels."""
        if change.name == "whites":
            return self._with_whites(self.color_with(change.value))
        if change.name not in ("rgb", "hs", "xy"):
            return self.publish(f"{change.name}_command", change.value)
        names: dict[str, Any] = {name: change.value[key] for name, key, _ in NOTATIONS[change.name]}
        if change.name == "rgb" and not self.has_target("rgb_command_topic"):
            is_single = self.has_target("rgbw_command_topic")
            return self._with_whites([*names.values(), 0] if is_single else [*names.values(), 0, 0])
        return self.publish(f"{change.name}_command", ",".join(map(str, names.values())), **names)

    def _with_whites(self, parts: list[Any]) -> Outgoing:
        """Return the message of a colour and its white channels."""
        whites = ("white",) if len(parts) == 4 else ("cold_white", "warm_white")
        names: dict[str, Any] = dict(zip(("red", "green", "blue", *whites), parts, strict=True))
        return self.publish(f"rgb{'w' * len(whites)}_command", ",".join(map(str, parts)), **names)


_FIRST_KEYS = (("xy", "x"), ("hs", "h"), ("rgb", "r"))
"""The mode of a colour by its first key in a JSON state."""

_FLASH_SECS: Mapping[str, float] = {"short": 2, "long": 10}


def _color_parser(notation: str) -> PayloadParser:
    return lambda light, text: light.parse_color(notation, text)


class JsonLight(LightEntity):
    """A light with one JSON object for all properties."""

    def setup(self) -> None:
        modes = frozenset(self.config.texts("supported_color_modes"))
        if not modes:  # for discovery payloads older than Home Assistant 2021.5
            modes = frozenset(mode for mode in ("color_temp", "xy", "hs", "rgb") if self.config.flag(mode))
        self._modes = modes
        self._has_brightness = self.config.flag("brightness") or bool(modes - {"onoff"})
        has_times = any(f"flash_time_{each}" in self.config for each in _FLASH_SECS)
        self._can_flash = self.config.flag("flash", has_times)
        self.add_reader("state_topic", JsonLight._parse)
        if self.has_target("command_topic"):
            self.offer_all()
        self.claims = self.claims or ("power",)

    def _parse(self, text: str) -> Update:
        if not text:
            return {}
        state = parse_object(text, "the state")
        level = str(state.get("brightness", "")) if self._has_brightness else ""
        return read_parts(
            lambda: read_word(str(state.get("state", "")), ON_OFF, "power"),
            lambda: self.parse_brightness(level),
            lambda: self._effect(state),
            lambda: self._colors(state),
        )

    def _effect(self, state: Mapping[str, Any]) -> Update:
        is_shown = "effect" in state and self.config.flag("effect", True) and self.config.texts("effect_list")
        return self.effect_update(state["effect"]) if is_shown else {}

    def _colors(self, state: Mapping[str, Any]) -> Update:
        mode = state.get("color_mode")
        if not isinstance(mode, str):
            mode = self._likely_mode(state) or ("None" if "color_mode" in state else "")
        update: dict[str, Value] = {}
        if mode == "color_temp" or (not mode and "color_temp" in self._modes):
            if not {"color_temp", "color_temp_kelvin"}.isdisjoint(state):
                update["color_temperature"] = self._temperature(state)
        elif "color" in state and (key := COLOR_OF_MODE.get(mode)) is not None:
            update[key] = None
        if isinstance(color := state.get("color"), dict):
            if not mode:
                update.update({COLOR_OF_MODE[each]: None for each, key in _FIRST_KEYS if key in color})
            update.update(_color(mode, color))
            keys = ("c", "w") if "rgbww" in self._modes else ("w",)
            if not {*keys}.isdisjoint(color):
                levels = [stated_number(color.get(each)) for each in keys]
                update.update(self.whites_update(levels) or dict.fromkeys(self._whites()))
        return {**self.read_mode(mode), **update}

    def _likely_mode(self, state: Mapping[str, Any]) -> str:
        """Return the mode of a message without a mode, if only one mode is possible."""
        color = state.get("color")
        if isinstance(color, dict):
            for mode, key in _FIRST_KEYS:
                if stated_number(color.get(key)) is not None and self._modes & (
                    {mode} if mode != "rgb" else set(RGB_MODES)
                ):
                    return mode
        return "color_temp" if self._temperature(state) is not None and "color_temp" in self._modes else ""

    def _temperature(self, state: Mapping[str, Any]) -> Value:
        """Return the colour temperature, or None if it is missing or impossible. Some devices report
        `color_temp_kelvin` instead of `color_temp`."""
        if (raw := stated_number(state.get("color_temp"))) is not None:
            return self.temperature_of(raw) if self.is_temperature(raw) else None
        kelvin = stated_number(state.get("color_temp_kelvin"))
        return {"value": clamped_kelvin(kelvin), "unit": "kelvin"} if kelvin is not None and kelvin > 0 else None

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return one message: a JSON object, with the transition if the command has one."""
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


class TemplateLight(LightEntity):
    """A light with one command, which templates render."""

    def setup(self) -> None:
        self._has_brightness = "brightness_template" in self.config
        modes = {"color_temp"} if "color_temp_template" in self.config else set()
        if all(f"{color}_template" in self.config for color in ("red", "green", "blue")):
            modes.add("rgb")
        self._modes = frozenset(modes)
        for key, attribute, parse in (
            ("state", "power", WordParser(ON_OFF, "power")),
            ("brightness", "brightness", TemplateLight.parse_brightness),
            ("color_temp", "color_temperature", TemplateLight.parse_temperature),
            ("effect", "effect", TemplateLight.effect_update),
        ):
            if f"{key}_template" in self.config:
                self.add_reader("state_topic", parse, f"{key}_template", reports=(attribute,))
        on = self.config.text("command_on_template")
        self._can_flash = re.search(r"\bflash\b", on) is not None
        self._parts: dict[str, float | None] = {}
        for color in ("red", "green", "blue") if "rgb" in modes else ():
            self.add_reader("state_topic", _part_parser(color), f"{color}_template", reports=("color_rgb",))
        if not self._can_send("on"):
            raise Invalid("the entity has no command topic, or its template is unreadable")
        self.offer_all(can_switch=self._can_send("off"))

    def _can_send(self, power: str) -> bool:
        template = self.config.template(f"command_{power}_template")
        return self.has_target("command_topic") and not is_unreadable(template)

    def parse_part(self, part: str, text: str) -> Update:
        """Parse the red, green, or blue part of a colour. The last part completes the update.

        An unknown colour clears the colour attribute, because lamps with white channels report white in this way.
        """
        if text:
            self._parts[part] = math.nan
            self._parts[part] = None if is_unknown(text) else parse_number(text, "color_rgb")
        parts = [self._parts.get(color) for color in ("red", "green", "blue")]
        if part != "blue" or not text:
            return {}
        if any(each is not None and math.isnan(each) for each in parts):
            return {"color_rgb": None}
        if None in parts:
            is_white = "color_temperature" in self.attributes or "color_temp" in self._modes
            return {"color_rgb": None, "color_mode": "color_temp" if is_white else None}
        return {**self.mode_update("rgb"), **color_of("rgb", [each for each in parts if each is not None])}

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return one message. The template has access only to the values of the command."""
        names: dict[str, Value] = {}
        if change.name == "rgb":
            names = {name: change.value[key] for name, key, _ in NOTATIONS["rgb"]}
        elif change.name:
            names = {change.name: change.value}
        if command.transition_secs is not None:
            names["transition"] = command.transition_secs
        template = self.config.template(f"command_{change.power}_template")
        return (self.publish_with(template, "command_topic", "", state=change.power, **names),)


def _part_parser(part: str) -> PayloadParser:
    return lambda light, text: light.parse_part(part, text)
