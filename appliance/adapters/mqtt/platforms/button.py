"""Buttons and scenes."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity


class Button(Entity):
    """A button or a scene, without a state. A command is complete when it is sent."""

    def setup(self) -> None:
        is_button = self.announcement.component == "button"
        payload = self.config.text("payload_press", "PRESS") if is_button else self.payload("on")
        if self.can("command"):
            self.add_offer(self.custom_key, ("press",), lambda self, _: self.intent("command", payload))
