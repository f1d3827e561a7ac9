"""Limits for clients: how many connections may be open in all and of one peer, and which is closed for a new one.

Beside them the reverse proxies that are trusted: whose request it is that comes over their connection.
"""

from __future__ import annotations

import ipaddress
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct
from sanic.compat import Header

from appliance.errors import Overloaded
from appliance.settings import Api, RateLimit
from appliance.tables.addresses import Network


class ApiLimits(Struct, frozen=True, kw_only=True):
    """Counts, bytes and seconds: those of the configuration in `of`, the others the contract's.

    `rate` is what one key may write, None for no limit; `origins` are the web origins that CORS allows, None where it
    is off. Requests over connections from `trusted_proxies` count to the address that those name.
    """

    connections: int = 1000
    connections_per_peer: int = 600
    body_bytes: int = 1 << 20
    bodies_bytes: int = 8 << 20
    head_bytes: int = 8192
    head_secs: float = 10.0
    body_secs: float = 30.0
    idle_secs: float = 60.0
    message_bytes: int = 64 * 1024
    ping_secs: float = 20.0
    stall_secs: float = 30.0
    stop_secs: float = 3.0
    abort_secs: float = 0.5
    rate: RateLimit | None = None
    origins: frozenset[str] | None = None
    trusted_proxies: tuple[Network, ...] = ()

    @staticmethod
    def of(api: Api) -> ApiLimits:
        """The limits that the configuration asks for."""
        return ApiLimits(
            connections=api.max_connections,
            connections_per_peer=api.max_connections_per_peer,
            trusted_proxies=api.trusted_proxies,
            body_bytes=api.max_body_bytes,
            rate=api.rate_limit if api.rate_limit.enabled else None,
            origins=frozenset(api.cors.allowed_origins) if api.cors.enabled else None,
        )


class BodyBudget:
    """The bytes of bodies that have begun to arrive and are not complete, over all connections."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0

    def take(self, count: int) -> None:
        """Count bytes that have arrived; raise `Overloaded` if there are too many, which are counted as well."""
        self.held += count
        if self.held > self._most:
            raise Overloaded("the bodies of other requests have not arrived in full: try again in a second")

    def give_back(self, count: int) -> None:
        """Stop counting the bytes of a body that is complete or refused."""
        self.held -= count


MAX_EMPTY_CONNECTIONS = 600
"""Unexpired connections of one peer that ended without a request; only a flood has more, and is refused."""

EMPTY_CONNECTIONS_EXPIRED_PER_SEC = 300.0
"""How many of these expire each second."""


class Closable(Protocol):
    """A connection that may be closed to make room for another one."""

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a request; a WebSocket, or a request that is being answered, is not idle."""

    def abort(self) -> None:
        """Close it at once and discard what is unsent."""


