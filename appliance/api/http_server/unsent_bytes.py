"""Limits the bytes that clients have not read yet."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

MAX_SHARE = 4
"""A client counts for at most this fraction of the limit, so that a backup does not use all of it."""

GRACE_SECS = 0.1
"""Seconds in which clients can read after the limit is exceeded. One event can fill the memory at once, before any
client could read."""

MAX_FACTOR_IN_GRACE = 2
"""At this multiple of the limit, the slowest clients are disconnected without `GRACE_SECS`."""

log = logging.getLogger("api")


class SlowClient(Protocol):
    """A connection whose client reads more slowly than the hub sends."""

    peer: str

    def late_secs(self) -> float:
        """Return how late the client is, compared with a client that reads at `FAIR_BYTES_PER_SEC`."""

    def abort(self) -> None:
        """Close the connection at once and discard unsent data."""


class UnsentBytes:
    """Counts the unsent bytes of all clients that read too slowly. Beyond `max_bytes`, the slowest clients are
    disconnected after `GRACE_SECS`."""

    def __init__(self, max_bytes: int) -> None:
        self.held = 0
        self._max_bytes = max_bytes
        self._max_per_client = max_bytes // MAX_SHARE
        self._held: dict[SlowClient, int] = {}
        self._is_check_due = False

    def hold(self, client: SlowClient, size: int) -> None:
        """Count this number of bytes for the client. If the limit is still exceeded after `GRACE_SECS`, disconnect
        the slowest clients. If twice the limit would be exceeded, disconnect the slowest other clients at once."""
        self.release(client)
        counted = min(size, self._max_per_client)
        self._disconnect_slowest(MAX_FACTOR_IN_GRACE * self._max_bytes - counted)
        self._held[client] = counted
        self.held += counted
        if self.held > self._max_bytes and not self._is_check_due:
            self._is_check_due = True
            asyncio.get_running_loop().call_later(GRACE_SECS, self._end_grace)

    def _end_grace(self) -> None:
        self._is_check_due = False
        self._disconnect_slowest(self._max_bytes)

    def _disconnect_slowest(self, max_bytes: int) -> None:
        """Disconnect the slowest clients until all clients together hold at most this number of bytes."""
        while self.held > max_bytes:
            slowest = max(self._held, key=_late_secs)
            self.release(slowest)
            log.info(
                "closed the connection of %s, which read most slowly while unsent answers used all of their memory",
                slowest.peer,
            )
            slowest.abort()

    def release(self, client: SlowClient) -> None:
        self.held -= self._held.pop(client, 0)


def _late_secs(client: SlowClient) -> float:
    return client.late_secs()
