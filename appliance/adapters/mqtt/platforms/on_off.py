"""Base of switch, fan, and siren."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import SWITCHED, Entity, Intent
from appliance.errors import Invalid
from appliance.home.values import Value


class OnOff(Entity):
    """Base of switches, fans, and sirens: a command topic, and separate payloads for command and state."""

    def setup(self) -> None:
        self.states: dict[str, Value] = {
            self.config.text(f"state_{state}", self.payload(state)): state for state in ("off", "on")
        }
        self.states |= dict.fromkeys(self.config.texts("_states_on"), "on")
        if not self.has_target("command_topic"):
            raise Invalid("the entity has no command topic")

    def add_power(self, *templates: str) -> None:
        """Read the power, and offer to switch it."""
        self.read("state_topic", self.words(self.states, "power"), *templates, shows=("power",))
        self.offer("power", SWITCHED, lambda command: self.switch(self.switched(command)))
        self.claims = ("power",)

    def switch(self, action: str) -> Intent:
        """Return the payload for `on` or `off`, rendered by the template if there is one."""
        return self.intent("command", self.payload(action), {"power": action})
