"""Fans."""

from __future__ import annotations

import math

from appliance.adapters.mqtt.platforms.entity import number_parser
from appliance.adapters.mqtt.platforms.on_off import OnOff
from appliance.home.values import Value


class Fan(OnOff):
    """A fan. Its speed is `custom.mqtt.percentage`, and its preset is `preset_mode`. A speed of 0 switches it off."""

    def setup(self) -> None:
        super().setup()
        self._low, high = self.config.bounds("speed_range_min", "speed_range_max", 1, 100)
        self._speeds = high - self._low + 1
        self.add_power("state_value_template")
        self._add_speed()
        presets = self.config.texts("preset_modes")
        words = {self.config.text("payload_reset_preset_mode", "None"): None, **{each: each for each in presets}}
        schema: dict[str, Value] | None = {"values": list(presets)} if presets else None
        self.add("preset_mode", "preset_mode", self.words(words, "preset_mode"), schema)
        swings = {
            self.config.text(f"payload_oscillation_{word}", f"oscillate_{word}"): is_on
            for word, is_on in (("off", False), ("on", True))
        }
        payloads = {is_on: payload for payload, is_on in swings.items()}
        key = "custom.mqtt.oscillation"
        self.add(key, "oscillation", self.words(swings, key), {"type": "boolean"},
                  to_payload=payloads.__getitem__, to_shown=swings.__getitem__)  # fmt: skip
        key, ways = "custom.mqtt.direction", ["forward", "reverse"]
        parse = self.words({way: way for way in ways}, key)
        self.add(key, "direction", parse, {"type": "enum", "values": ways})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _add_speed(self) -> None:
        key, percent = "custom.mqtt.percentage", {"type": "percentage", "min": 0, "max": 100}
        reset = self.config.text("payload_reset_percentage", "None")
        parse = number_parser(key, self._percent, ignores_unknown=True)
        self.add(key, "percentage", lambda text: {key: None} if text == reset else parse(text), percent,
                  to_payload=self._raw, to_shown=self._percent)  # fmt: skip
        if (offer := self.offers.get(key)) is not None:
            write = offer.write
            self.offer(
                key, ("set",), lambda command: write(command) if command.value else self.switch("off"), **percent
            )

    def _percent(self, raw: float) -> int:
        return min(max(int((raw - self._low + 1) * 100 // self._speeds), 0), 100)

    def _raw(self, percent: int) -> int:
        return math.ceil(percent * self._speeds / 100 + self._low - 1)
