"""The inbox, bounded: messages that were received and not yet processed; and whose may take how much time."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from appliance.clock import Clock

MAX_MESSAGES = 60_000
"""Messages that may wait."""

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Bytes of them."""

ENTRY_BYTES = 250
"""Bytes that a message takes beside its topic and payload."""

CROWDED = 1_000
"""Number of waiting messages from which a topic keeps only its newest one."""


class Received(Struct, frozen=True):
    """A received message, neither decoded nor checked."""

    topic: str
    payload: bytes
    is_retained: bool

    @property
    def size(self) -> int:
        """The bytes that it takes in memory, about."""
        return len(self.payload) + 2 * len(self.topic) + ENTRY_BYTES


class Inbox:
    """Messages in the order in which they came. `dropped` counts those that newer ones replaced."""

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
        """Add a message. Where many wait, it replaces an older one of its topic, or the oldest."""
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
        """Drop all messages without counting them: their connection is gone."""
        self._waiting.clear()
        self._latest.clear()
        self._bytes = 0
        self._arrived.clear()

    def take(self, limit: int) -> list[Received]:
        """Remove and return the oldest messages, at most `limit`."""
        return [self._pop(next(iter(self._waiting))) for _ in range(min(limit, len(self._waiting)))]

    async def wait(self) -> None:
        """Return once messages wait."""
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
            self._arrived.clear()
        return message


MAX_SHARE = 0.1
"""Share of the time that the messages of one announced device may take in the long run."""

MAX_BURST_SECS = 0.1
"""Seconds that they may take at once before that counts."""

MAX_SHARE_OF_ALL = 0.4
"""Share of the time that the messages of all those together may take who take much."""

LITTLE_SECS = 0.001
"""Seconds up to which somebody takes little."""

RECOUNT_SECS = 0.05
"""Seconds spent, or ten times as many passed, after which those who take much are counted anew."""


MAX_COSTS = 20_000
"""Announcers of whom it is remembered what their latest work took."""


class TimeShares:
    """Measures the processor's time that is spent for each announcer, and says who has had its share.

    What is spent is forgotten at the rate of the share, and more than the burst beyond that is too much. Where many
    take much, they divide `MAX_SHARE_OF_ALL` among them; while they have had that, whoever is not known to take
    little waits with them. So whoever is known to take little is never late because of them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}
        self._portion = 1.0
        self._counted_at = -math.inf
        self._spent_since = 0.0
        self._costs: dict[str, float] = {}
        self._much = (0.0, 0.0)

    def is_crowded_out(self, announcer: str) -> bool:
        """Whether those who take much have had all their time, and an announcer is not known to take little."""
        return self._level_of_all() > MAX_BURST_SECS and self._costs.get(announcer, math.inf) > LITTLE_SECS

    def is_over(self, announcer: str) -> bool:
        """Whether the messages of an announcer have to wait."""
        return self._level(announcer) > MAX_BURST_SECS * self._portion

    @contextmanager
    def spending(self, announcer: str) -> Iterator[None]:
        """Count the time of this thread in the block as spent for an announcer."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.spend(announcer, time.thread_time() - began)

    def counting(self, announcer: str, work: Iterator[None]) -> Iterator[None]:
        """Do the work, its steps as they are, and count their time as spent for an announcer."""
        while True:
            with self.spending(announcer):
                if next(work, self) is self:
                    return
            yield

    def spend(self, announcer: str, secs: float) -> None:
        """Count so many seconds as spent for an announcer."""
        self._spent[announcer] = (self._level(announcer) + secs, self._clock.monotonic())
        self._spent_since += secs
        self._costs[announcer] = secs
        if secs > LITTLE_SECS:
            self._much = (self._level_of_all() + secs, self._clock.monotonic())
        if self._spent_since > RECOUNT_SECS:
            self._recount()

    def forget_idle(self) -> None:
        """Forget those of whom nothing is left to remember."""
        self._spent = {name: spent for name, spent in self._spent.items() if self._level(name) > 0}
        if len(self._costs) > MAX_COSTS:
            self._costs.clear()
        if self._portion < 1 and self._clock.monotonic() - self._counted_at > 10 * RECOUNT_SECS:
            self._recount()

    def _recount(self) -> None:
        """Find what portion of a whole share everybody has now."""
        self._spent = {name: (self._level(name), self._clock.monotonic()) for name in self._spent}
        busy = sum(level > LITTLE_SECS for level, _ in self._spent.values())
        self._portion = min(1.0, MAX_SHARE_OF_ALL / MAX_SHARE / max(busy, 1))
        self._counted_at, self._spent_since = self._clock.monotonic(), 0.0

    def _level_of_all(self) -> float:
        level, at = self._much
        return max(level - MAX_SHARE_OF_ALL * (self._clock.monotonic() - at), 0.0)

    def _level(self, announcer: str) -> float:
        level, at = self._spent.get(announcer, (0.0, 0.0))
        forgotten = MAX_SHARE * self._portion * (self._clock.monotonic() - at)
        return max(level - forgotten, 0.0) if level else 0.0
