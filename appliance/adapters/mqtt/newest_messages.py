"""The newest message of each topic. A device that is announced again gets its state from these messages."""

from __future__ import annotations

from appliance.adapters.mqtt.inbox import Received

MAX_REMEMBERED_BYTES = 16 * 1024 * 1024
"""Maximum total size of the stored messages."""


class NewestMessages:
    """The newest message of each topic. Beyond the limit, the oldest messages are forgotten."""

    def __init__(self) -> None:
        self._by_topic: dict[str, Received] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._by_topic)

    def list(self) -> list[Received]:
        """Return the messages in the order of arrival."""
        return [*self._by_topic.values()]

    def add(self, received: Received) -> None:
        older = self._by_topic.pop(received.topic, None)
        self._bytes += received.size - (0 if older is None else older.size)
        self._by_topic[received.topic] = received
        while self._bytes > MAX_REMEMBERED_BYTES:
            oldest = next(iter(self._by_topic))
            self._bytes -= self._by_topic.pop(oldest).size
