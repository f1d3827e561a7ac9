"""The hub's own retained messages: publishes changes, and restores messages that other clients overwrite."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable
from contextlib import suppress

from appliance.adapters.mqtt.broker import DISCONNECT_SECS, BrokerConnection
from appliance.adapters.mqtt.messages import Received, retained
from appliance.clock import Clock
from appliance.errors import Unreachable

MIN_REPUBLISH_SECS = 60.0
"""Minimum seconds before a topic is published again after another client has changed it."""

SETTLE_SECS = 1.0
"""Seconds that the broker takes at most to return messages that the hub published to a topic in quick succession."""

log = logging.getLogger("adapters")


class RetainedMessages:
    """The payloads that the hub has published on the current connection, by topic. `name` begins each log line."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._published: dict[str, str] = {}
        self._overwritten: dict[str, float] = {}  # topics that other clients changed, with the time of the change
        self._republished_at: dict[str, float] = {}
        self._unreported: list[str] = []  # restored topics since the last log line
        self._reported_at = -math.inf

    def clear(self) -> None:
        """Forget the messages of the previous connection."""
        self._overwritten.clear()
        self._published.clear()

    def note_published(self, topic: str, payload: str) -> None:
        """Record a retained message that was published otherwise."""
        self._published[topic] = payload

    async def publish(self, connection: BrokerConnection, topic: str, payload: str) -> None:
        """Publish a retained message unless the broker already has it. An empty payload deletes the message."""
        if self._published.get(topic, "") == payload:
            return
        if payload:
            self._published[topic] = payload
        else:
            self._published.pop(topic, None)
        await connection.publish(retained(topic, payload))

    def note_received(self, received: Received) -> bool:
        """If another client replaced a message of this run, record the topic. Return whether the message comes from
        an earlier run.

        The hub's own messages come back in order, so the last message at a topic is the retained message.
        """
        published = self._published.get(received.topic)
        if published is None:
            return received.is_retained and bool(received.payload)
        if received.payload == published.encode():
            self._overwritten.pop(received.topic, None)
        else:
            self._overwritten[received.topic] = self._clock.monotonic()
        return False

    @property
    def has_overwritten(self) -> bool:
        return bool(self._overwritten)

    async def restore_overwritten(self, connection: BrokerConnection) -> None:
        """Restore the messages that another client changed or cleared, at most once per minute for each topic."""
        now = self._clock.monotonic()
        recent = {topic: at for topic, at in self._republished_at.items() if now - at < MIN_REPUBLISH_SECS}
        self._republished_at = recent
        # If the hub publishes two messages to a topic in quick succession, the broker returns the first one before
        # the second one.
        due = [topic for topic, at in self._overwritten.items() if now - at >= SETTLE_SECS and topic not in recent]
        self._report([topic for topic in due if topic in self._published])
        for topic in due:
            del self._overwritten[topic]
            if (payload := self._published.get(topic)) is not None:
                recent[topic] = now
                await connection.publish(retained(topic, payload))

    def _report(self, topics: Iterable[str]) -> None:
        """Log that these topics are restored, in at most one line per minute, because there may be thousands."""
        self._unreported += topics
        if self._unreported and self._clock.monotonic() - self._reported_at >= MIN_REPUBLISH_SECS:
            log.warning(
                "%s: another client changed %d topics of the hub, such as %s; Lares restores them",
                *(self._name, len(self._unreported), self._unreported[0]),
            )
            self._unreported, self._reported_at = [], self._clock.monotonic()

    async def restore_at_end(self, connection: BrokerConnection) -> None:
        """Restore all messages that another client changed, within a time limit. Never raises for a lost
        connection."""
        topics = [each for each in self._overwritten if each in self._published]
        with suppress(Unreachable, TimeoutError):
            async with asyncio.timeout(DISCONNECT_SECS):
                for topic in topics:
                    await connection.publish(retained(topic, self._published[topic]))
                    del self._overwritten[topic]
        if left := sum(topic in self._overwritten for topic in topics):
            log.warning("%s: another client changed %d topics, which Lares could not restore", self._name, left)
