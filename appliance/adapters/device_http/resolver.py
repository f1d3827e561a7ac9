"""Resolves the host names of devices, and refuses forbidden addresses."""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254")))
"""Addresses at which a virtual machine in a cloud can read its own credentials."""

_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""Ranges of IPv6 addresses whose last four bytes are an IPv4 address: IPv4-compatible, IPv4-mapped, and NAT64."""


class DeviceResolver(ThreadedResolver):
    """Resolves a host name for one connection. The connection uses only the addresses of this result.

    Only `localhost` may resolve to this machine. No name may resolve to a metadata service. Each connection checks
    the name again, because a name server could change the address and make the hub call itself. Numeric addresses are
    not resolved.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of the host. Raise `OSError` if the host has no address, or if an address is
        forbidden."""
        found = await super().resolve(host, port, family)
        for each in found:
            if not is_allowed_address(host, each["host"]):
                raise OSError(0, f"its name resolves to {each['host']}, which is not allowed")
        return found


def is_allowed_address(name: str, address: str) -> bool:
    """Return whether a host name may resolve to this address."""
    is_local = name.lower().rstrip(".").rpartition(".")[2] == "localhost"
    meant = _without_carrier(ipaddress.ip_address(address.partition("%")[0]))
    return is_local == meant.is_loopback and not _is_forbidden(meant)


def _without_carrier(address: _Address) -> _Address:
    """Return the embedded IPv4 address. If no IPv4 address is embedded, return the given address unchanged."""
    # the unspecified and loopback addresses do not embed an IPv4 address
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:
        return address
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or address


def _is_forbidden(address: _Address) -> bool:
    is_nobody = address.is_unspecified or address.is_multicast or address in _METADATA
    return is_nobody or (address.version == 4 and (address.is_reserved or int(address) < 1 << 24))
