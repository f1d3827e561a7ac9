"""The availability of an entity: announced topics, and the words for available and not available."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from appliance.adapters.mqtt.fields import AnnouncedFields
from appliance.adapters.mqtt.messages import Message
from appliance.adapters.mqtt.platforms.payloads import UnknownWord, one_of, same_word
from appliance.adapters.mqtt.templates.template import Template


class AvailabilitySource(Struct, frozen=True, gc=False):
    """A filter, the template of its messages, and the words for available and not available."""

    filter: str
    template: Template | None
    words: Mapping[str, bool]


class Availability(Struct, gc=False):
    """The availability of one entity. An entity without availability topics is always available. An entity with
    availability topics is available only after a message."""

    sources: tuple[AvailabilitySource, ...]
    mode: str
    reported: dict[int, bool] = field(default_factory=dict)
    is_latest_available: bool = False

    def reads(self, filter_: str) -> bool:
        return any(each.filter == filter_ for each in self.sources)

    @property
    def is_available(self) -> bool:
        """Whether the entity is available according to the announced mode."""
        if not self.sources:
            return True
        if self.mode == "all":
            return len(self.reported) == len(self.sources) and all(self.reported.values())
        return any(self.reported.values()) if self.mode == "any" else self.is_latest_available

    @property
    def is_denied(self) -> bool:
        """Whether a message reported the entity unavailable. False before the first message."""
        return not self.is_available and not all(self.reported.values())

    def take(self, filter_: str, message: Message) -> None:
        """Process a message that matches a filter. Raise `TemplateFailed`, or `UnknownWord` if no source knows the
        word."""
        is_known, unknown = False, None
        for number, source in enumerate(self.sources):
            if source.filter == filter_:
                text = message.rendered(source.template)
                word = text if text in source.words else same_word(text, source.words)
                if word is not None:
                    is_known = True
                    self.reported[number] = self.is_latest_available = source.words[word]
                elif text:
                    unknown = UnknownWord(text, one_of(source.words), "state")
        if unknown is not None and not is_known:
            try:
                raise unknown
            finally:
                del unknown  # a variable that refers to a raised exception forms a cycle with its traceback


def announced_availability(config: AnnouncedFields, listed: Iterable[Mapping[str, Any]]) -> Availability:
    """Return the availability of an entity. `listed` contains the objects of the list `availability`."""
    return Availability(tuple(_sources(config, listed)), config.text("availability_mode", "latest").lower())


def _sources(config: AnnouncedFields, listed: Iterable[Mapping[str, Any]]) -> Iterator[AvailabilitySource]:
    ways = [(AnnouncedFields(each, config.problems), "topic", "value_template") for each in listed]
    for fields, key, template_key in (*ways, (config, "availability_topic", "availability_template")):
        if topic := fields.topic(key):
            not_available = fields.text("payload_not_available", "offline")
            words = {not_available: False, fields.text("payload_available", "online"): True}
            yield AvailabilitySource(topic, fields.template(template_key), words)
