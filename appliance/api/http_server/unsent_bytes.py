"""Limits the bytes that clients have not read yet."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from appliance.api.byte_budget import ByteBudget

MAX_SHARE = 4
"""A client counts for at most this fraction of the limit, so that a backup does not use all of it."""

GRACE_SECS = 0.1
"""Seconds in which clients can read after the limit is exceeded. One event can fill the memory at once, before any
client could read."""

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
    soon disconnected."""

    def __init__(self, max_bytes: int) -> None:
        self._budget = ByteBudget(max_bytes)
        self._max_per_client = max_bytes // MAX_SHARE
        self._held: dict[SlowClient, int] = {}
        self._is_check_due = False

    @property
    def held(self) -> int:
        return self._budget.held

    def hold(self, client: SlowClient, size: int) -> None:
        """Count this number of bytes for the client. If the limit is still exceeded after `GRACE_SECS`, disconnect
        the slowest clients."""
        self.release(client)
        self._held[client] = counted = min(size, self._max_per_client)
        self._budget.held += counted
        if self._budget.is_exceeded and not self._is_check_due:
            self._is_check_due = True
            asyncio.get_running_loop().call_later(GRACE_SECS, self._disconnect_slowest)

    def _disconnect_slowest(self) -> None:
        self._is_check_due = False
        while self._budget.is_exceeded:
            slowest = max(self._held, key=_late_secs)
            self.release(slowest)
            log.info(
                "closed the connection of %s, which read most slowly while unsent answers used all of their memory",
                slowest.peer,
            )
            slowest.abort()

    def release(self, client: SlowClient) -> None:
        self._budget.held -= self._held.pop(client, 0)


def _late_secs(client: SlowClient) -> float:
    return client.late_secs()
