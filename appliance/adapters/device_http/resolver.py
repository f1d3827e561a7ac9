"""Resolves the host names of devices, and refuses forbidden addresses."""

from __future__ import annotations

import ipaddress
import socket

from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver

from appliance.tables.addresses import is_forbidden, without_carrier


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
    meant = without_carrier(ipaddress.ip_address(address.partition("%")[0]))
    return is_local == meant.is_loopback and not is_forbidden(meant)
