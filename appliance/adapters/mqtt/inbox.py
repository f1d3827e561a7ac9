"""The bounded queue of received messages."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from msgspec import Struct

MAX_MESSAGES = 60_000

MAX_WAITING_BYTES = 64 * 1024 * 1024

ENTRY_BYTES = 250
"""Memory of a message in bytes, in addition to its topic and payload."""

CROWDED = 1_000
"""Number of waiting messages above which each topic keeps only its newest message."""


class Received(Struct, frozen=True):
    """A received message before decoding and checks."""

    topic: str
    payload: bytes
    is_retained: bool

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return len(self.payload) + 2 * len(self.topic) + ENTRY_BYTES


class Inbox:
    """Messages in the order of arrival. `dropped` counts the messages that were replaced by newer ones."""

    def __init__(self) -> None:
        self.dropped = 0
        self._waiting: OrderedDict[int, Received] = OrderedDict()
        self._latest: dict[str, int] = {}
        self._bytes = 0
        self._number = 0
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: Received) -> None:
        """Add a message. If too many messages wait, remove an older message of the same topic, or the oldest message
        of all."""
        self._number += 1
        if len(self._waiting) >= CROWDED and (older := self._latest.get(message.topic)) is not None:
            self._drop(older)
        self._waiting[self._number] = message
        self._latest[message.topic] = self._number
        self._bytes += message.size
        while len(self._waiting) > MAX_MESSAGES or self._bytes > MAX_WAITING_BYTES:
            self._drop(next(iter(self._waiting)))
        self._arrived.set()

    def clear(self) -> None:
        """Discard all messages without counting them."""
        self._waiting = OrderedDict()
        self._latest = {}
        self._bytes = 0
        self._arrived.clear()

    def take(self, limit: int) -> list[Received]:
        """Remove and return the oldest messages, at most `limit`."""
        return [self._pop(next(iter(self._waiting))) for _ in range(min(limit, len(self._waiting)))]

    async def wait(self) -> None:
        """Wait until a message arrives."""
        await self._arrived.wait()

    def _drop(self, number: int) -> None:
        self._pop(number)
        self.dropped += 1

    def _pop(self, number: int) -> Received:
        message = self._waiting.pop(number)
        self._bytes -= message.size
        if self._latest.get(message.topic) == number:
            del self._latest[message.topic]
        if not self._waiting:
            self.clear()  # an emptied dictionary would keep the memory of its former entries
        return message
