"""Buttons and scenes."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.published import Fields, PublishedDevice, command_text


class Button(Entity):
    """A button or a scene. It shows no state. Its only command is complete when it is sent."""

    def setup(self) -> None:
        is_button = self.announcement.component == "button"
        payload = self.config.text("payload_press", "PRESS") if is_button else self.payload("on")
        if self.can("command"):
            self.offer(self.custom, ("press",), lambda _: self.intent("command", payload))


def announce(device: PublishedDevice, key: str) -> Fields | None:
    if key not in device.specs or "press" not in device.specs[key].actions:
        return None
    return {"command_topic": device.set_topic, "payload_press": command_text(key, "press")}