class Connections:
    """Counts the open connections of each peer, an IP address. `refused` and `evicted` count since the start.

    `capacity` is how many there may be in all, `per_peer` how many of one peer. Where all places are taken, the peer
    that has the most loses its connection that has been idle longest: to a newcomer, but not to one of a peer that
    has more than half of all places itself. A peer that opens and closes connections without a request is
    refused while it goes on, which costs a tenth of serving it. `now` returns monotonic seconds. A peer that
    `is_proxy` has as many as it needs: each counts to the client whose request came over it last.
    """

    def __init__(
        self,
        capacity: int,
        per_peer: int,
        now: Callable[[], float],
        is_proxy: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._now = now
        self._is_proxy = is_proxy
        self._expired_at = now()
        self._empty: dict[str, float] = {}
        self._without_request: set[Closable] = set()
        self.capacity = capacity
        self.refused = 0
        self.evicted = 0
        self._per_peer = per_peer
        self._open: dict[str, OrderedDict[Closable, None]] = {}
        self.count = 0

    def find_refusal(self, peer: str) -> str | None:
        """Why this peer may not have one more connection, which is counted; may close an idle one for it."""
        refusal = self._find_refusal(peer, len(self._open.get(peer, ())))
        self.refused += refusal is not None
        return refusal

    def _find_refusal(self, peer: str, held: int) -> str | None:
        if not self._is_proxy(peer):
            if held >= self._per_peer:
                return f"{peer} has as many as one address may (api.max_connections_per_peer)"
            if self._count_empty(peer, 0) >= MAX_EMPTY_CONNECTIONS:
                return f"{peer} opened {MAX_EMPTY_CONNECTIONS} and more that ended without a request"
        is_free = self.count < self.capacity or (held * 2 <= self.count and self._evict())
        return None if is_free else "all places are taken (api.max_connections)"

    def add(self, peer: str, connection: Closable) -> None:
        """Count the connection, which `find_refusal` did not refuse."""
        self._open.setdefault(peer, OrderedDict())[connection] = None
        self._without_request.add(connection)
        self.count += 1

    def refresh(self, peer: str, connection: Closable) -> None:
        """Note that a request came: of its peer's connections this one is now the last to be closed."""
        self._without_request.discard(connection)
        held = self._open.get(peer)
        if held is not None and connection in held:
            held.move_to_end(connection)

    def hand_over(self, peer: str, client: str, connection: Closable) -> bool:
        """Count the peer's connection as one of the client from now on; false where that has too many already."""
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
        """Stop counting the connection; one that is not counted is ignored."""
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
        """Count so many more of the peer's that ended without a request; return how many have not expired."""
        now = self._now()
        expired = EMPTY_CONNECTIONS_EXPIRED_PER_SEC * (now - self._expired_at)
        if expired >= 1:
            self._expired_at = now
            self._empty = {each: count - expired for each, count in self._empty.items() if count > expired}
        if more:
            self._empty[peer] = self._empty.get(peer, 0) + more
        return self._empty.get(peer, 0)

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


IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_PAIR = r'[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^",;\s]*)[ \t]*(;|,|\Z)'
_HOST_AND_PORT = r"\[([^\]]+)\](?::\d{1,5})?|([0-9.]+)(?::\d{1,5})?|([0-9A-Fa-f:.]+(?:%[\w.-]+)?)"


class TrustedProxies:
    """The proxies of `networks`, whose `X-Forwarded-For` and `Forwarded` are believed; nobody else's are."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._networks = tuple(networks)

    def trusts(self, peer: str) -> bool:
        """Whether the address of a connection is one of theirs."""
        return bool(self._networks) and (address := _parse(peer)) is not None and self._contains(address)

    def client_of(self, peer: str, headers: Header) -> str:
        """The address to which a request counts that came from the trusted `peer`.

        It is the last hop that is not trusted. All requests whose headers name none, cannot be read or contradict
        each other count as those of one client.
        """
        named = {
            self._last_untrusted(read(",".join(stated)))
            for name, read in _READERS.items()
            if (stated := headers.getall(name, ()))
        }
        return (named.pop() if len(named) == 1 else None) or f"a client of {peer}"

    def _last_untrusted(self, hops: list[str]) -> str | None:
        address = None
        for hop in reversed(hops):
            address = _parse(hop)
            if address is None or not self._contains(address):
                break
        return None if address is None else str(address)

    def _contains(self, address: IpAddress) -> bool:
        return any(address in network for network in self._networks)


def _parse(hop: str) -> IpAddress | None:
    """The address of a hop, with or without its port; an IPv4 one that is mapped into IPv6 as IPv4."""
    match = re.fullmatch(_HOST_AND_PORT, hop.strip())
    if match is None:
        return None
    try:
        address = ipaddress.ip_address((match[1] or match[2] or match[3]).partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _read_forwarded(stated: str) -> list[str]:
    """The hops of `Forwarded` (RFC 7239); an unreadable one where a part is malformed."""
    hops: list[str] = []
    at, hop = 0, ""
    pair = re.compile(_PAIR)
    while at < len(stated):
        match = pair.match(stated, at)
        if match is None:
            return [*hops, ""]
        if match[1].lower() == "for":
            hop = match[2].strip('"')
        if match[3] != ";":
            hops.append(hop)
            hop = ""
        at = match.end()
    return [*hops, hop] if hop else hops


_READERS: Mapping[str, Callable[[str], list[str]]] = {
    "x-forwarded-for": lambda stated: stated.split(","),
    "forwarded": _read_forwarded,
}
