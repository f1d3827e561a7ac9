"""Components that report presses and other events."""

from __future__ import annotations

from collections.abc import Mapping

from appliance.adapters.mqtt.messages import parse_object
from appliance.adapters.mqtt.platforms.entity import Entity, EntityEvent
from appliance.adapters.mqtt.platforms.payloads import UnknownWord, is_unknown, one_of, same_word
from appliance.adapters.mqtt.presses import press_name
from appliance.errors import Invalid
from appliance.home.values import Value

MAX_EVENT_CHARS = 100


def event_of(raw: str, data: Mapping[str, Value] | None = None) -> EntityEvent:
    """Convert an announced word to an event. The event's data contain the original word as `raw`."""
    return EntityEvent(press_name(raw)[:MAX_EVENT_CHARS], {"raw": raw[:MAX_EVENT_CHARS], **(data or {})})


class EventEntity(Entity):
    """An entity whose messages are JSON events with `event_type`.

    If the device has several such entities, the data of each event contain the entity's object id as `entity`.
    """

    device_class = "button"
    reports_events = True
    _source: Mapping[str, Value] = {}

    def setup(self) -> None:
        self.add_reader("state_topic", type(self).parse, "value_template")
        self._types = self.config.texts("event_types")
        self.event_names = tuple(event_of(each).name for each in self._types)

    def parse(self, text: str) -> EntityEvent | None:
        found = parse_object(text, "the event") if text else {}
        name = found.pop("event_type", None)
        if not isinstance(name, str) or not name or name == "None":
            return None
        if self._types and name not in self._types:
            if (word := same_word(name, self._types)) is None:
                raise UnknownWord(name, one_of(self._types), self.custom_key)
            name = word
        return event_of(name, {**self._source, **found})

    def add_source(self) -> None:
        """Add the object id to the data of each event, to distinguish the event entities of one device."""
        self._source = {"entity": self.announcement.object_id}


class ActionSensor(EventEntity):
    """A sensor `action` whose texts are presses, as Zigbee2MQTT announces it for older clients."""

    def parse(self, text: str) -> EntityEvent | None:
        return event_of(text, self._source) if text and not is_unknown(text) else None


class TriggerEntity(Entity):
    """A trigger of a device automation: a payload at a topic. The event's name combines type and subtype."""

    device_class = "button"
    reports_events = True

    def setup(self) -> None:
        words = [self.config.text(key) for key in ("type", "subtype")]
        name = "_".join(dict.fromkeys(each for each in words if each))
        if not name:
            raise Invalid("the entity has no type")
        self._event = event_of(name)
        self.event_names = (self._event.name,)
        self.expected = self.config.text("payload") if "payload" in self.config else None
        self.add_reader("topic", TriggerEntity.parse, "value_template")

    def parse(self, text: str) -> EntityEvent | None:
        is_pressed = bool(text) if self.expected is None else text == self.expected
        return self._event if is_pressed else None


class Tag(Entity):
    """A tag reader. Each scan is an event with the name `tag`. The field `tag` of its data is the tag's text."""

    reports_events = True
    event_names = ("tag",)

    def setup(self) -> None:
        self.add_reader("topic", Tag.parse, "value_template")

    def parse(self, text: str) -> EntityEvent | None:
        return EntityEvent("tag", {"tag": text[:1000]}) if text and not is_unknown(text) else None
