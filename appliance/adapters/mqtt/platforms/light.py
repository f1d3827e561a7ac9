"""Base of lights: modes, scales, and commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from appliance.adapters.mqtt.messages import Outgoing
from appliance.adapters.mqtt.platforms.entity import SWITCHED, Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import clamped, read_number
from appliance.adapters.mqtt.platforms.payloads import UnknownValue, Update, is_unknown, one_of, same_word
from appliance.home.capabilities import CAPABILITIES
from appliance.home.commands import Command
from appliance.home.values import (
    KELVIN_RANGE,
    Value,
    clamped_kelvin,
    kelvin_in,
    kelvin_of,
    level_of,
    mireds_in,
    percent_of,
)
from appliance.tables.checks import is_number

RGB_MODES = ("rgb", "rgbw", "rgbww")

EFFECTS = CAPABILITIES["effect"].values

COLOR_OF_MODE = {
    "color_temp": "color_temperature",
    "xy": "color_xy",
    "hs": "color_hs",
    **dict.fromkeys(RGB_MODES, "color_rgb"),
}
"""The colour attribute of each colour mode."""

MODES = (*COLOR_OF_MODE, "white", "brightness", "onoff")
"""The modes that a light can report."""

NOTATIONS: Mapping[str, tuple[tuple[str, str, float], ...]] = {
    "rgb": (("red", "r", 255), ("green", "g", 255), ("blue", "b", 255)),
    "hs": (("hue", "hue", 360), ("sat", "saturation", 100)),
    "xy": (("x", "x", 1.0), ("y", "y", 1.0)),
}
"""The components of each colour notation: the name in command templates, the name in Lares, and the maximum."""

MAX_MIREDS = 2000
"""A reported colour temperature must be below this number of mireds."""

ON_OFF: Mapping[str, Value] = {"ON": "on", "OFF": "off"}
"""The power of a light by the words of the schemas `json` and `template`."""

WHITES = ("custom.mqtt.white", "custom.mqtt.cold_white", "custom.mqtt.warm_white")
"""White channels of a light with colours, in percent: a single channel, or cold and warm white."""


class LightChange(Struct, frozen=True):
    """The power after a command to a light, and at most one changed property.

    `name` and `value` are the property in the light's own notation: `brightness`, `color_temp`, `rgb`, `hs`, `xy`,
    `white` (the whole light), `whites` (the white channels of a light with colours, by attribute), `effect`, or
    `flash` (short or long). `shows` contains the value that the property then has in Lares.
    """

    power: str
    name: str = ""
    value: Any = None
    shows: Update = field(default_factory=dict)


class LightEntity(Entity):
    """A light. The class of each schema sets `_modes`, `_has_brightness`, and `_can_flash`."""

    more_attributes: tuple[str, ...] = ("effect", "custom.mqtt.effect", "color_mode")

    _modes: frozenset[str] = frozenset()
    _has_brightness = False
    _can_flash = False

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return the messages of a change, in the order of sending."""
        raise NotImplementedError

    def write_change(self, command: Command) -> Intent:
        change = self.change(command)
        return Intent(messages=self.messages(change, command), shows=self.shows_of(change))

    def shows_of(self, change: LightChange) -> Update:
        """Return the values that confirm the command of a change."""
        return {"power": change.power, **change.shows}

    def offer_all(self, *, can_switch: bool = True) -> None:
        """Offer all properties of the schema, and claim their capabilities."""
        scale = self.config.number("brightness_scale", 255)
        self._scale = scale if scale >= 1 else 255
        if can_switch:
            self.add_offer("power", SWITCHED, type(self).write_change)
        settable = ["brightness"] if self._has_brightness else []
        settable += [f"color_{mode}" for mode in ("xy", "hs") if mode in self._modes]
        settable += ["color_rgb", "color_hex"] if self._modes & set(RGB_MODES) else []
        for attribute in settable:
            self._offer(attribute)
        if "color_temp" in self._modes:
            low, high = self._kelvin_range()
            self._offer("color_temperature", min=low, max=high, unit="kelvin")
        if "white" in self._modes:
            self._offer("color_mode", values=["white"])
        for attribute in self._whites():
            self._offer(attribute, type="percentage", min=0, max=100)
        self.more_attributes += self._whites()
        self._offer_effects()
        self.claims = tuple(dict.fromkeys(("power", *self.offers, "color_mode")))

    @property
    def effect_names(self) -> tuple[str, ...]:
        """The names that the light uses for effects."""
        return self.config.texts("effect_list") if self.config.flag("effect", True) else ()

    def _offer(self, attribute: str, **schema: Value) -> None:
        self.add_offer(attribute, ("set",), type(self).write_change, **schema)

    def _whites(self) -> tuple[str, ...]:
        return WHITES[1:] if "rgbww" in self._modes else WHITES[:1] if "rgbw" in self._modes else ()

    def _offer_effects(self) -> None:
        if self._can_flash:
            self._offer("custom.mqtt.flash", type="enum", values=["short", "long"])
        known: list[Value] = [
            each for each in EFFECTS if self._vendor_effect(each) or (each == "flash" and self._can_flash)
        ]
        if known:
            self.add_offer(
                "effect", ("set", "stop") if "none" in known else ("set",), type(self).write_change, values=known
            )
        if self.effect_names:
            self._offer("custom.mqtt.effect", type="enum", values=list(self.effect_names))

    def _vendor_effect(self, effect: str) -> str:
        return next((each for each in self.effect_names if each.lower() == effect), "")

    def _kelvin_range(self) -> tuple[int, int]:
        """Return the light's kelvin range, limited to the range of the capability."""
        warm, cold = self.config.number("max_mireds", 0), self.config.number("min_mireds", 0)
        low = self.config.number("min_kelvin", kelvin_of(max(warm, 1)) if warm > 0 else 0)
        high = self.config.number("max_kelvin", kelvin_of(max(cold, 1)) if cold > 0 else KELVIN_RANGE[1])
        low, high = clamped_kelvin(low), clamped_kelvin(high)
        return (low, high) if low < high else KELVIN_RANGE

    def brightness_of(self, raw: float) -> int:
        return percent_of(raw, self._scale)

    def parse_brightness(self, text: str) -> Update:
        """Parse a brightness. A negative brightness is unknown."""
        return read_number(text, "brightness", lambda raw: self.brightness_of(raw) if raw >= 0 else None)

    def raw_brightness(self, percent: int) -> int:
        return level_of(percent, self._scale)

    def temperature_of(self, raw: float) -> Value:
        """Convert a reported colour temperature to kelvin, limited to the range of the capability."""
        kelvin = raw if self.config.flag("color_temp_kelvin") else kelvin_of(max(raw, 1))
        return {"value": clamped_kelvin(kelvin), "unit": "kelvin"}

    def is_temperature(self, raw: float) -> bool:
        """Return whether a lamp can have this colour temperature. Many devices send 0 or 65535 instead of null."""
        return 0 < raw < (65535 if self.config.flag("color_temp_kelvin") else MAX_MIREDS)

    def parse_temperature(self, text: str) -> Update:
        """Parse a colour temperature. An impossible temperature is unknown."""
        return read_number(
            text, "color_temperature", lambda raw: self.temperature_of(raw) if self.is_temperature(raw) else None
        )

    def raw_temperature(self, value: Mapping[str, Value]) -> int:
        """Convert a canonical colour temperature to the light's own unit."""
        return kelvin_in(value) if self.config.flag("color_temp_kelvin") else mireds_in(value)

    def mode_update(self, mode: str) -> dict[str, Value]:
        """Return the canonical mode, and None for the colour attributes of other modes."""
        kept = COLOR_OF_MODE.get(mode, "")
        if mode not in MODES:
            return {}
        ended: dict[str, Value] = {key: None for key in COLOR_OF_MODE.values() if key != kept}
        if mode not in RGB_MODES:
            ended |= dict.fromkeys(self._whites())
        shown = "rgb" if mode in RGB_MODES else None if mode in ("brightness", "onoff") else mode
        return {**ended, "color_mode": shown}

    def read_mode(self, text: str) -> Update:
        """Return the canonical mode of a reported mode. If the mode is unknown, all colours are unknown, too. Raise
        `UnknownValue` if no light can have the mode."""
        if (mode := same_word(text, MODES)) is not None:
            return self.mode_update(mode)
        unknown: Update = dict.fromkeys((*COLOR_OF_MODE.values(), "color_mode"))
        if text == "" or is_unknown(text):
            return unknown if text else {}
        raise UnknownValue(text, one_of(MODES), "color_mode", unknown)

    def assumed(self, update: Update) -> Update:
        """Add the mode of a colour to the update, and clear the colour attributes of other modes."""
        mode = next((mode for mode, key in COLOR_OF_MODE.items() if key in update), "")
        return {**self.mode_update(mode), **update}

    def effect_update(self, name: Value) -> Update:
        """Convert the light's own name of an effect to a capability if the catalog has the effect, otherwise to a
        custom attribute."""
        word = name.lower() if isinstance(name, str) and name else None
        if word is None or word in EFFECTS:
            return {"effect": word, "custom.mqtt.effect": None}
        return {"effect": None, "custom.mqtt.effect": name}

    def change(self, command: Command) -> LightChange:
        """Convert a command to a change. Brightness 0 switches the light off. Any other property switches the
        light on."""
        capability, value = command.capability, command.value
        if capability == "power":
            return LightChange(self.switched(command))
        if capability == "brightness":
            raw = self.raw_brightness(value)
            shown = {"brightness": self.brightness_of(raw)}
            return LightChange("on", "brightness", raw, shown) if value else LightChange("off")
        if capability == "color_temperature":
            raw = self.raw_temperature(value)
            return LightChange("on", "color_temp", raw, {"color_temperature": self.temperature_of(raw)})
        if capability == "color_hex":
            capability, value = "color_rgb", rgb_of_hex(value)
        if capability in ("color_rgb", "color_hs", "color_xy"):
            return LightChange("on", capability.removeprefix("color_"), value, {capability: value})
        if capability == "color_mode":
            level = self.attributes.get("brightness") or 100
            raw = level_of(level, self.config.number("white_scale", 255))
            return LightChange("on", "white", raw, {"color_mode": "white"})
        if capability in WHITES:
            levels = {each: self.attributes.get(each, 0) for each in self._whites()} | {capability: value}
            return LightChange("on", "whites", [level_of(each, 255) for each in levels.values()], {capability: value})
        return self._effect_change(command)

    def _effect_change(self, command: Command) -> LightChange:
        word = "none" if command.action == "stop" else str(command.value)
        if command.capability == "custom.mqtt.flash":
            return LightChange("on", "flash", word)
        effect = word if command.capability == "custom.mqtt.effect" else self._vendor_effect(word)
        return LightChange("on", "effect", effect) if effect else LightChange("on", "flash", "short")

    def color_with(self, whites: list[int]) -> list[int]:
        """Return the current red, green, and blue, followed by the white channels. An unknown colour is black."""
        shown: Any = self.attributes.get("color_rgb") or {"r": 0, "g": 0, "b": 0}
        return [shown["r"], shown["g"], shown["b"], *whites]

    def whites_update(self, levels: Sequence[Any]) -> dict[str, Value]:
        """Convert white levels from 0 to 255 to percent. Return an empty update if a channel has no level."""
        attributes = self._whites()
        if len(levels) != len(attributes) or not all(map(is_number, levels)):
            return {}
        return {attribute: percent_of(level, 255) for attribute, level in zip(attributes, levels, strict=True)}


def rgb_of_hex(text: str) -> dict[str, int]:
    return {key: int(text[at : at + 2], 16) for key, at in (("r", 1), ("g", 3), ("b", 5))}


def color_of(notation: str, numbers: Iterable[float]) -> dict[str, Value]:
    """Return the update for a colour. Clamp the numbers, and round them if their range consists of integers."""
    parts = zip(NOTATIONS[notation], numbers, strict=True)
    color = {
        key: clamped(number, 0, top) if isinstance(top, int) else min(max(number, 0.0), top)
        for (_, key, top), number in parts
    }
    return {f"color_{notation}": color}
