"""Components that send a text: notify and infrared."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Intent
from appliance.adapters.mqtt.platforms.input import Input
from appliance.home.commands import Command


class SentText(Input):
    """An entity that accepts texts: messages to display, or infrared codes to send. A receiver of codes shows the
    last code."""

    device_class = None

    def set_value(self, command: Command) -> Intent:
        """Return the message. The command is complete when it is sent."""
        return self.intent("command", command.value)
