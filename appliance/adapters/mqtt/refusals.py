"""The unusable announcements and messages of one broker, and the exceeded limits."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from appliance.adapters.mqtt.platforms.entity import Entity
from appliance.adapters.mqtt.platforms.payloads import UnknownWord
from appliance.adapters.mqtt.templates.template_limits import TemplateFailed
from appliance.errors import LaresError

MAX_REFUSED = 1_000
"""Number of recorded faults above which faults at further topics are not recorded, because any client can publish at
any number of topics."""

MAX_REPORTED_WORDS = 5
"""Maximum number of unknown words that are reported for one entity, one line each."""


class Refusal(Struct, frozen=True):
    """The reason why an announcement or message cannot be used.

    `attribute` is the affected attribute, or `announcement`.
    """

    device_id: str
    attribute: str
    reason: str


def reason_of(error: Exception) -> str:
    """Return the message of an error. For an unexpected error, include the name of its class."""
    if isinstance(error, TemplateFailed):
        return f"the template {error}"
    if isinstance(error, LaresError):
        return str(error)
    return f"cannot be read ({type(error).__name__}: {str(error)[:100]})"


class Refusals:
    """The unusable announcements and messages of one broker, and the exceeded limits.

    `by_key` maps a topic, the key of an entity, or such a key with an unknown word to the reason. `limits` has a
    sentence for each exceeded limit.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, Refusal] = {}
        self.limits: dict[str, str] = {}
        self._unknown_words: dict[str, set[str]] = {}  # by the entity's key
        self._crowded: dict[str, str] = {}  # by the device's id
        self._doubles: set[str] = set()

    def note_topic(self, topic: str, refusal: Refusal | None) -> bool:
        """Record why the last message at a topic is unusable. None means that the message is usable. Return whether
        the record changed."""
        former = self.by_key.get(topic)
        if former is None and len(self.by_key) >= MAX_REFUSED:
            return False
        if refusal is None:
            self.by_key.pop(topic, None)
        else:
            self.by_key[topic] = refusal
        return refusal != former

    def note_limit(self, kind: str, sentence: str | None) -> None:
        """Record that a limit of the broker is exceeded. None means that it is not exceeded."""
        if sentence is None:
            self.limits.pop(kind, None)
        else:
            self.limits[kind] = sentence

    def note_crowded(self, device_id: str, sentence: str | None) -> None:
        """Record that a device has too many entities. None means that the device fits, or is removed."""
        self._crowded.pop(device_id, None)
        if sentence is not None:
            self._crowded[device_id] = sentence
        self.note_limit("entities", next(iter(self._crowded.values()), None))

    def note_entity(self, key: str, refusal: Refusal) -> None:
        """Record why an entity cannot be used, instead of an earlier fault."""
        self.by_key[key] = refusal

    def note_message(self, device_id: str, entity: Entity, fault: Exception) -> None:
        """Record why a message could not be read, once per entity and once per unknown word."""
        key = entity.announcement.key
        if not isinstance(fault, UnknownWord):
            self.by_key.setdefault(key, Refusal(device_id, entity.main_attribute, reason_of(fault)))
        elif len(words := self._unknown_words.setdefault(key, set())) < MAX_REPORTED_WORDS:
            words.add(fault.text)
            self.by_key.setdefault(f"{key} {fault.text}", Refusal(device_id, fault.attribute, str(fault)))

    def note_doubles(self, doubles: Mapping[str, tuple[str, str]]) -> None:
        """Replace the records of ignored announcements. `doubles` maps the key of each ignored announcement to the
        announcement's topic, and to the topic that is used instead."""
        for key in self._doubles - doubles.keys():
            self.by_key.pop(key, None)
        for key, (topic, other) in doubles.items():
            reason = f"{other} has the same unique_id and takes precedence"
            self.by_key.setdefault(key, Refusal(topic, "announcement", reason))
        self._doubles = {*doubles}

    def forget_entity(self, key: str) -> None:
        """Forget the faults of an entity, because its announcement changed or was removed."""
        self.by_key.pop(key, None)
        for word in self._unknown_words.pop(key, ()):
            self.by_key.pop(f"{key} {word}", None)
