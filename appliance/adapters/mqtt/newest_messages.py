"""The newest message of each topic. A device that is announced again gets its state from these messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from appliance.adapters.mqtt.hub_states import HUB_STATE, HUB_STATUS, parse_version
from appliance.adapters.mqtt.messages import Message, Received
from appliance.adapters.mqtt.topic_filters import is_wild, matches

MAX_REMEMBERED_BYTES = 6 * 1024 * 1024
"""Maximum total size of the stored messages."""

MAX_SMALL_BYTES = 1024
"""Maximum size of a small message. Larger messages are forgotten first, and small messages about the availability of
devices last, because a bridge often sends its state only once."""

MAX_INEXACT = 1_000
"""Maximum number of stored messages at topics that match only filters with wildcards, or no filter. Any client can
publish to any number of these topics, and each stored message may keep a whole page of memory in use."""

MAX_UNREAD = 100
"""Maximum number of stored messages at topics that no device reads. After each rebuild of devices, older messages are
forgotten."""

MAX_VERSIONS = 10_000
"""Maximum number of remembered versions of states."""


class NewestMessages:
    """The newest message of each topic, and the newest version of each state of another hub.

    Beyond the limits, the oldest messages above `MAX_SMALL_BYTES`, then the oldest others, then the oldest about
    availability, and all versions are forgotten. Beyond `MAX_INEXACT`, the oldest of these messages is forgotten.
    """

    def __init__(self) -> None:
        self._by_topic: dict[str, Received] = {}
        self._large: dict[str, None] = {}  # topics of messages above `MAX_SMALL_BYTES`
        self._small: dict[str, None] = {}
        self._availability: dict[str, None] = {}  # topics of small messages about availability
        self._inexact: dict[str, None] = {}  # topics that no filter names exactly
        self._bytes = 0
        self._versions: dict[str, tuple[int, int]] = {}
        self._outdated: dict[str, set[str]] = {}  # keys of entities by topic

    def __len__(self) -> int:
        return len(self._by_topic)

    def __contains__(self, topic: str) -> bool:
        return topic in self._by_topic

    def list(self) -> list[Received]:
        """Return the messages in the order of arrival."""
        return [*self._by_topic.values()]

    def end_for(self, key: str, filters: Collection[str]) -> None:
        """Record that the present messages at these filters are outdated for the entity with this key."""
        topics = {each for each in filters if each in self._by_topic}
        for levels in (each.split("/") for each in filters if is_wild(each)):
            topics.update(topic for topic in self._by_topic if matches(levels, topic.split("/")))
        for topic in topics:
            self._outdated.setdefault(topic, set()).add(key)

    def is_outdated_for(self, key: str, topic: str) -> bool:
        return key in self._outdated.get(topic, ())

    def add(self, received: Received, *, is_availability: bool = False, is_exact: bool = True) -> Collection[str]:
        """Store a message. `is_exact` is whether a filter is the message's topic. Return the topics of
        forgotten messages."""
        self._remove(received.topic)
        self._bytes += received.size
        self._by_topic[received.topic] = received
        small = self._availability if is_availability else self._small
        (self._large if received.size > MAX_SMALL_BYTES else small)[received.topic] = None
        if not is_exact:
            self._inexact[received.topic] = None
        forgotten: list[str] = []
        if len(self._inexact) > MAX_INEXACT:
            forgotten.append(next(iter(self._inexact)))
            self._remove(forgotten[-1])
        while self._bytes > MAX_REMEMBERED_BYTES:
            forgotten.append(next(iter(self._large or self._small or self._availability)))
            self._remove(forgotten[-1])
        return forgotten

    def forget(self, topics: Iterable[str]) -> Iterator[None]:
        """Forget these topics in steps, and release the memory of their entries."""
        for topic in topics:
            self._remove(topic)
            self._versions.pop(topic, None)
            yield
        # a dictionary shrinks only when it is copied
        self._by_topic, self._small = dict(self._by_topic), dict(self._small)

    def _remove(self, topic: str) -> None:
        if (received := self._by_topic.pop(topic, None)) is not None:
            self._bytes -= received.size
            for topics in (self._large, self._small, self._availability, self._inexact):
                topics.pop(topic, None)
        self._outdated.pop(topic, None)

    def is_outdated(self, message: Message) -> bool:
        """Return whether a newer state of the other hub's device has already arrived. A cluster of brokers can
        deliver states in the wrong order."""
        if (status := HUB_STATUS.fullmatch(message.topic)) is not None:
            if message.text == "online" and not message.is_retained:
                self._end_run(status[1])
            return False
        if HUB_STATE.fullmatch(message.topic) is None or not message.text:
            return False
        version, known = parse_version(message.text), self._versions.get(message.topic)
        if version is None:
            return False
        if known is not None and version < known:
            return True
        if len(self._versions) >= MAX_VERSIONS:
            self._versions.clear()
        self._versions[message.topic] = version
        return False

    def _end_run(self, prefix: str) -> None:
        """Forget the versions of a hub that connects again. Its clock may have been set back, or its store lost."""
        kept = {topic: version for topic, version in self._versions.items() if not topic.startswith(prefix)}
        self._versions = kept
