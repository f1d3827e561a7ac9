"""Limits the open connections of each client, and closes idle connections to make room for new ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from appliance.api.http_server.proxies import NO_PROXIES, TrustedProxies

MAX_EMPTY_CONNECTIONS = 600
"""Maximum number of a peer's recent connections without a request. Only a flood exceeds this number."""

EMPTY_CONNECTIONS_EXPIRED_PER_SEC = 300.0
"""A peer's count of connections without a request decreases by this number per second."""

MAX_SPARED_CONNECTIONS = 32
"""At full capacity, only a peer with more connections than this can lose a busy connection. A browser uses fewer."""


class Closable(Protocol):
    """A connection that can be closed to make room for a new one."""

    @property
    def is_idle(self) -> bool:
        """Return whether the connection is waiting for a request.

        WebSockets and connections with a request in progress are not idle.
        """

    def abort(self) -> None:
        """Close the connection at once and discard unsent data."""


class ConnectionLimiter:
    """Counts the open connections of each peer. A peer is an IP address. `refused` and `evicted` are counts since the
    hub's start.

    - `capacity`: the maximum number of connections of all peers.
    - `per_peer`: the maximum number of connections of one peer.
    - `now`: returns monotonic seconds.
    - `proxies`: peers without a limit. A connection of a proxy is counted for the client that sent the latest request
      over the connection.

    At full capacity, the peer with the most connections loses the connection that has been idle for the longest time.
    If its oldest connections are not idle, for example because the peer reads no answers, and the peer has more than
    `MAX_SPARED_CONNECTIONS`, it loses the least recently used one. If it may keep all, the same applies to the peer
    with the second most connections, and so on, because a flood may come from hundreds of addresses.

    If a peer with more than half of the capacity opens a connection, that connection is refused instead. A peer that
    repeatedly opens and closes connections without a request is also refused, because refusing a connection costs a
    tenth as much as serving a connection.
    """

    def __init__(
        self,
        capacity: int,
        per_peer: int,
        now: Callable[[], float],
        proxies: TrustedProxies = NO_PROXIES,
    ) -> None:
        self.proxies = proxies
        self._now = now
        self._expired_at = now()
        self._empty: dict[str, float] = {}
        self._without_request: set[Closable] = set()
        self.capacity = capacity
        self.refused = 0
        self.evicted = 0
        self._per_peer = per_peer
        self._open: dict[str, OrderedDict[Closable, None]] = {}
        self.count = 0

    def make_room(self, peer: str) -> str | None:
        """Make room for a connection of this peer, if necessary by closing an idle connection. If the peer must not
        open a connection, count the refusal, and return the reason."""
        refusal = self._make_room(peer, len(self._open.get(peer, ())))
        self.refused += refusal is not None
        return refusal

    def _make_room(self, peer: str, held: int) -> str | None:
        if not self.proxies.trusts(peer):
            if held >= self._per_peer:
                return f"{peer} has reached the limit for one address (api.max_connections_per_peer)"
            if self._count_empty(peer, 0) >= MAX_EMPTY_CONNECTIONS:
                return f"{peer} opened {MAX_EMPTY_CONNECTIONS} or more connections without a request"
        is_free = self.count < self.capacity or (held * 2 <= self.count and self._evict())
        return None if is_free else "the limit for all addresses is reached (api.max_connections)"

    def add(self, peer: str, connection: Closable) -> None:
        """Count a connection for which `make_room` has made room."""
        self._open.setdefault(peer, OrderedDict())[connection] = None
        self._without_request.add(connection)
        self.count += 1

    def refresh(self, peer: str, connection: Closable) -> None:
        """Mark the connection as the peer's most recently used connection. The most recently used connection is
        closed last."""
        self._without_request.discard(connection)
        held = self._open.get(peer)
        if held is not None and connection in held:
            held.move_to_end(connection)

    def hand_over(self, peer: str, client: str, connection: Closable) -> bool:
        """From now on, count the proxy's connection as a connection of the client. Return False if the client
        already has too many connections."""
        if peer == client or connection not in self._open.get(peer, ()):
            return True
        if len(self._open.get(client, ())) >= self._per_peer:
            self.refused += 1
            return False
        del self._open[peer][connection]
        if not self._open[peer]:
            del self._open[peer]
        self._open.setdefault(client, OrderedDict())[connection] = None
        return True

    def remove(self, peer: str, connection: Closable) -> None:
        """Stop counting the connection. Ignore unknown connections."""
        held = self._open.get(peer)
        if held is None or connection not in held:
            return
        del held[connection]
        self.count -= 1
        if connection in self._without_request:
            self._without_request.remove(connection)
            self._count_empty(peer, 1)
        if not held:
            del self._open[peer]

    def _count_empty(self, peer: str, more: int) -> float:
        """Add `more` to the peer's count of connections without a request. Return the current count."""
        now = self._now()
        expired = EMPTY_CONNECTIONS_EXPIRED_PER_SEC * (now - self._expired_at)
        if expired >= 1:
            self._expired_at = now
            self._empty = {each: count - expired for each, count in self._empty.items() if count > expired}
        if more:
            self._empty[peer] = self._empty.get(peer, 0) + more
        return self._empty.get(peer, 0)

    def figures(self) -> dict[str, int]:
        return {"open": self.count, "refused": self.refused, "evicted": self.evicted}

    def _evict(self) -> bool:
        """Close a connection to make room. Return False if no connection may be closed."""
        for peer in sorted(self._open, key=lambda each: len(self._open[each]), reverse=True):
            oldest = list(islice(self._open[peer], MAX_SPARED_CONNECTIONS + 1))
            is_spared = len(oldest) <= MAX_SPARED_CONNECTIONS
            connection = next((each for each in oldest if each.is_idle), None if is_spared else oldest[0])
            if connection is not None:
                self.remove(peer, connection)
                self.evicted += 1
                connection.abort()
                return True
        return False
