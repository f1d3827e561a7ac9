"""Buttons and scenes."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity


class Button(Entity):
    """A button or a scene: nothing to read, one thing to do, which is done when it is sent."""

    def setup(self) -> None:
        is_button = self.announcement.component == "button"
        payload = self.config.text("payload_press", "PRESS") if is_button else self.payload("on")
        if self.can("command"):
            self.offer(self.custom, ("press",), lambda _: self.intent("command", payload))
