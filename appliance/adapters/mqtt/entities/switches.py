"""Switches, locks, fans and sirens: what is on or off, locked or not."""

from __future__ import annotations

import math
from typing import Any

import orjson

from appliance.adapters.mqtt.entities.entity import SWITCHED, Entity, Intent, PayloadParser, Update, number_parser
from appliance.adapters.mqtt.payloads import parse_object
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class OnOff(Entity):
    """What switches, fans and sirens have in common: a topic to switch, and two payloads each way."""

    def setup(self) -> None:
        self.states: dict[str, Value] = {
            self.config.text(f"state_{state}", self.payload(state)): state for state in ("off", "on")
        }
        if not self.has_target("command_topic"):
            raise Invalid("has no command topic")

    def add_power(self, *templates: str) -> None:
        """Read the state, and offer to switch."""
        self.read("state_topic", self.words(self.states, "power"), *templates, shows=("power",))
        self.offer("power", SWITCHED, lambda command: self.switch(self.toggled(command.action)))
        self.claims = ("power",)

    def switch(self, action: str) -> Intent:
        """The payload for `on` or `off`, through the template if there is one."""
        return self.intent("command", self.payload(action), {"power": action})


class Switch(OnOff):
    """A switch or an outlet, which is a plug."""

    def setup(self) -> None:
        super().setup()
        self.device_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.add_power("value_template")


class LockEntity(Entity):
    """A lock; opening its latch is the action `open` of its custom attribute. One with a code asks for it."""

    def setup(self) -> None:
        self.need()
        states = ("locked", "unlocked", "jammed")
        words: dict[str, Value] = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        words.setdefault(self.config.text("state_open", "OPEN"), "unlocked")
        words.setdefault(self.config.text("payload_reset", "None"), None)
        self.read("state_topic", self.words(words, "lock"), "value_template")
        self.offer("lock", ("lock", "unlock"), self._write)
        if "payload_open" in self.config:
            self.offer(self.custom, ("open",), self._write)
        self.claims = ("lock",)

    def _write(self, command: Command) -> Intent:
        code = self.code_of(command) if "code_format" in self.config else ""
        shows = {"lock": f"{command.action}ed"} if command.action != "open" else {}
        return self.intent("command", self.payload(command.action), shows, code=code)


class Fan(OnOff):
    """A fan; its speed is `custom.mqtt.percentage`, its preset `preset_mode`. No speed switches it off."""

    def setup(self) -> None:
        super().setup()
        self._low, high = self.config.bounds("speed_range_min", "speed_range_max", 1, 100)
        self._speeds = high - self._low + 1
        self.add_power("state_value_template")
        self._add_speed()
        presets = self.config.texts("preset_modes")
        words = {self.config.text("payload_reset_preset_mode", "None"): None, **{each: each for each in presets}}
        schema: dict[str, Value] | None = {"values": list(presets)} if presets else None
        self._add("preset_mode", "preset_mode", self.words(words, "preset_mode"), schema)
        swings = {
            self.config.text(f"payload_oscillation_{word}", f"oscillate_{word}"): is_on
            for word, is_on in (("off", False), ("on", True))
        }
        payloads = {is_on: payload for payload, is_on in swings.items()}
        key = "custom.mqtt.oscillation"
        self._add(key, "oscillation", self.words(swings, key), {"type": "boolean"},
                  to_payload=payloads.__getitem__, to_shown=swings.__getitem__)  # fmt: skip
        key, ways = "custom.mqtt.direction", ["forward", "reverse"]
        parse = self.words({way: way for way in ways}, key)
        self._add(key, "direction", parse, {"type": "enum", "values": ways})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _add(self, key: str, name: str, parse: PayloadParser, schema: dict[str, Value] | None, **more: Any) -> None:
        self.add(key, name, parse, schema, templates=(f"{name}_value_template",), **more)

    def _add_speed(self) -> None:
        key, percent = "custom.mqtt.percentage", {"type": "percentage", "min": 0, "max": 100}
        reset = self.config.text("payload_reset_percentage", "None")
        parse = number_parser(key, self._percent, ignores_unknown=True)
        self._add(key, "percentage", lambda text: {key: None} if text == reset else parse(text), percent,
                  to_payload=self._raw, to_shown=self._percent)  # fmt: skip
        if (offer := self.offers.get(key)) is not None:
            write = offer.write
            self.offer(
                key, ("set",), lambda command: write(command) if command.value else self.switch("off"), **percent
            )

    def _percent(self, raw: float) -> int:
        return min(max(int((raw - self._low + 1) / self._speeds * 100), 0), 100)

    def _raw(self, percent: int) -> int:
        return math.ceil(percent / 100 * self._speeds + self._low - 1)


class Siren(OnOff):
    """A siren: a boolean custom attribute; tone, volume and duration switch it on with that."""

    def setup(self) -> None:
        super().setup()
        self.read("state_topic", self._parse, "state_value_template", "value_template")
        self.offer(self.custom, ("set",), lambda command: self._write("on" if command.value else "off"),
                   type="boolean")  # fmt: skip
        if tones := self.config.texts("available_tones"):
            self._offer_extra("tone", type="enum", values=list(tones))
        if self._can_vary("support_duration", "duration"):
            self._offer_extra("duration", type="integer", min=0)
        if self._can_vary("support_volume_set", "volume_level"):
            self._offer_extra("volume_level", type="number", min=0, max=1)

    def _can_vary(self, key: str, variable: str) -> bool:
        """Home Assistant takes them unless told otherwise; Lares where a template or the key speaks of them."""
        return self.config.flag(key, variable in self.config.text("command_template"))

    def _offer_extra(self, name: str, **schema: Value) -> None:
        key = f"custom.mqtt.{name}"
        self.more_keys += (key,)
        self.offer(key, ("set",), lambda command: self._write("on", **{name: command.value}), **schema)

    def _parse(self, text: str) -> Update:
        """A word, or `{"state": …, "tone": …}`."""
        more: dict[str, Value] = {}
        if text.startswith("{"):
            state = parse_object(text, "a state")
            more = {f"custom.mqtt.{key}": state[key] for key in ("tone", "duration", "volume_level") if key in state}
            text = str(state.get("state", ""))
        return {**more, **self.words({state: action == "on" for state, action in self.states.items()})(text)}

    def _write(self, action: str, **extra: Value) -> Intent:
        """The payload for on or off; each may have its template. Without one it is JSON, what varies with it."""
        keys = ("command_template",) if action == "on" else ("command_off_template", "command_template")
        payload, template = self.payload(action), self.config.template(*keys)
        if template is None:
            payload = orjson.dumps({"state": payload, **extra}).decode()
        message = self.publish_with(template, "command_topic", payload, state=payload, **extra)
        shows = {self.custom: action == "on"} if "state_topic" in self.config else {}
        return Intent(messages=(message,), shows=shows)
