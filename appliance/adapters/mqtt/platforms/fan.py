"""Fans."""

from __future__ import annotations

import math

from msgspec import Struct

from appliance.adapters.mqtt.platforms.numbers import clamped, number_parser, number_within
from appliance.adapters.mqtt.platforms.payloads import WordParser
from appliance.adapters.mqtt.platforms.switch import OnOff
from appliance.home.values import Value


class Fan(OnOff):
    """A fan, with the speed as `custom.mqtt.percentage` and the preset as `preset_mode`. Speed 0 switches the fan
    off."""

    def setup(self) -> None:
        super().setup()
        self.add_power("state_value_template")
        self._add_speed()
        presets = self.config.texts("preset_modes")
        words = {self.config.text("payload_reset_preset_mode", "None"): None, **{each: each for each in presets}}
        schema: dict[str, Value] | None = {"values": list(presets)} if presets else None
        self.add_value("preset_mode", "preset_mode", WordParser(words, "preset_mode"), schema)
        swings = {
            self.config.text(f"payload_oscillation_{word}", f"oscillate_{word}"): is_on
            for word, is_on in (("off", False), ("on", True))
        }
        payloads = {is_on: payload for payload, is_on in swings.items()}
        key = "custom.mqtt.oscillation"
        self.add_value(key, "oscillation", WordParser(swings, key), {"type": "boolean"},
                  to_payload=payloads.__getitem__, to_shown=swings.__getitem__)  # fmt: skip
        key, ways = "custom.mqtt.direction", ["forward", "reverse"]
        parse = WordParser({way: way for way in ways}, key)
        self.add_value(key, "direction", parse, {"type": "enum", "values": ways})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _add_speed(self) -> None:
        key, percent = "custom.mqtt.percentage", {"type": "percentage", "min": 0, "max": 100}
        reset = self.config.text("payload_reset_percentage", "None")
        speeds = _Speeds(*self.config.bounds("speed_range_min", "speed_range_max", 1, 100))
        parse = number_parser(key, lambda raw: speeds.percent(speeds.checked(raw, key)))
        self.add_value(
            key,
            "percentage",
            lambda self, text: {key: None} if text == reset else parse(self, text),
            percent,
            to_payload=speeds.raw,
            to_shown=speeds.percent,
        )
        if (offer := self.offers.get(key)) is not None:
            write = offer.write
            self.add_offer(
                key,
                ("set",),
                lambda self, command: write(self, command) if command.value else self.switch("off"),
                **percent,
            )


class _Speeds(Struct, frozen=True):
    """The lowest and the highest speed of a fan."""

    low: float
    high: float

    def checked(self, raw: float, attribute: str) -> float:
        """Return a reported speed. Speed 0 means off. Raise `UnknownValue` if the speed is far outside the range."""
        return raw if raw == 0 else number_within(raw, self.low - 1, self.high, attribute)

    def percent(self, raw: float) -> int:
        return clamped((raw - self.low + 1) * 100 // (self.high - self.low + 1))

    def raw(self, percent: int) -> int:
        return math.ceil(percent * (self.high - self.low + 1) / 100 + self.low - 1)
