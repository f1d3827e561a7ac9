"""What every announced entity has: what it listens to, what that means, and what it can be told."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from appliance.adapters.mqtt.announced_fields import Fields, is_unreadable
from appliance.adapters.mqtt.announcements import Announcement
from appliance.adapters.mqtt.payloads import Message, Outgoing
from appliance.adapters.mqtt.templates.template import Template
from appliance.adapters.mqtt.topics import is_filter
from appliance.errors import Invalid, Unsupported
from appliance.home.commands import Command
from appliance.home.values import Value

Update = Mapping[str, Value]
"""New values by attribute; None: from now on unknown."""

UNKNOWN = ("none", "unknown", "unavailable", "nan", "inf", "-inf")
"""What announcers write, in any case, where they do not know a value."""


_EPOCH = datetime.fromtimestamp(0, UTC)
"""The instant that command templates take for now; none is known that asks."""


@dataclass(frozen=True, slots=True)
class StateTopic:
    """A topic to listen to, and what the text of its messages, as the template shows it, means."""

    topic: str
    template: Template | None
    take: Callable[[str], Update]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened at a device; no state."""

    event: str
    data: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Listening:
    """A topic whose messages are happenings; None: nothing happened."""

    topic: str
    template: Template | None
    take: Callable[[str], Happening | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a device can be told of one attribute: the actions, and what its values are narrowed to."""

    actions: tuple[str, ...]
    schema: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a command comes to: messages, and what the device shows once it is done; nothing: it is done when sent."""

    messages: tuple[Outgoing, ...]
    shows: Update = field(default_factory=dict)
    begins: Callable[[Mapping[str, Value]], bool] | None = None


class Entity:
    """One announced entity. `attributes` holds what is known; names are capabilities or `custom.mqtt.<field>`.

    `claims` are the capabilities that it would show; `is_light` and `device_class` tell what it makes of its device.
    """

    component_class = ""

    def __init__(self, announcement: Announcement) -> None:
        self.announcement = announcement
        self.config = Fields(announcement.config)
        self.readings: list[StateTopic] = []
        self.listenings: list[Listening] = []
        self.offers: dict[str, Offer] = {}
        self.attributes: dict[str, Value] = {}
        self.claims: tuple[str, ...] = ()
        self.custom = f"custom.mqtt.{announcement.object_id}"
        self.expire_after = self.config.number("expire_after", 0)
        self.off_delay = 0.0
        self.qos = min(max(int(self.config.number("qos", 0)), 0), 2)
        self.retains = self.config.flag("retain")
        self.setup()

    def setup(self) -> None:
        """Fill readings, offers and claims from the configuration; `Invalid` where nothing can be made of it."""

    @property
    def is_optimistic(self) -> bool:
        """Whether nobody will say that a command was done."""
        return self.config.flag("optimistic", not self.readings)

    @property
    def device_class(self) -> str:
        """What the device is called in a word, if this entity says so."""
        return self.component_class

    def use_custom(self, suffix: str = "") -> None:
        """Show what this entity shows under names of its own: the capability is another's."""
        self.custom += suffix

    def write(self, command: Command) -> Intent:
        """What to publish for a command that was offered; raises `Invalid` or `Unsupported`."""
        raise Unsupported(f"{command} is not offered")

    def read(self, key: str, take: Callable[[str], Update], *templates: str) -> None:
        """Listen to the topic that stands under a key, if one does, and to further ones under `_<key>s`."""
        if topic := self.config.topic(key):
            template = self.config.template(*templates)
            for each in dict.fromkeys((topic, *filter(is_filter, self.config.texts(f"_{key}s")))):
                self.readings.append(StateTopic(each, template, take))

    def publish(self, key: str, payload: str, template: Template | None = None, **names: Value) -> Outgoing:
        """The message for the topic that stands under a key, as a command template shows it."""
        topic = self.config.target(key)
        if topic is None or is_unreadable(template):
            raise Unsupported(f"{self.announcement.object_id} announces no sound {key}")
        if template is not None:
            payload = self._rendered(template, payload, names)
        return Outgoing(topic, payload, self.qos, self.retains)

    def can(self, key: str, *templates: str) -> bool:
        """Whether there is a topic under this key to publish to, and no template in the way that cannot be read."""
        return self.config.target(key) is not None and not is_unreadable(self.config.template(*templates))

    def _rendered(self, template: Template, payload: str, names: Mapping[str, Value]) -> str:
        from_payload: dict[str, Any] = {"value": payload, "entity_id": self.announcement.object_id}
        return template.render({**from_payload, **names}, _EPOCH)


def render(message: Message, reading: StateTopic | Listening) -> str:
    """The text that a reading sees of a message; raises `TemplateFailed`."""
    return message.rendered(reading.template, {"entity_id": "", "name": ""})


def is_unknown(text: str) -> bool:
    """Whether an announcer says by this that it does not know."""
    return text.lower() in UNKNOWN


def parse_number(text: str) -> int | float:
    """The number that a text says, whole if it is written so; `Invalid` for anything else."""
    try:
        value = float(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is no number") from None
    if not math.isfinite(value) or abs(value) > 1e18:
        raise Invalid(f"{text[:40]!r} is no number")
    return int(text) if text.strip().lstrip("+-").isdigit() else value


def plain_number(value: float) -> int | float:
    """The number without a point where it is whole, as announcers expect it."""
    return int(value) if value == int(value) else value


def scaled(value: float, low: float, high: float, *, to: tuple[float, float]) -> float:
    """Where the value lies between low and high, between the two others; low may be above high."""
    share = (value - low) / (high - low) if high != low else 0.0
    return to[0] + share * (to[1] - to[0])
