"""Numbers, selections, texts, buttons and scenes: custom attributes that can be set or pressed; and updates."""

from __future__ import annotations

from typing import Any

from appliance.adapters.mqtt.entities.entity import (
    Entity,
    Intent,
    Offer,
    Update,
    is_unknown,
    parse_number,
    plain_number,
)
from appliance.adapters.mqtt.payloads import parse_json
from appliance.errors import Invalid
from appliance.home.commands import Command
from appliance.home.values import Value


class Input(Entity):
    """A value under the object's id that can be set. Sorts differ in schema and in what they read and write."""

    def setup(self) -> None:
        """Listen, and offer to set it if there is a topic for that."""
        self.read("state_topic", self.take, "value_template")
        if not self.readings and not self.can("command_topic", "command_template"):
            raise Invalid("has neither a state topic nor a command topic")
        self.use_custom()

    def use_custom(self, suffix: str = "") -> None:
        """Offer the attribute under its name."""
        self.offers.pop(self.custom, None)
        super().use_custom(suffix)
        if self.can("command_topic", "command_template"):
            self.offers[self.custom] = Offer(actions=("set",), schema=self.schema())

    def schema(self) -> dict[str, Value]:
        """What may be set."""
        return {"type": "string"}

    def take(self, text: str) -> Update:
        """The value that a text says."""
        return {self.custom: None if text == "None" else text[:1000]}

    def write(self, command: Command) -> Intent:
        """The value, through the template if there is one."""
        message = self.publish("command_topic", str(command.value), self.config.template("command_template"))
        return Intent(messages=(message,), shows={self.custom: command.value})


class Number(Input):
    """A number within a range."""

    def schema(self) -> dict[str, Value]:
        """The range; 1 to 100 in steps of 1 unless something else is announced."""
        bounds = (("min", "min", 1), ("max", "max", 100), ("step", "step", 1))
        schema: dict[str, Value] = {
            "type": "number",
            **{name: plain_number(self.config.number(key, usual)) for name, key, usual in bounds},
        }
        unit = self.config.text("unit_of_measurement")
        return {**schema, "unit": unit} if unit else schema

    def take(self, text: str) -> Update:
        """The number."""
        if text == self.config.text("payload_reset", "None") or is_unknown(text):
            return {self.custom: None}
        return {self.custom: plain_number(parse_number(text))} if text else {}

    def write(self, command: Command) -> Intent:
        """The number, without a point where it is whole."""
        value: Any = plain_number(command.value)
        template = self.config.template("command_template")
        message = self.publish("command_topic", str(value), template, value=value)
        return Intent(messages=(message,), shows={self.custom: value})


class Select(Input):
    """One of the announced options."""

    def setup(self) -> None:
        """Without options there is nothing to select."""
        if not self.config.texts("options"):
            raise Invalid("has no options")
        super().setup()

    def schema(self) -> dict[str, Value]:
        """The options."""
        return {"type": "enum", "values": list(self.config.texts("options"))}


class Text(Input):
    """A text of a length within a range."""

    def schema(self) -> dict[str, Value]:
        """The lengths."""
        return {
            "type": "string",
            "min_length": int(self.config.number("min", 0)),
            "max_length": int(self.config.number("max", 255)),
        }

    def write(self, command: Command) -> Intent:
        """The text; `Invalid` where it is too short or too long."""
        schema, length = self.schema(), len(command.value)
        if not schema["min_length"] <= length <= schema["max_length"]:
            wanted = f"{schema['min_length']} to {schema['max_length']}"
            raise Invalid(f"value of {self.custom}: must have {wanted} characters, not {length}")
        return super().write(command)


class Pressed(Entity):
    """A button or a scene: nothing to read, one thing to do."""

    def setup(self) -> None:
        """Offer to press it."""
        if not self.can("command_topic", "command_template"):
            raise Invalid("has no command topic")
        self.component_class = self.announcement.component
        self.use_custom()

    def use_custom(self, suffix: str = "") -> None:
        """Offer the attribute under its name."""
        self.offers.pop(self.custom, None)
        super().use_custom(suffix)
        self.offers[self.custom] = Offer(actions=("press",))

    def write(self, command: Command) -> Intent:
        """The payload of the button or scene; done when it is sent."""
        key, usual = ("payload_press", "PRESS") if self.announcement.component == "button" else ("payload_on", "ON")
        payload = self.config.text(key, usual)
        message = self.publish("command_topic", payload, self.config.template("command_template"))
        return Intent(messages=(message,))


class Firmware(Entity):
    """Whether there is a newer firmware; read only: `{installed, latest}`."""

    def setup(self) -> None:
        """Listen to both versions, which may come in one JSON object."""
        self._versions: dict[str, Value] = {}
        self.read("state_topic", self._take_installed, "value_template")
        self.read("latest_version_topic", self._take_latest, "latest_version_template")
        if not self.readings:
            raise Invalid("has no state topic")

    def _take_installed(self, text: str) -> Update:
        try:
            state = parse_json(text)
        except Invalid:
            state = text
        if isinstance(state, dict):
            return self._show(installed=state.get("installed_version"), latest=state.get("latest_version"))
        return self._show(installed=text)

    def _take_latest(self, text: str) -> Update:
        return self._show(latest=text)

    def _show(self, **versions: Value) -> Update:
        self._versions |= {
            name: str(version)[:100] for name, version in versions.items() if version not in (None, "", "None")
        }
        return {self.custom: dict(self._versions)} if self._versions else {}
