"""What lights of every schema share: modes, scales, and what their values come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from appliance.adapters.mqtt.entities.entity import (
    SETTABLE,
    SWITCHABLE,
    Entity,
    Offer,
    Update,
    clamped,
    is_unknown,
    parse_number,
)
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import KELVIN_RANGE, Value
from appliance.tables.checks import is_number

RGB_MODES = ("rgb", "rgbw", "rgbww")
COLOR_KEYS = ("color_temperature", "color_xy", "color_hs", "color_rgb")
EFFECTS = CAPABILITIES["effect"].values


_NOTATIONS = {"color_rgb": "rgb", "color_hex": "rgb", "color_hs": "hs", "color_xy": "xy"}


_MODES_OF = {"color_temperature": "color_temp", "color_rgb": "rgb", "color_hs": "hs", "color_xy": "xy"}
"""The colour mode that each attribute of a colour is shown in."""

WHITES = ("custom.mqtt.white", "custom.mqtt.cold_white", "custom.mqtt.warm_white")
"""Channels of white beside three colours, in percent: the only one, or cold and warm."""


class LightChange(Struct, frozen=True):
    """What a command to a light comes to: its power, and at most one property.

    `name` and `value` are the property in the light's own notation: `brightness`, `color_temp`, `rgb`, `hs`, `xy`,
    `white` (the whole light), `whites` (channels beside a colour, by attribute), `effect` or `flash` (short or long).
    `shows` is what the light shows of it once it is done.
    """

    power: str
    name: str = ""
    value: Any = None
    shows: Update = field(default_factory=dict)


class LightEntity(Entity):
    """A light. Schemas note in `_modes` and `_has_brightness` what they found."""

    component_class = "light"
    more_keys: tuple[str, ...] = ("effect", "custom.mqtt.effect", "color_mode")

    _modes: frozenset[str] = frozenset()
    _has_brightness = False
    _can_flash = False

    def offer_all(self, *, can_switch: bool = True) -> None:
        """Offer what the schema found, and claim the capabilities."""
        scale = self.config.number("brightness_scale", 255)
        self._scale = scale if scale >= 1 else 255
        self._effects = self.config.texts("effect_list") if self.config.flag("effect", True) else ()
        if can_switch:
            self.offers["power"] = SWITCHABLE
        if self._has_brightness:
            self.offers["brightness"] = SETTABLE
        if "color_temp" in self._modes:
            low, high = self._kelvin_range()
            kelvin: dict[str, Value] = {"min": low, "max": high, "unit": "kelvin"}
            self.offers["color_temperature"] = Offer(actions=("set",), schema=kelvin)
        self.offers |= {f"color_{mode}": SETTABLE for mode in ("xy", "hs") if mode in self._modes}
        if self._modes & set(RGB_MODES):
            self.offers["color_rgb"] = self.offers["color_hex"] = SETTABLE
        if "white" in self._modes:
            self.offers["color_mode"] = Offer(actions=("set",), schema={"values": ["white"]})
        percent: dict[str, Value] = {"type": "percentage", "min": 0, "max": 100}
        self.offers |= {attribute: Offer(actions=("set",), schema=percent) for attribute in self._whites()}
        self.more_keys += self._whites()
        self._offer_effects()
        self.claims = tuple(dict.fromkeys(("power", *self.offers, "color_mode")))

    def _whites(self) -> tuple[str, ...]:
        """The attributes of its channels of white: one beside three colours, cold and warm, or none."""
        return WHITES[1:] if "rgbww" in self._modes else WHITES[:1] if "rgbw" in self._modes else ()

    def _offer_effects(self) -> None:
        if self._can_flash:
            lengths: dict[str, Value] = {"type": "enum", "values": ["short", "long"]}
            self.offers["custom.mqtt.flash"] = Offer(actions=("set",), schema=lengths)
        known = [each for each in EFFECTS if self._vendor_effect(each) or (each == "flash" and self._can_flash)]
        if known:
            actions = ("set", "stop") if "none" in known else ("set",)
            self.offers["effect"] = Offer(actions=actions, schema={"values": known})
        if not self._effects:
            return
        options: dict[str, Value] = {"type": "enum", "values": list(self._effects)}
        self.offers["custom.mqtt.effect"] = Offer(actions=("set",), schema=options)

    def _vendor_effect(self, effect: str) -> str:
        return next((each for each in self._effects if each.lower() == effect), "")

    def _kelvin_range(self) -> tuple[int, int]:
        """The kelvin that the light takes, within the range of the capability."""
        warm, cold = self.config.number("max_mireds", 0), self.config.number("min_mireds", 0)
        low = self.config.number("min_kelvin", 1e6 / warm if warm > 0 else 0)
        high = self.config.number("max_kelvin", 1e6 / cold if cold > 0 else 1e6)
        low, high = max(round(low), KELVIN_RANGE[0]), min(round(high), KELVIN_RANGE[1])
        return (low, high) if low < high else KELVIN_RANGE

    def brightness_of(self, raw: float) -> int:
        """The percentage of a brightness on the announced scale; anything above 0 is at least 1."""
        return clamped(raw * 100 / self._scale, low=1 if raw > 0 else 0)

    def raw_brightness(self, percent: int) -> int:
        """The brightness on the announced scale; anything above 0 is at least 1."""
        return max(round(percent * self._scale / 100), 1 if percent else 0)

    def kelvin_of(self, raw: float) -> Value:
        """A colour temperature as announced, in kelvin, within the range of the capability."""
        kelvin = raw if self.config.flag("color_temp_kelvin") else 1e6 / max(raw, 1)
        return {"value": clamped(kelvin, *KELVIN_RANGE), "unit": "kelvin"}

    def parse_temperature(self, text: str) -> Update:
        """The colour temperature of a message; nothing where it is unknown or no temperature can be so."""
        if text == "" or is_unknown(text) or (raw := parse_number(text)) <= 0:
            return {}
        return {"color_temperature": self.kelvin_of(raw)}

    def raw_temperature(self, value: Mapping[str, Value]) -> int:
        """A canonical colour temperature as the light wants it."""
        is_kelvin = value["unit"] == "kelvin"
        if self.config.flag("color_temp_kelvin"):
            return int(value["value"]) if is_kelvin else round(1e6 / value["value"])
        return round(1e6 / value["value"]) if is_kelvin else int(value["value"])

    def mode_update(self, mode: str) -> dict[str, Value]:
        """What a colour mode comes to: the canonical mode, and the notations that it ends."""
        if mode in RGB_MODES:
            canonical, kept = "rgb", "color_rgb"
        elif mode in ("xy", "hs"):
            canonical, kept = mode, f"color_{mode}"
        elif mode == "color_temp":
            canonical, kept = "color_temp", "color_temperature"
        elif mode in ("white", "brightness"):
            canonical, kept = "white", ""
        else:
            return {}
        shown: dict[str, Value] = {key: None for key in COLOR_KEYS if key != kept and key in self.claims}
        return shown if mode == "brightness" else {**shown, "color_mode": canonical}

    def assumed(self, update: Update) -> Update:
        """With a colour, the mode that it begins, and no other notation."""
        mode = next((mode for key, mode in _MODES_OF.items() if key in update), "")
        return {**self.mode_update(mode), **update}

    def effect_update(self, name: Value) -> Update:
        """An effect by the light's own name: of the catalog if it is known there, else a custom attribute."""
        word = name.lower() if isinstance(name, str) else None
        if word is None or word in EFFECTS:
            return {"effect": word, "custom.mqtt.effect": None}
        return {"effect": None, "custom.mqtt.effect": name}

    def change(self, command: Command) -> LightChange:
        """What a command comes to. Brightness 0 switches off, any other property switches on."""
        value: Any = command.value
        if command.capability == "power":
            return LightChange(self.toggled(command.action))
        if command.capability == "brightness":
            raw = self.raw_brightness(value)
            shown = {"brightness": self.brightness_of(raw)}
            return LightChange("on", "brightness", raw, shown) if value else LightChange("off")
        if command.capability == "color_temperature":
            raw = self.raw_temperature(value)
            return LightChange("on", "color_temp", raw, {"color_temperature": self.kelvin_of(raw)})
        if command.capability in _NOTATIONS:
            notation = _NOTATIONS[command.capability]
            value = rgb_of_hex(value) if command.capability == "color_hex" else value
            return LightChange("on", notation, value, {f"color_{notation}": value})
        if command.capability == "color_mode":
            level = self.attributes.get("brightness") or 100
            raw = max(round(level * self.config.number("white_scale", 255) / 100), 1)
            return LightChange("on", "white", raw, {"color_mode": "white"})
        if command.capability in WHITES:
            shown = {command.capability: value}
            levels = {each: self.attributes.get(each, 0) for each in self._whites()} | shown
            return LightChange("on", "whites", [raw_white(each) for each in levels.values()], shown)
        return self._effect_change(command)

    def _effect_change(self, command: Command) -> LightChange:
        word = "none" if command.action == "stop" else str(command.value)
        if command.capability == "custom.mqtt.flash":
            return LightChange("on", "flash", word)
        effect = word if command.capability == "custom.mqtt.effect" else self._vendor_effect(word)
        return LightChange("on", "effect", effect) if effect else LightChange("on", "flash", "short")

    def color_with(self, whites: list[int]) -> list[int]:
        """Red, green and blue as they are shown, black where they are not, and the channels of white behind them."""
        shown: Any = self.attributes.get("color_rgb") or {"r": 0, "g": 0, "b": 0}
        return [shown["r"], shown["g"], shown["b"], *whites]

    def whites_update(self, levels: Sequence[Any]) -> dict[str, Value]:
        """What levels of white from 0 to 255 come to, in percent; nothing where they are not as many as announced."""
        attributes = self._whites()
        if len(levels) != len(attributes) or not all(map(is_number, levels)):
            return {}
        return {attribute: clamped(level / 2.55) for attribute, level in zip(attributes, levels, strict=True)}


def raw_white(percent: int) -> int:
    """The level from 0 to 255 of a channel."""
    return round(percent * 2.55)


def rgb_of_hex(text: str) -> dict[str, int]:
    """The colour written `#rrggbb`."""
    return {key: int(text[at : at + 2], 16) for key, at in (("r", 1), ("g", 3), ("b", 5))}


def clamp_rgb(red: float, green: float, blue: float) -> dict[str, int]:
    """A colour whose parts lie between 0 and 255."""
    return {key: clamped(part, 0, 255) for key, part in (("r", red), ("g", green), ("b", blue))}


def clamp_hs(hue: float, saturation: float) -> dict[str, int]:
    """Hue and saturation as whole numbers within their ranges."""
    return {"hue": clamped(hue, 0, 360), "saturation": clamped(saturation)}


def clamp_xy(x: float, y: float) -> dict[str, float]:
    """A point of the colour plane."""
    return {"x": min(max(x, 0.0), 1.0), "y": min(max(y, 0.0), 1.0)}
