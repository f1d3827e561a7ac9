"""The availability of one entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from appliance.adapters.mqtt.fields import AnnouncedFields
from appliance.adapters.mqtt.messages import Message
from appliance.adapters.mqtt.templates.template import Template


class Availability:
    """The availability of one entity. Without availability topics, the entity is always available. With them, it is
    available only after a message."""

    def __init__(self, config: AnnouncedFields) -> None:
        self._entries = list(_entries(config))
        self.topics = frozenset(topic for topic, _, _ in self._entries)
        self._mode = config.text("availability_mode", "latest")
        self._reported: dict[int, bool] = {}
        self._latest = False

    @property
    def is_available(self) -> bool:
        """Whether the entity is available in the announced mode."""
        if not self._entries:
            return True
        if self._mode == "all":
            return len(self._reported) == len(self._entries) and all(self._reported.values())
        return any(self._reported.values()) if self._mode == "any" else self._latest

    @property
    def is_denied(self) -> bool:
        """Whether a message reported the entity unavailable. False if no message has arrived."""
        return not self.is_available and not all(self._reported.values())

    def take(self, filter_: str, message: Message) -> None:
        """Process a message that matches a filter. Raise `TemplateFailed`."""
        for number, (topic, given, words) in enumerate(self._entries):
            if topic == filter_ and (is_available := words.get(message.rendered(given))) is not None:
                self._reported[number] = self._latest = is_available


def _entries(config: AnnouncedFields) -> Iterator[tuple[str, Template | None, Mapping[str, bool]]]:
    """Yield each topic, the template of its messages, and a table from words to availability."""
    announced = config.raw.get("availability")
    listed = [AnnouncedFields(each, config.problems) for each in announced] if isinstance(announced, list) else []
    ways = [(each, "topic", "value_template") for each in listed]
    for fields, key, template_key in (*ways, (config, "availability_topic", "availability_template")):
        if topic := fields.topic(key):
            not_available = fields.text("payload_not_available", "offline")
            words = {not_available: False, fields.text("payload_available", "online"): True}
            yield topic, fields.template(template_key), words
