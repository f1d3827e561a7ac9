"""Switches, locks, fans and sirens: what is on or off, locked or not."""

from __future__ import annotations

import math

from appliance.adapters.mqtt.entities.entity import (
    SWITCHABLE,
    Entity,
    Intent,
    Offer,
    Update,
    is_unknown,
    number_parser,
    word_parser,
)
from appliance.adapters.mqtt.payloads import Outgoing
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
    """A lock. One that asks for a code with each command can only be read: a command of Lares has none."""

    component_class = "lock"

    def setup(self) -> None:
        """Read the state; offer lock and unlock unless a code is needed."""
        if not self.can("command"):
            raise Invalid("has no command topic")
        states = ("locked", "unlocked", "jammed")
        words = {self.config.text(f"state_{state}", state.upper()): state for state in states}
        self.read("state_topic", word_parser("lock", words), "value_template")
        if "code_format" in self.config:
            self.config.problems.append("asks for a code with each command, which Lares does not have")
        else:
            self.offers["lock"] = Offer(actions=("lock", "unlock"))
        self.claims = ("lock",)

    def write(self, command: Command) -> Intent:
        """The payload for lock or unlock."""
        payload = self.config.text(f"payload_{command.action}", command.action.upper())
        return Intent(messages=(self.publish("command", payload),), shows={"lock": f"{command.action}ed"})


class Fan(OnOff):
    """A fan; its speed is `custom.mqtt.percentage`, its preset `preset_mode`."""

    component_class = "fan"

    def setup(self) -> None:
        """Offer power, and speed and presets where they are announced."""
        super().setup()
        self._low = self.config.number("speed_range_min", 1)
        self._speeds = max(self.config.number("speed_range_max", 100) - self._low + 1, 1)
        presets = self.config.texts("preset_modes")
        self.read("state_topic", word_parser("power", self.states), "state_value_template")
        self.read("percentage_state_topic", self._parse_speed, "percentage_value_template")
        parse_preset = word_parser("preset_mode", {preset: preset for preset in presets})
        self.read("preset_mode_state_topic", parse_preset, "preset_mode_value_template")
        self.offers["power"] = SWITCHABLE
        if self.can("percentage_command"):
            percent: dict[str, Value] = {"type": "percentage", "min": 0, "max": 100}
            self.offers["custom.mqtt.percentage"] = Offer(actions=("set",), schema=percent)
        if presets and self.can("preset_mode_command"):
            self.offers["preset_mode"] = Offer(actions=("set",), schema={"values": list(presets)})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _parse_speed(self, text: str) -> Update:
        if is_unknown(text) and text != "None":
            return {}
        return number_parser("custom.mqtt.percentage", self._percent)(text)

    def _percent(self, raw: float) -> int:
        return min(max(int((raw - self._low + 1) / self._speeds * 100), 0), 100)

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        if command.capability == "preset_mode":
            message = self.publish("preset_mode_command", command.value)
            return Intent(messages=(message,), shows={"preset_mode": command.value})
        if command.capability != "power" and command.value:
            raw = math.ceil(command.value / 100 * self._speeds + self._low - 1)
            message = self.publish("percentage_command", raw, value=raw)
            return Intent(messages=(message,), shows={"custom.mqtt.percentage": self._percent(raw)})
        action = self.toggled(command.action) if command.capability == "power" else "off"
        return Intent(messages=(self.switch(action),), shows={"power": action})


class Siren(OnOff):
    """A siren: a boolean custom attribute."""

    component_class = "siren"

    def setup(self) -> None:
        """Offer on and off as true and false."""
        super().setup()
        self.read("state_topic", self._parse, "state_value_template", "value_template")
        self.use_custom()

    @property
    def custom_offer(self) -> Offer:
        """The values true and false."""
        return Offer(actions=("set",), schema={"type": "boolean"})

    def _parse(self, text: str) -> Update:
        return word_parser(self.custom, {state: action == "on" for state, action in self.states.items()})(text)

    def write(self, command: Command) -> Intent:
        """The payload for on or off; each may have its template."""
        action = "on" if command.value else "off"
        keys = ("command_template",) if command.value else ("command_off_template", "command_template")
        payload = self._payloads[action]
        message = self.publish_with(self.config.template(*keys), "command_topic", payload, state=payload)
        return Intent(messages=(message,), shows={self.custom: bool(command.value)})
