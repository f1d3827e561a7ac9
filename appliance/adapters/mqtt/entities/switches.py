"""Switches, locks, fans and sirens: what is on or off, locked or not."""

from __future__ import annotations

import math
from typing import Any

from appliance.adapters.mqtt.entities.entity import Entity, Intent, Offer, Update, is_unknown, parse_number
from appliance.errors import Invalid
from appliance.home.commands import Command


class OnOff(Entity):
    """What switches, fans and sirens have in common: a topic to switch, and two texts each way."""

    def setup(self) -> None:
        """Read the payloads; without a command topic there is no such thing."""
        self._on, self._off = self.config.text("payload_on", "ON"), self.config.text("payload_off", "OFF")
        self._shows_on = self.config.text("state_on", self._on)
        self._shows_off = self.config.text("state_off", self._off)
        if not self.can("command_topic"):
            raise Invalid("has no command topic")

    def action_of(self, command: Command) -> str:
        """`on` or `off`; a toggle is decided from what is shown."""
        if command.action == "toggle":
            return "off" if self.attributes.get("power") == "on" else "on"
        return command.action

    def take_power(self, text: str) -> Update:
        """Whether it is on."""
        if text == self._shows_on:
            return {"power": "on"}
        if text == self._shows_off:
            return {"power": "off"}
        return {"power": None} if text == "None" else {}


class Switch(OnOff):
    """A switch or an outlet."""

    def setup(self) -> None:
        """Offer power."""
        super().setup()
        self.component_class = "plug" if self.config.text("device_class") == "outlet" else "switch"
        self.read("state_topic", self.take_power, "value_template")
        self.offers["power"] = Offer(actions=("on", "off", "toggle"))
        self.claims = ("power",)

    def write(self, command: Command) -> Intent:
        """The payload for on or off, through the template if there is one."""
        action = self.action_of(command)
        payload = self._on if action == "on" else self._off
        message = self.publish("command_topic", payload, self.config.template("command_template"))
        return Intent(messages=(message,), shows={"power": action})


class LockEntity(Entity):
    """A lock."""

    component_class = "lock"

    def setup(self) -> None:
        """Offer lock and unlock. One that asks for a code with each command can only be read."""
        if not self.can("command_topic", "command_template"):
            raise Invalid("has no command topic")
        self._states = {
            self.config.text("state_locked", "LOCKED"): "locked",
            self.config.text("state_unlocked", "UNLOCKED"): "unlocked",
            self.config.text("state_jammed", "JAMMED"): "jammed",
        }
        self.read("state_topic", self._take, "value_template")
        if "code_format" in self.config:
            self.config.problems.append("asks for a code with each command, which Lares does not have")
        else:
            self.offers["lock"] = Offer(actions=("lock", "unlock"))
        self.claims = ("lock",)

    def _take(self, text: str) -> Update:
        if text == "None":
            return {"lock": None}
        return {"lock": self._states[text]} if text in self._states else {}

    def write(self, command: Command) -> Intent:
        """The payload for lock or unlock."""
        payload = self.config.text(f"payload_{command.action}", command.action.upper())
        message = self.publish("command_topic", payload, self.config.template("command_template"))
        return Intent(messages=(message,), shows={"lock": f"{command.action}ed"})


class Fan(OnOff):
    """A fan; its speed is `custom.mqtt.percentage`, its preset `preset_mode`."""

    component_class = "fan"

    def setup(self) -> None:
        """Offer power, and speed and presets where they are announced."""
        super().setup()
        self._low = self.config.number("speed_range_min", 1)
        self._speeds = max(self.config.number("speed_range_max", 100) - self._low + 1, 1)
        self._presets = self.config.texts("preset_modes")
        self.read("state_topic", self.take_power, "state_value_template")
        self.read("percentage_state_topic", self._take_speed, "percentage_value_template")
        self.read("preset_mode_state_topic", self._take_preset, "preset_mode_value_template")
        self.offers["power"] = Offer(actions=("on", "off", "toggle"))
        if self.can("percentage_command_topic", "percentage_command_template"):
            self.offers["custom.mqtt.percentage"] = Offer(
                actions=("set",), schema={"type": "percentage", "min": 0, "max": 100}
            )
        if self._presets and self.can("preset_mode_command_topic", "preset_mode_command_template"):
            self.offers["preset_mode"] = Offer(actions=("set",), schema={"values": list(self._presets)})
        self.claims = ("power", "preset_mode") if "preset_mode" in self.offers else ("power",)

    def _take_speed(self, text: str) -> Update:
        if text == "" or is_unknown(text):
            return {"custom.mqtt.percentage": None} if text == "None" else {}
        share = (parse_number(text) - self._low + 1) / self._speeds
        return {"custom.mqtt.percentage": min(max(int(share * 100), 0), 100)}

    def _take_preset(self, text: str) -> Update:
        if text == "None":
            return {"preset_mode": None}
        return {"preset_mode": text} if text in self._presets else {}

    def write(self, command: Command) -> Intent:
        """The message of the property."""
        if command.capability == "preset_mode":
            template = self.config.template("preset_mode_command_template")
            message = self.publish("preset_mode_command_topic", str(command.value), template)
            return Intent(messages=(message,), shows={"preset_mode": command.value})
        if command.capability != "power" and command.value:
            return self._speed(float(command.value))
        action = self.action_of(command) if command.capability == "power" else "off"
        payload = self._on if action == "on" else self._off
        message = self.publish("command_topic", payload, self.config.template("command_template"))
        return Intent(messages=(message,), shows={"power": action})

    def _speed(self, percent: float) -> Intent:
        raw = math.ceil(percent / 100 * self._speeds + self._low - 1)
        message = self.publish(
            "percentage_command_topic", str(raw), self.config.template("percentage_command_template"), value=raw
        )
        return Intent(messages=(message,), shows=self._take_speed(str(raw)))


class Siren(OnOff):
    """A siren: a boolean custom attribute."""

    component_class = "siren"

    def setup(self) -> None:
        """Offer on and off as true and false."""
        super().setup()
        self.read("state_topic", self._take, "state_value_template", "value_template")
        self.use_custom()

    def use_custom(self, suffix: str = "") -> None:
        """Offer the attribute under its name."""
        self.offers.pop(self.custom, None)
        super().use_custom(suffix)
        self.offers[self.custom] = Offer(actions=("set",), schema={"type": "boolean"})

    def _take(self, text: str) -> Update:
        power = self.take_power(text).get("power", ...)
        return {} if power is ... else {self.custom: None if power is None else power == "on"}

    def write(self, command: Command) -> Intent:
        """The payload for on or off; each may have its template."""
        is_on = bool(command.value)
        keys = ("command_template",) if is_on else ("command_off_template", "command_template")
        payload: Any = self._on if is_on else self._off
        message = self.publish("command_topic", payload, self.config.template(*keys), state=payload)
        return Intent(messages=(message,), shows={self.custom: is_on})
