"""Names in the addresses of devices: what the resolver of the network may say that they mean."""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254")))
"""Where a rented machine can ask for its own credentials."""

_CARRIERS = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""Addresses whose last four bytes are an IPv4 address: compatible, mapped, NAT64."""


class DeviceResolver(ThreadedResolver):
    """Resolves a name for one connection, which then goes to no other address than the result holds.

    A name of the network must not mean this machine or its metadata service, whatever it meant before: who answers
    for the name would let the hub talk to itself. `localhost` means this machine and nothing else. An address that is
    written in numbers is not resolved, and means what it says.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of the name. Raises `OSError` where there are none, or one of them is refused."""
        found = await super().resolve(host, port, family)
        for each in found:
            if not may_mean(host, each["host"]):
                raise OSError(0, f"its name means {each['host']}, and a name must not lead there")
        return found


def may_mean(name: str, address: str) -> bool:
    """Whether the name may have this address."""
    is_local = name.lower().rstrip(".").rpartition(".")[2] == "localhost"
    meant = _without_carrier(ipaddress.ip_address(address.partition("%")[0]))
    return is_local == meant.is_loopback and not _is_barred(meant)


def _without_carrier(address: _Address) -> _Address:
    """The address, or the IPv4 address that it carries."""
    if isinstance(address, ipaddress.IPv4Address) or int(address) <= 1:  # unspecified and loopback are not carriers
        return address
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or address


def _is_barred(address: _Address) -> bool:
    is_nobody = address.is_unspecified or address.is_multicast or address in _METADATA
    return is_nobody or (address.version == 4 and (address.is_reserved or int(address) < 1 << 24))
