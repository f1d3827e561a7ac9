"""Trusted reverse proxies, and the client addresses in their headers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping

from sanic.compat import Header

from appliance.tables.addresses import Network

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


_PAIR = r'[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^",;\s]*)[ \t]*(;|,|\Z)'


_HOST_AND_PORT = r"\[([^\]]+)\](?::\d{1,5})?|([0-9.]+)(?::\d{1,5})?|([0-9A-Fa-f:.]+(?:%[\w.-]+)?)"

MAX_HOPS = 16
"""Maximum number of addresses in a header that are compared with the trusted networks, beginning with the last."""


class TrustedProxies:
    """The proxies in `networks`, whose `X-Forwarded-For` and `Forwarded` headers are trusted."""

    def __init__(self, networks: Iterable[Network]) -> None:
        self._networks = tuple(networks)

    def trusts(self, peer: str) -> bool:
        """Return whether the address of a connection belongs to a trusted proxy."""
        return bool(self._networks) and (address := _parse(peer)) is not None and self._contains(address)

    def client_of(self, peer: str, headers: Header) -> str:
        """Return the client address of a request from the trusted `peer`.

        The client is the last hop that is not a trusted proxy. All requests with missing, unreadable, or
        contradictory headers, or with more than `MAX_HOPS` trusted hops, are treated as requests of the same client.
        """
        named = {
            self._last_untrusted(read(",".join(stated)))
            for name, read in _READERS.items()
            if (stated := headers.getall(name, ()))
        }
        return (named.pop() if len(named) == 1 else None) or f"a client of {peer}"

    def _last_untrusted(self, hops: list[str]) -> str | None:
        address = None
        for number, hop in enumerate(reversed(hops)):
            if number == MAX_HOPS:
                return None
            address = _parse(hop)
            if address is None or not self._contains(address):
                break
        return None if address is None else str(address)

    def _contains(self, address: IpAddress) -> bool:
        return any(address in network for network in self._networks)


NO_PROXIES = TrustedProxies(())


def _parse(hop: str) -> IpAddress | None:
    """Return the address of a hop without its port. If an IPv4 address has IPv6 form, convert it to IPv4."""
    match = re.fullmatch(_HOST_AND_PORT, hop.strip())
    if match is None:
        return None
    try:
        address = ipaddress.ip_address((match[1] or match[2] or match[3]).partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _read_forwarded(stated: str) -> list[str]:
    """Return the hops of `Forwarded` (RFC 7239). If a part is malformed, return an unreadable hop."""
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
