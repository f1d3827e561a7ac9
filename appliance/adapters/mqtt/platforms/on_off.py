"""Switches, fans, and sirens."""

from __future__ import annotations

import math

import orjson
from msgspec import Struct

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import SWITCHED, Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import clamped, number_parser
from appliance.adapters.mqtt.platforms.payloads import Update, WordParser, read_word
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class OnOff(Entity):
    """Base of switches, fans, and sirens: a command topic, and separate payloads for commands and states."""

    def setup(self) -> None:
        self.states: dict[str, Value] = {
            self.config.text(f"state_{state}", self.payload(state)): state for state in ("off", "on")
        }
        self.states |= dict.fromkeys(self.config.texts("_states_on"), "on")
        if not self.has_target("command_topic"):
            raise Invalid("the entity has no command topic")

    def add_power(self, *templates: str) -> None:
        """Read the power, and offer to switch the device."""
        self.add_reader("state_topic", WordParser(self.states, "power"), *templates, shows=("power",))
        self.add_offer("power", SWITCHED, OnOff._write_power)
        self.claims = ("power",)

    def _write_power(self, command: Command) -> Intent:
        return self.switch(self.switched(command))

    def switch(self, action: str) -> Intent:
        """Return the payload for `on` or `off`, rendered by the template if one is announced."""
        return self.intent("command", self.payload(action), {"power": action})


class Switch(OnOff):
    """A switch or an outlet. An outlet has the class `plug`."""

    def setup(self) -> None:
        super().setup()
        self.device_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.add_power("value_template")


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
        parse = number_parser(key, speeds.percent, keeps=True)
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

    def percent(self, raw: float) -> int:
        return clamped((raw - self.low + 1) * 100 // (self.high - self.low + 1))

    def raw(self, percent: int) -> int:
        return math.ceil(percent * (self.high - self.low + 1) / 100 + self.low - 1)


class Siren(OnOff):
    """A siren, with a boolean custom attribute. Setting the siren's tone, volume, or duration also switches the siren
    on."""

    def setup(self) -> None:
        super().setup()
        self.add_reader("state_topic", Siren._parse, "state_value_template", "value_template")
        self.add_offer(
            self.custom_key,
            ("set",),
            lambda self, command: self._write("on" if command.value else "off"),
            type="boolean",
        )
        if tones := self.config.texts("available_tones"):
            self._offer_extra("tone", type="enum", values=list(tones))
        if self._can_vary("support_duration", "duration"):
            self._offer_extra("duration", type="integer", min=0)
        if self._can_vary("support_volume_set", "volume_level"):
            self._offer_extra("volume_level", type="number", min=0, max=1)

    def _can_vary(self, key: str, variable: str) -> bool:
        """Return the flag `key`. If the flag is missing, return whether the command template contains the
        variable."""
        return self.config.flag(key, variable in self.config.text("command_template"))

    def _offer_extra(self, name: str, **schema: Value) -> None:
        key = f"custom.mqtt.{name}"
        self.more_attributes += (key,)
        self.add_offer(key, ("set",), lambda self, command: self._write("on", **{name: command.value}), **schema)

    def _parse(self, text: str) -> Update:
        """Parse a word, or `{"state": …, "tone": …}`."""
        more: dict[str, Value] = {}
        if text.startswith("{"):
            state = parse_object(text, "the state")
            more = {f"custom.mqtt.{key}": state[key] for key in ("tone", "duration", "volume_level") if key in state}
            text = str(state.get("state", ""))
        words = {state: action == "on" for state, action in self.states.items()}
        return {**more, **read_word(text, words, self.custom_key)}

    def _write(self, action: str, **extra: Value) -> Intent:
        """Return the payload for on or off, rendered by the command template, or as JSON with the additional
        values."""
        keys = ("command_template",) if action == "on" else ("command_off_template", "command_template")
        payload, template = self.payload(action), self.config.template(*keys)
        if template is None:
            payload = orjson.dumps({"state": payload, **extra}).decode()
        message = self.publish_with(template, "command_topic", payload, state=payload, **extra)
        shows = {self.custom_key: action == "on"} if "state_topic" in self.config else {}
        return Intent(messages=(message,), shows=shows)
