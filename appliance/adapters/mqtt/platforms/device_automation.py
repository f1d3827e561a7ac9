"""Triggers of device automations."""

from __future__ import annotations

from appliance.adapters.mqtt.platforms.entity import Entity, EntityEvent
from appliance.adapters.mqtt.platforms.event import event_of
from appliance.errors import Invalid


class TriggerEntity(Entity):
    """A trigger of a device automation: a payload at a topic. The event's name consists of type and subtype."""

    device_class = "button"
    reports_events = True

    def setup(self) -> None:
        words = [self.config.text(key) for key in ("type", "subtype")]
        name = "_".join(dict.fromkeys(each for each in words if each))
        if not name:
            raise Invalid("the entity has no type")
        event = event_of(name)
        self.event_names = (event.name,)
        self.expected = self.config.text("payload") if "payload" in self.config else None

        def parse(text: str) -> EntityEvent | None:
            is_pressed = bool(text) if self.expected is None else text == self.expected
            return event if is_pressed else None

        self.read("topic", parse, "value_template")
