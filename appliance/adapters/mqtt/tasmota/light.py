"""Lights of Tasmota's native discovery, whose messages contain all values of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.adapters.mqtt.messages import Outgoing, parse_object
from appliance.adapters.mqtt.platforms.light import LightChange, LightEntity, color_of
from appliance.adapters.mqtt.platforms.payloads import Update, read_parts, read_word
from appliance.adapters.mqtt.tasmota.announcements import CCT, RGB, RGBCCT, RGBW
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value
from appliance.tables.checks import is_number

SCHEMES = ("Solid", "Wake up", "Cycle up", "Cycle down", "Random")
"""Effects of a light with colours, by number."""

EFFECT_OF_SCHEME = {"none": "Solid", "colorloop": "Cycle up", "random": "Random"}
"""Tasmota's scheme for each effect in the catalog."""

MAX_SPEED = 40
"""Slowest fade, in half-seconds from dark to bright."""

FULL = 100
"""Maximum of brightness, saturation, and white level."""


class TasmotaLight(LightEntity):
    """A light, or one of several lights of a device.

    The light's type is 0 for power only, 1 for brightness, 2 for colour temperature, 3 for colours, 4 for colours
    and white, and 5 for colours and colour temperature.
    """

    def setup(self) -> None:
        self._type = int(self.config.number("light_type", 0))
        self._base = self.config.text("command_base")
        self._power_keys = self.config.texts("power_keys")
        self._has_brightness = self._type > 0
        modes = {CCT: ("color_temp",), RGB: ("hs",), RGBW: ("hs", "white"), RGBCCT: ("hs", "color_temp")}
        self._modes = frozenset(modes.get(self._type, ()))
        self.add_reader("state_topic", TasmotaLight._parse)
        self.offer_all()

    @property
    def effect_names(self) -> tuple[str, ...]:
        return SCHEMES if "hs" in self._modes else ()

    def _vendor_effect(self, effect: str) -> str:
        return EFFECT_OF_SCHEME.get(effect, "") if self.effect_names else ""

    def _parse(self, text: str) -> Update:
        try:
            state = parse_object(text, "the state")
        except Invalid:
            return {}  # with SetOption4, the same topic also contains a plain word for the power
        power = next((str(state[key]) for key in self._power_keys if key in state), "")
        words: dict[str, Value] = {self.payload("on"): "on", self.payload("off"): "off"}
        level = str(state.get(self.config.text("dimmer_key"), "")) if self._has_brightness else ""
        scheme = state.get("Scheme")
        return read_parts(
            lambda: read_word(power, words, "power"),
            lambda: self.parse_brightness(level),
            lambda: self._colors(state),
            lambda: self._scheme(scheme) if self.effect_names and isinstance(scheme, int) else {},
        )

    def _scheme(self, number: int) -> Update:
        name = SCHEMES[number] if 0 <= number < len(SCHEMES) else f"Scheme {number}"
        word = next((word for word, scheme in EFFECT_OF_SCHEME.items() if scheme == name), "")
        return self.effect_update(word or name)

    def _colors(self, state: Mapping[str, Any]) -> Update:
        """Return the active colour or white. If the light has both colour and white, `White` decides which of the two
        is active."""
        white: Any = state.get("White")
        mired: Any = state.get("CT")
        color = _hue_and_saturation(state.get("HSBColor"))
        is_white = self._type in (RGBW, RGBCCT) and is_number(white) and white > 0
        if is_white and self._type == RGBW:
            return self.mode_update("white")
        if "color_temp" in self._modes and (is_white or "hs" not in self._modes or (color is None and white is None)):
            if is_number(mired) and self.is_temperature(mired):
                return {**self.mode_update("color_temp"), "color_temperature": self.temperature_of(mired)}
            return {"color_temperature": None} if "CT" in state else {}
        if "hs" in self._modes and "HSBColor" in state:
            return {"color_hs": None} if color is None else {**self.mode_update("hs"), **color_of("hs", color)}
        return {}

    def shows_of(self, change: LightChange) -> Update:
        if change.name == "effect":
            shown = self._scheme(SCHEMES.index(change.value))
            return {key: value for key, value in shown.items() if value is not None}
        return super().shows_of(change)

    def messages(self, change: LightChange, command: Command) -> tuple[Outgoing, ...]:
        """Return the commands of a requested fade, followed by the commands of the property. Unless SetOption20 is
        set, a property switches the light on."""
        power = (self.config.text("command_topic"), self.payload(change.power))
        sent = [(self._base + name, str(value)) for name, value in self._commands(change)] or [power]
        if change.name and self.config.flag("is_power_separate"):
            sent.append(power)
        fade = [(self._base + name, str(value)) for name, value in self._fade(change, command)]
        return tuple(Outgoing(topic, payload, self.qos) for topic, payload in (*fade, *sent))

    def _commands(self, change: LightChange) -> list[tuple[str, Any]]:
        value = change.value
        match change.name:
            case "brightness":
                return [(self.config.text("dimmer_command"), value)]
            case "color_temp":
                return [("CT", value)]
            case "hs":
                return [("HsbColor1", value["hue"]), ("HsbColor2", value["saturation"])]
            case "white":
                return [("White", value)]
            case "effect":
                return [("Scheme", SCHEMES.index(value))]
        return []

    def _fade(self, change: LightChange, command: Command) -> list[tuple[str, int]]:
        """Return the commands of a fade. `Speed` is in half-seconds from dark to bright, unless SetOption117 is
        set."""
        secs = command.transition_secs
        if secs is None or not self.config.flag("can_fade"):
            return []
        if secs == 0:
            return [("Fade", 0)]
        shown = self.attributes.get("brightness", FULL) if self.attributes.get("power") == "on" else 0
        target = change.value if change.name == "brightness" else self.attributes.get("brightness", FULL)
        share = abs((target if change.power == "on" else 0) - shown) / FULL
        if change.name not in ("", "brightness") or self.config.flag("has_fixed_fade") or not share:
            share = 1.0
        return [("Fade", 1), ("Speed", min(max(round(2 * secs / share), 1), MAX_SPEED))]


def _hue_and_saturation(text: Any) -> list[float] | None:
    """Return the first two of three numbers such as `30,100,50`. Return None for any other text."""
    parts = text.split(",") if isinstance(text, str) else []
    try:
        return [float(part) for part in parts[:2]] if len(parts) == 3 else None
    except ValueError:
        return None
