"""Switches, locks, fans and sirens: what is on or off, locked or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from appliance.adapters.mqtt.entities.entity import (
    SWITCHABLE,
    Entity,
    Intent,
    Offer,
    PayloadParser,
    Update,
    number_parser,
    word_parser,
)
from appliance.adapters.mqtt.payloads import Outgoing, parse_object
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class OnOff(Entity):
    """What switches, fans and sirens have in common: a topic to switch, and two payloads each way."""

    def setup(self) -> None:
        """Read the payloads; raises `Invalid` without a command topic."""
        self._payloads = {"on": self.config.text("payload_on", "ON"), "off": self.config.text("payload_off", "OFF")}
        self.states: dict[str, Value] = {
            self.config.text(f"state_{state}", self._payloads[state]): state for state in ("off", "on")
        }
        if not self.has_target("command_topic"):
            raise Invalid("has no command topic")

    def switch(self, action: str) -> Outgoing:
        """The payload for `on` or `off`, through the template if there is one."""
        return self.publish("command", self._payloads[action])


class Switch(OnOff):
    """A switch or an outlet."""

    def setup(self) -> None:
        """Read the state and offer power; the device class is `plug` for an outlet."""
        super().setup()
        self.component_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.read("state_topic", word_parser("power", self.states), "value_template")
        self.offers["power"] = SWITCHABLE
        self.claims = ("power",)

    def write(self, command: Command) -> Intent:
        """The payload for on or off."""
        action = self.toggled(command.action)
        return Intent(messages=(self.switch(action),), shows={"power": action})


class LockEntity(Entity):
    """A lock; opening its latch is the action `open` of its custom attribute. One with a code asks for it."""

    component_class = "lock"

    def setup(self) -> None:
        """Read the state; offer lock and unlock, and open where that is announced."""
        if not self.can("command"):
            raise Invalid("has no command topic")
        states = ("locked", "unlocked", "jammed")
        words: dict[str, Value] = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        words.setdefault(self.config.text("state_open", "OPEN"), "unlocked")
        words.setdefault(self.config.text("payload_reset", "None"), None)
        self.read("state_topic", word_parser("lock", words), "value_template")
        self.offers["lock"] = Offer(actions=("lock", "unlock"))
        if "payload_open" in self.config:
            self.offers[self.custom] = Offer(actions=("open",))
        self.claims = ("lock",)

    def write(self, command: Command) -> Intent:
        """The payload for lock, unlock or open, with the code where one is announced."""
        code = self.code_of(command) if "code_format" in self.config else ""
        payload = self.config.text(f"payload_{command.action}", command.action.upper())
        message = self.publish("command", payload, code=code)
        return Intent(messages=(message,), shows={"lock": f"{command.action}ed"} if command.action != "open" else {})


class Fan(OnOff):
    """A fan; its speed is `custom.mqtt.percentage`, its preset `preset_mode`."""

    component_class = "fan"
    more_keys = ("custom.mqtt.percentage", "preset_mode", "custom.mqtt.oscillation", "custom.mqtt.direction")
    confirmed_by: Mapping[str, tuple[str, ...]] = {"power": ("state_topic",)}

    def setup(self) -> None:
        """Offer power, and what else is announced."""
        super().setup()
        self._low, high = self.config.bounds("speed_range_min", "speed_range_max", 1, 100)
        self._speeds = high - self._low + 1
        self.read("state_topic", word_parser("power", self.states), "state_value_template")
        self.offers["power"] = SWITCHABLE
        presets = self.config.texts("preset_modes")
        swings = {
            self.config.text(f"payload_oscillation_{word}", f"oscillate_{word}"): is_on
            for word, is_on in (("off", False), ("on", True))
        }
        payloads = {is_on: payload for payload, is_on in swings.items()}
        percent: Mapping[str, Value] = {"type": "percentage", "min": 0, "max": 100}
        self._add("percentage", self._parse_speed, percent, to_payload=self._raw, to_shown=self._percent)
        reset = {self.config.text("payload_reset_preset_mode", "None"): None}
        words = {**reset, **{preset: preset for preset in presets}}
        self._add("preset_mode", word_parser("preset_mode", words), {"values": list(presets)} if presets else None)
        parse, kind = word_parser("custom.mqtt.oscillation", swings), {"type": "boolean"}
        self._add("oscillation", parse, kind, to_payload=payloads.__getitem__, to_shown=swings.__getitem__)
        ways = ["forward", "reverse"]
        parse = word_parser("custom.mqtt.direction", {way: way for way in ways})
        self._add("direction", parse, {"type": "enum", "values": ways})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _add(self, name: str, parse: PayloadParser, schema: Mapping[str, Any] | None, **convert: Any) -> None:
        attribute = name if name == "preset_mode" else f"custom.mqtt.{name}"
        self.add(attribute, name, parse, schema, templates=(f"{name}_value_template",), **convert)

    def _parse_speed(self, text: str) -> Update:
        if text == self.config.text("payload_reset_percentage", "None"):
            return {"custom.mqtt.percentage": None}
        return number_parser("custom.mqtt.percentage", self._percent, ignores_unknown=True)(text)

    def _percent(self, raw: float) -> int:
        return min(max(int((raw - self._low + 1) / self._speeds * 100), 0), 100)

    def _raw(self, percent: int) -> int:
        return math.ceil(percent / 100 * self._speeds + self._low - 1)

    def write(self, command: Command) -> Intent:
        """The message of the property; no speed switches off."""
        is_speed = command.capability == "custom.mqtt.percentage"
        if command.capability != "power" and (command.value or not is_speed):
            return self.set_property(command)
        action = self.toggled(command.action) if command.capability == "power" else "off"
        return Intent(messages=(self.switch(action),), shows={"power": action})


class Siren(OnOff):
    """A siren: a boolean custom attribute; tone, volume and duration switch it on with that."""

    component_class = "siren"

    def setup(self) -> None:
        """Offer on and off as true and false, and what it can vary."""
        super().setup()
        self._extras: dict[str, Offer] = {}
        if tones := self.config.texts("available_tones"):
            self._extras["tone"] = Offer(actions=("set",), schema={"type": "enum", "values": list(tones)})
        if self._extras_allowed("support_duration"):
            self._extras["duration"] = Offer(actions=("set",), schema={"type": "integer", "min": 0})
        if self._extras_allowed("support_volume_set"):
            self._extras["volume_level"] = Offer(actions=("set",), schema={"type": "number", "min": 0, "max": 1})
        self.more_keys = tuple(f"custom.mqtt.{name}" for name in self._extras)
        self.read("state_topic", self._parse, "state_value_template", "value_template")
        self.use_custom()

    def _extras_allowed(self, key: str) -> bool:
        """Home Assistant takes them unless told otherwise; Lares where a template or the key speaks of them."""
        variable = key.removeprefix("support_").replace("volume_set", "volume_level")
        return self.config.flag(key, variable in self.config.text("command_template"))

    def use_custom(self, suffix: str = "") -> None:
        """Offer what it can vary beside on and off."""
        super().use_custom(suffix)
        self.offers |= {f"custom.mqtt.{name}": offer for name, offer in self._extras.items()}

    @property
    def custom_offer(self) -> Offer:
        """The values true and false."""
        return Offer(actions=("set",), schema={"type": "boolean"})

    def _parse(self, text: str) -> Update:
        """A word, or `{"state": …, "tone": …}`."""
        more: dict[str, Value] = {}
        if text.startswith("{"):
            state = parse_object(text, "a state")
            more = {f"custom.mqtt.{key}": state[key] for key in ("tone", "duration", "volume_level") if key in state}
            text = str(state.get("state", ""))
        words = {state: action == "on" for state, action in self.states.items()}
        return {**more, **word_parser(self.custom, words)(text)}

    def write(self, command: Command) -> Intent:
        """The payload for on or off; each may have its template. Without one it is JSON, what varies with it."""
        name = command.capability.rpartition(".")[2]
        extra: dict[str, Value] = {name: command.value} if command.capability != self.custom else {}
        action = "on" if extra or command.value else "off"
        keys = ("command_template",) if action == "on" else ("command_off_template", "command_template")
        payload, template = self._payloads[action], self.config.template(*keys)
        if template is None:
            payload = orjson.dumps({"state": payload, **extra}).decode()
        message = self.publish_with(template, "command_topic", payload, state=payload, **extra)
        shows = {self.custom: action == "on"} if "state_topic" in self.config else {}
        return Intent(messages=(message,), shows=shows)
