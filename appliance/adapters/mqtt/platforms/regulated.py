"""Base of components with a measurement, a target, and modes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from appliance.adapters.mqtt.platforms.entity import Entity, PayloadParser
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import measured, number_parser, plain_number
from appliance.adapters.mqtt.platforms.payloads import Update, shown_word
from appliance.home.commands import Command
from appliance.home.values import Value

USUAL_STEPS = {"°C": 0.5, "°F": 1}
"""The steps of a target temperature without an announced step, by unit."""


class Regulated(Entity):
    """An entity with a measurement, a target, and modes, each with its own topics."""

    def setup(self) -> None:
        self.unit = self.announcement.unit

    @property
    def temperature_step(self) -> float:
        """The announced step of the target temperature, or the usual step."""
        step = self.config.number("temp_step", 0)
        return step if step > 0 else USUAL_STEPS[self.unit]

    def add_power(self) -> None:
        """Offer commands to switch the device on and off. The device does not report its power."""
        if self.can("power_command"):
            self.add_offer("power", ("on", "off"), Regulated._write_power)

    def _write_power(self, command: Command) -> Intent:
        return self.intent("power_command", self.payload(command.action))

    def add_temperature(self, schema: Mapping[str, Value]) -> None:
        """Read the target temperature, and offer to set it, in the announced unit."""
        key, measure = "target_temperature", partial(measured, "target_temperature", unit=self.unit)
        self.add_value(key, "temperature", number_parser(key, measure), {"unit": self.unit, **schema},
                 to_shown=measure, step=self.temperature_step,
                 to_payload=lambda value: plain_number(value["value"]))  # fmt: skip

    def range_of(self, name: str, low: float, high: float) -> dict[str, Value]:
        """Return the announced range of a target, `min_<name>` to `max_<name>`, or the default."""
        low, high = self.config.bounds(f"min_{name}", f"max_{name}", low, high)
        return {"min": plain_number(low), "max": plain_number(high)}

    def add_modes(self, modes: tuple[str, ...]) -> None:
        """Read the mode and the current action. If modes are announced, offer to set the mode."""
        key, action = "custom.mqtt.mode", "custom.mqtt.action"
        parse = self.or_reset("mode", text_parser(key, modes))
        self.add_value(key, "mode", parse, {"type": "enum", "values": list(modes)} if modes else None)
        parse = self.or_reset("action", text_parser(action, ()))
        self.add_reader("action_topic", parse, "action_template", "value_template", reports=(action,))

    def add_current(self, name: str, unit: str) -> None:
        parse = self.or_reset(name, number_parser(name, lambda number: measured(name, number, unit)))
        self.add_reader(f"current_{name}_topic", parse, f"current_{name}_template", "value_template", reports=(name,))

    def or_reset(self, name: str, parse: PayloadParser) -> PayloadParser:
        """Return a parser that also treats `payload_reset_<name>` as an unknown value."""
        reset = self.config.text(f"payload_reset_{name}", "None")
        return lambda entity, text: parse(entity, "None" if text == reset else text)

    def claim_shown(self, topics: Mapping[str, str]) -> None:
        """Claim the attributes that have commands or an announced topic."""
        shown = (attribute for attribute, topic in topics.items() if topic in self.config)
        self.claims = tuple(dict.fromkeys((*self.offers, *shown)))


def text_parser(attribute: str, options: tuple[str, ...]) -> PayloadParser:
    """Return a parser of words that need not be announced."""

    def parse(_: Entity, text: str) -> Update:
        return {attribute: shown_word(text, options)} if text else {}

    return parse
