"""The inbox: what the broker sent and nobody has looked at yet; bounded, and the newest wins."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from appliance.clock import Clock

MAX_MESSAGES = 20_000
"""Messages that may wait."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Bytes of them."""

CROWDED = 1_000
"""From how many on a topic keeps only its newest state."""

BURST_SECS = 0.02
"""How long reading goes before understanding while messages keep coming: a reader that is slow loses some."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message as it came."""

    topic: str
    payload: bytes
    is_retained: bool


class Inbox:
    """Messages in the order in which they came. `dropped` counts those that made way for newer ones."""

    def __init__(self, clock: Clock) -> None:
        self.dropped = 0
        self._clock = clock
        self._waiting: OrderedDict[int, Received] = OrderedDict()
        self._latest: dict[str, int] = {}
        self._bytes = 0
        self._number = 0
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: Received) -> None:
        """Take in a message. Where many wait, it takes the place of an older one of its topic, or of the oldest."""
        self._number += 1
        if len(self._waiting) >= CROWDED and (older := self._latest.get(message.topic)) is not None:
            self._drop(older)
        self._waiting[self._number] = message
        self._latest[message.topic] = self._number
        self._bytes += len(message.payload)
        while len(self._waiting) > MAX_MESSAGES or self._bytes > MAX_WAITING_BYTES:
            self._drop(next(iter(self._waiting)))
        self._arrived.set()

    def clear(self) -> None:
        """Forget what waits: it came over a connection that is no more."""
        self._waiting.clear()
        self._latest.clear()
        self._bytes = 0
        self._arrived.clear()

    def take(self, limit: int) -> list[Received]:
        """The oldest messages, at most so many."""
        return [self._pop(next(iter(self._waiting))) for _ in range(min(limit, len(self._waiting)))]

    async def wait(self) -> None:
        """Return once messages wait and either no more are coming at this moment or they came long enough."""
        await self._arrived.wait()
        began, seen = self._clock.monotonic(), -1
        while self._number != seen and self._clock.monotonic() - began < BURST_SECS:
            seen = self._number
            await self._clock.sleep(0)

    def _drop(self, number: int) -> None:
        self._pop(number)
        self.dropped += 1

    def _pop(self, number: int) -> Received:
        message = self._waiting.pop(number)
        self._bytes -= len(message.payload)
        if self._latest.get(message.topic) == number:
            del self._latest[message.topic]
        if not self._waiting:
            self._arrived.clear()
        return message
