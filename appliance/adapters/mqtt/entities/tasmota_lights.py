"""Lights as Tasmota itself announces them: a command for each property, which also switches on."""

from __future__ import annotations

from appliance.adapters.mqtt.entities.base import Intent
from appliance.adapters.mqtt.entities.topic_lights import TopicLight
from appliance.adapters.mqtt.payloads import Outgoing
from appliance.home.commands import Command


class TasmotaLight(TopicLight):
    """A light of Tasmota's own discovery."""

    def write(self, command: Command) -> Intent:
        """The property's own command; hue and saturation are two."""
        if command.capability == "power" or command.value == 0:
            return super().write(command)
        if command.capability == "color_hs":
            base = self.config.text("hs_command_topic").removesuffix("HsbColor")
            messages = (
                Outgoing(f"{base}HsbColor1", str(command.value["hue"])),
                Outgoing(f"{base}HsbColor2", str(command.value["saturation"])),
            )
            return Intent(messages=messages, shows={"power": "on", "color_hs": command.value})
        message, shows = self._property(command)
        return Intent(messages=(message,), shows={"power": "on", **shows})
