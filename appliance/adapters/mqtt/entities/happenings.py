"""Events and triggers: things that happen, never a state."""

from __future__ import annotations

from appliance.adapters.mqtt.entities.entity import Entity, Happening, Listening
from appliance.adapters.mqtt.payloads import parse_json
from appliance.errors import Invalid

MAX_EVENT_CHARS = 100
"""Characters of an event's name."""


class EventEntity(Entity):
    """An entity whose messages are happenings: JSON with `event_type`."""

    component_class = "button"

    def setup(self) -> None:
        """Listen."""
        topic = self.config.topic("state_topic")
        if topic is None:
            raise Invalid("has no state topic")
        self.listenings.append(Listening(topic, self.config.template("value_template"), self._take))

    def _take(self, text: str) -> Happening | None:
        if text == "":
            return None
        found = parse_json(text)
        if not isinstance(found, dict):
            raise Invalid("an event is no JSON object")
        name = found.pop("event_type", None)
        if not isinstance(name, str) or not name or name == "None":
            return None
        return Happening(name[:MAX_EVENT_CHARS], found)


class Trigger(Entity):
    """A trigger of a device automation: a payload at a topic."""

    component_class = "button"

    def setup(self) -> None:
        """Listen; the event's name is type and subtype."""
        topic = self.config.topic("topic")
        if topic is None:
            raise Invalid("has no topic")
        words = [self.config.text(key) for key in ("type", "subtype")]
        self._name = "_".join(each for each in words if each)[:MAX_EVENT_CHARS]
        if not self._name:
            raise Invalid("has no type")
        self.payload = self.config.text("payload") if "payload" in self.config else None
        self.listenings.append(Listening(topic, self.config.template("value_template"), self._take))

    def _take(self, text: str) -> Happening | None:
        if self.payload is None:
            return Happening(self._name, {}) if text else None
        return Happening(self._name, {}) if text == self.payload else None
