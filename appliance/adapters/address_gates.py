"""Addresses: what shares one address takes turns, whichever adapter it is of and however the address is written."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from appliance.errors import Busy, Unreachable

TURN_TIMEOUT_SECS = 30.0
"""How long a command waits for those before it at the same address."""

_DEFAULT_PORTS = {"http": 80, "https": 443, "mqtt": 1883, "mqtts": 8883}


class AddressGate:
    """The way in to one address. `commands_ended` counts the commands that were let in and have ended."""

    def __init__(self, address: str, concurrency: int) -> None:
        self.address = address
        self.concurrency = concurrency
        self.commands_under_way = 0
        self.commands_ended = 0
        self._free = asyncio.Semaphore(concurrency)
        self._outage: list[Unreachable] = []  # shared by those who wait now; whoever comes after it gets a new one

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Hold one of the places; raises `Busy` when none is free in time, and then nothing was sent.

        Nor is anything where one of those before it found nobody meanwhile: that is raised again, so that many who
        wait for a device that is gone are told so at once, and not one after another.
        """
        outage = self._outage
        try:
            async with asyncio.timeout(TURN_TIMEOUT_SECS if self._free.locked() else None):
                await self._free.acquire()
        except TimeoutError:
            raise Busy(f"{self.address} is busy with earlier commands; this one was not sent") from None
        if outage:
            self._free.release()
            raise Unreachable(str(outage[0]))
        self.commands_under_way += 1
        try:
            yield
        except Unreachable as error:
            self._outage.append(error)
            self._outage = []
            raise
        finally:
            self.commands_under_way -= 1
            self.commands_ended += 1
            self._free.release()

    def is_stale(self, ended_before: int) -> bool:
        """Whether what was asked when so many commands had ended may be older than what a command did since."""
        return self.commands_under_way > 0 or self.commands_ended != ended_before


class AddressGates:
    """The gate of each address; the first that names an address says how many commands run there side by side."""

    def __init__(self) -> None:
        self._gates: dict[str, AddressGate] = {}

    def at(self, address: str, concurrency: int = 1) -> AddressGate:
        """The gate of the address, the same for every spelling of it."""
        return self._gates.setdefault(canonical(address), AddressGate(address, concurrency))


def canonical(address: str) -> str:
    """The host and port that a URL names, spelled in one way; what is no URL stays as it is."""
    parts = urlsplit(address)
    if not parts.hostname:
        return address
    host = parts.hostname.lower().rstrip(".")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        number = ipaddress.ip_address(host)
        host = str(getattr(number, "ipv4_mapped", None) or number)
    except ValueError:
        host = _ascii(host)
    return f"{host} {parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)}"


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host
