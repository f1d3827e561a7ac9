"""Humidifiers."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import SWITCHED
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.numbers import number_parser, plain_number
from appliance.adapters.mqtt.platforms.payloads import WordParser
from appliance.adapters.mqtt.platforms.regulated import Regulated
from appliance.home.commands import Command


class Humidifier(Regulated):
    """A humidifier: power, a mode, a target, and its measurements."""

    def setup(self) -> None:
        words = {self.payload(power): power for power in ("on", "off")}
        self.add_reader("state_topic", WordParser(words, "power"), "state_value_template", reports=("power",))
        key, schema = "custom.mqtt.target_humidity", self.range_of("humidity", 0, 100)
        parse = self.or_reset("humidity", number_parser(key, plain_number))
        self.add_value(key, "target_humidity", parse, {"type": "number", "unit": "%", **schema}, step=1)
        self.add_current("humidity", "%")
        self.add_modes(self.config.texts("modes"))
        if self.can("command"):  # offer the power last, because the first offer represents the entity
            self.add_offer("power", SWITCHED, Humidifier._switch)
        self.claim_shown({"humidity": "current_humidity_topic", "power": "state_topic"})

    def _switch(self, command: Command) -> Intent:
        power = self.switched(command)
        return self.intent("command", self.payload(power), {"power": power})
