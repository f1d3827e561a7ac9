"""Limits the bytes that clients have not read yet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Protocol

from msgspec import Struct

MAX_SHARE = 4
"""A body, and the other bytes of a client, count for at most this fraction of the limit each, so that a backup does
not use all of it."""

GRACE_SECS = 0.1
"""Seconds in which clients can read after the limit is exceeded. One event can fill the memory at once, before any
client could read."""

MAX_FACTOR_IN_GRACE = 2
"""At this multiple of the limit, the slowest clients are disconnected without `GRACE_SECS`."""

MAX_BUILT_AT_ONCE = 4
"""Number of large answers that the hub builds at the same time, because these are not counted yet. The same number
of slow answers is built at the same time."""

log = logging.getLogger("api")


class SlowClient(Protocol):
    """A connection whose client reads more slowly than the hub sends."""

    peer: str

    def late_secs(self) -> float:
        """Return how late the client is, compared with a client that reads at `FAIR_BYTES_PER_SEC`."""

    def abort(self) -> None:
        """Close the connection at once and discard unsent data."""


class _Body(Struct):
    """A body that several clients may share, its counted size, and the number of clients that have not read it."""

    body: bytes
    size: int
    clients: int = 0


class UnsentBytes:
    """Counts the bytes that clients have not read. A body that several clients share counts once. Beyond `max_bytes`,
    the slowest clients are disconnected after `GRACE_SECS`."""

    def __init__(self, max_bytes: int) -> None:
        self.held = 0
        self._max_bytes = max_bytes
        self._max_share = max_bytes // MAX_SHARE
        self._held: dict[SlowClient, tuple[int, _Body]] = {}
        self._bodies: dict[int, _Body] = {}
        self._is_check_due = False
        self._building, self._building_slowly = (asyncio.Semaphore(MAX_BUILT_AT_ONCE) for _ in range(2))
        self._has_room = asyncio.Event()

    @asynccontextmanager
    async def room_for_answer(self, *, is_slow: bool = False) -> AsyncIterator[None]:
        """Build a large answer in this context. Wait until few other large answers are being built, and until the
        limit has room for the answer. Slow answers take the place only of other slow answers."""
        async with self._building_slowly if is_slow else self._building:
            await self._wait_for_room()
            yield

    async def _wait_for_room(self) -> None:
        """Wait until the limit has room for an answer, at most for `GRACE_SECS`. Then disconnect silent clients, but
        no others."""
        max_bytes = self._max_bytes - self._max_share
        try:
            async with asyncio.timeout(GRACE_SECS):
                while self.held > max_bytes:
                    self._has_room.clear()
                    await self._has_room.wait()
        except TimeoutError:
            self._disconnect_slowest(max_bytes, min_late_secs=GRACE_SECS)

    def hold(self, client: SlowClient, size: int, body: bytes = b"") -> None:
        """Count this number of bytes and the body for the client. If the limit is still exceeded after `GRACE_SECS`,
        disconnect the slowest clients. If twice the limit would be exceeded, disconnect the slowest other clients at
        once."""
        self.release(client)
        shared = self._bodies.setdefault(id(body), _Body(body, min(len(body), self._max_share)))
        if not shared.clients:
            self.held += shared.size
        shared.clients += 1
        counted = min(size, self._max_share)
        self._disconnect_slowest(MAX_FACTOR_IN_GRACE * self._max_bytes - counted)
        self._held[client] = counted, shared
        self.held += counted
        if self.held > self._max_bytes and not self._is_check_due:
            self._is_check_due = True
            asyncio.get_running_loop().call_later(GRACE_SECS, self._end_grace)

    def _end_grace(self) -> None:
        self._is_check_due = False
        self._disconnect_slowest(self._max_bytes)

    def _disconnect_slowest(self, max_bytes: int, min_late_secs: float = -inf) -> None:
        """Disconnect the slowest clients until all clients together hold at most this number of bytes. Keep clients
        that are less than `min_late_secs` late."""
        while self._held and self.held > max_bytes:
            slowest = max(self._held, key=_late_secs)
            if slowest.late_secs() < min_late_secs:
                return
            self.release(slowest)
            log.info(
                "closed the connection of %s, which read most slowly while unsent answers used all of their memory",
                slowest.peer,
            )
            slowest.abort()

    def release(self, client: SlowClient) -> None:
        if client not in self._held:
            return
        counted, shared = self._held.pop(client)
        shared.clients -= 1
        if not shared.clients:
            del self._bodies[id(shared.body)]
            counted += shared.size
        self.held -= counted
        self._has_room.set()


def _late_secs(client: SlowClient) -> float:
    return client.late_secs()
