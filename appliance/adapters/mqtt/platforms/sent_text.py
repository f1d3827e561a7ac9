"""Components that take a text: notify and infrared."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Intent
from appliance.adapters.mqtt.platforms.input import Input
from appliance.home.commands import Command


class SentText(Input):
    """An entity that takes texts: messages to show, or infrared codes to send; a receiver of codes shows the last
    one."""

    device_class = None

    def set_value(self, command: Command) -> Intent:
        """Return the text; done when it is sent."""
        return self.intent("command", command.value)
