"""Events and triggers: what happens at a device, never a state."""

from __future__ import annotations

from appliance.adapters.mqtt.entities.entity import Entity, EntityEvent
from appliance.adapters.mqtt.payloads import parse_object
from appliance.errors import Invalid

MAX_EVENT_CHARS = 100
"""Characters of an event's name."""


class EventEntity(Entity):
    """An entity whose messages are events: JSON with `event_type`."""

    component_class = "button"
    reports_events = True

    def setup(self) -> None:
        """Read the state topic."""
        self.read("state_topic", self._parse, "value_template")

    def _parse(self, text: str) -> EntityEvent | None:
        if text == "":
            return None
        found = parse_object(text, "an event")
        name = found.pop("event_type", None)
        if not isinstance(name, str) or not name or name == "None":
            return None
        return EntityEvent(name[:MAX_EVENT_CHARS], found)


class TriggerEntity(Entity):
    """A trigger of a device automation: a payload at a topic."""

    component_class = "button"
    reports_events = True

    def setup(self) -> None:
        """Read the one topic; the event's name is type and subtype."""
        words = [self.config.text(key) for key in ("type", "subtype")]
        self._name = "_".join(each for each in words if each)[:MAX_EVENT_CHARS]
        if not self._name:
            raise Invalid("has no type")
        self.payload = self.config.text("payload") if "payload" in self.config else None
        self.read("topic", self._parse, "value_template")

    def _parse(self, text: str) -> EntityEvent | None:
        is_pressed = bool(text) if self.payload is None else text == self.payload
        return EntityEvent(self._name, {}) if is_pressed else None
