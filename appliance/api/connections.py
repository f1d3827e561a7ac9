"""Which connections are open, who may have another one, and which idle one is closed for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

MAX_BARREN = 600
"""Connections of one peer that may end without a request, more than are forgiven; more come only from a flood."""

FORGIVEN_PER_SEC = 300.0
"""How many of them are forgotten in a second."""


class Closable(Protocol):
    """A connection, as far as it matters whether it can be closed for another one."""

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request; a WebSocket, or a request that is being answered, is not idle."""

    def abort(self) -> None:
        """Close it at once."""


class Connections:
    """Counts the open connections of each peer, an IP address. `refused` and `evicted` count since the start.

    `capacity` is how many there may be in all, `per_peer` how many of one peer. Where all places are taken, the peer
    that has the most loses its connection that has been idle longest: to a newcomer, but not to one of a peer that
    has more than half of all places itself. A peer that opens and closes connections without asking for anything is
    turned away while it goes on, which costs a tenth of serving it. `now` tells seconds.
    """

    def __init__(self, capacity: int, per_peer: int, now: Callable[[], float]) -> None:
        self._now = now
        self._forgave_at = now()
        self._barren: dict[str, float] = {}
        self._unasked: set[Closable] = set()
        self.capacity = capacity
        self.refused = 0
        self.evicted = 0
        self._per_peer = per_peer
        self._open: dict[str, OrderedDict[Closable, None]] = {}
        self.count = 0

    def make_room(self, peer: str) -> bool:
        """Whether this peer may have one more connection, for which an idle one may have been closed."""
        held = len(self._open.get(peer, ()))
        may_come = held < self._per_peer and self._count_barren(peer, 0) < MAX_BARREN
        if may_come and (self.count < self.capacity or (held * 2 <= self.count and self._evict())):
            return True
        self.refused += 1
        return False

    def add(self, peer: str, connection: Closable) -> None:
        """Count the connection, which `make_room` was asked for."""
        self._open.setdefault(peer, OrderedDict())[connection] = None
        self._unasked.add(connection)
        self.count += 1

    def refresh(self, peer: str, connection: Closable) -> None:
        """Note that a request came: of its peer's connections this one is now the last to be closed."""
        self._unasked.discard(connection)
        held = self._open.get(peer)
        if held is not None and connection in held:
            held.move_to_end(connection)

    def remove(self, peer: str, connection: Closable) -> None:
        """Count the connection no more; one that is not counted is passed over."""
        held = self._open.get(peer)
        if held is None or connection not in held:
            return
        del held[connection]
        self.count -= 1
        if connection in self._unasked:
            self._unasked.remove(connection)
            self._count_barren(peer, 1)
        if not held:
            del self._open[peer]

    def _count_barren(self, peer: str, more: int) -> float:
        """Count so many more of the peer's that ended without a request; how many did that are not forgiven."""
        now = self._now()
        forgiven = FORGIVEN_PER_SEC * (now - self._forgave_at)
        if forgiven >= 1:
            self._forgave_at = now
            self._barren = {each: count - forgiven for each, count in self._barren.items() if count > forgiven}
        if more:
            self._barren[peer] = self._barren.get(peer, 0) + more
        return self._barren.get(peer, 0)

    def figures(self) -> dict[str, int]:
        """What `/diagnostics` shows."""
        return {"open": self.count, "refused": self.refused, "evicted": self.evicted}

    def _evict(self) -> bool:
        """Close one idle connection of the peer that has the most; false where none of them is idle."""
        peer = max(self._open, key=lambda each: len(self._open[each]))
        for connection in self._open[peer]:
            if connection.is_idle:
                self.remove(peer, connection)
                self.evicted += 1
                connection.abort()
                return True
        return False
