"""Whether an entity is available, by its availability topics; and why an announcement was refused."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from appliance.adapters.mqtt.announced_fields import AnnouncedFields
from appliance.adapters.mqtt.payloads import Message
from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.errors import LaresError


class _AvailabilityTopic(Struct, frozen=True):
    topic: str
    template: Template | None
    available: str
    not_available: str


class Availability:
    """The availability of one entity. Without topics it is always available; with topics not before a message."""

    def __init__(self, config: AnnouncedFields) -> None:
        self._entries = list(_entries(config))
        self._mode = config.text("availability_mode", "latest")
        self._reported: dict[int, bool] = {}
        self._latest = False

    @property
    def topics(self) -> list[str]:
        """The topics to subscribe to."""
        return [entry.topic for entry in self._entries]

    @property
    def is_available(self) -> bool:
        """Whether the entity is available, by the announced mode."""
        if not self._entries:
            return True
        if self._mode == "all":
            return len(self._reported) == len(self._entries) and all(self._reported.values())
        return any(self._reported.values()) if self._mode == "any" else self._latest

    def take(self, filter_: str, message: Message) -> None:
        """Process a message that came for a topic; raises `TemplateFailed`."""
        for number, entry in enumerate(self._entries):
            if entry.topic == filter_:
                text = message.rendered(entry.template)
                if text in (entry.available, entry.not_available):
                    self._reported[number] = self._latest = text == entry.available


def _entries(config: AnnouncedFields) -> Iterator[_AvailabilityTopic]:
    announced = config.raw.get("availability")
    for each in announced if isinstance(announced, list) else []:
        fields = AnnouncedFields(each)
        fields.problems = config.problems
        if topic := fields.topic("topic"):
            yield _entry(fields, topic, "value_template")
    if topic := config.topic("availability_topic"):
        yield _entry(config, topic, "availability_template")


def _entry(fields: AnnouncedFields, topic: str, template: str) -> _AvailabilityTopic:
    available, not_available = (
        fields.text("payload_available", "online"),
        fields.text("payload_not_available", "offline"),
    )
    return _AvailabilityTopic(topic, fields.template(template), available, not_available)


class Refusal(Struct, frozen=True):
    """Why an announcement or message was not used. `attribute` is what it would have shown, else `announcement`."""

    device_id: str
    attribute: str
    reason: str


def reason_of(error: Exception) -> str:
    """The sentence of an error; of an unforeseen one what it is."""
    if isinstance(error, LaresError | TemplateFailed):
        return str(error)
    return f"cannot be read ({type(error).__name__}: {str(error)[:100]})"
