"""Base of components with one value that can be set."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, Intent, Update
from appliance.home.commands import Command
from appliance.home.values import Value


class Input(Entity):
    """A text under the object id. It can be set if there is a command topic."""

    device_class: str | None = ""

    def setup(self) -> None:
        self.read("state_topic", self.parse, "value_template")
        if self.can("command"):
            self.offer(self.custom, ("set",), self.set_value, **self.schema())

    def schema(self) -> dict[str, Value]:
        """Return the type and range of the accepted values."""
        return {"type": "string"}

    def parse(self, text: str) -> Update:
        """Return the value of a message. A text is cut after 1,000 characters."""
        is_null = text == "None" and "value_template" in self.config and text not in self.config.texts("options")
        return {self.custom: None if is_null else text[:1000]}

    def set_value(self, command: Command) -> Intent:
        """Return the value's payload, rendered by the template if there is one. Raise `Invalid`."""
        return self.intent("command", command.value, {self.custom: command.value})
