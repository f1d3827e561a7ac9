"""Base of switches, fans, and sirens, and the switch."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import SWITCHED, Entity
from appliance.adapters.mqtt.platforms.intent import Intent
from appliance.adapters.mqtt.platforms.payloads import WordParser
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
        self.add_reader("state_topic", WordParser(self.states, "power"), *templates, reports=("power",))
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
