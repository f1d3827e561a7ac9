"""Limits the concurrent commands to one address, across adapters."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakValueDictionary

from appliance.errors import Busy, Unreachable
from appliance.tables.addresses import DEFAULT_PORTS

LOCK_TIMEOUT_SECS = 30.0
"""How long a command waits for other senders' commands to the same address."""


class Sender:
    """The sender of several commands, such as one command to a room."""


class AddressGate:
    """Allows `concurrency` commands at a time to one address, and one command at a time to each device.

    Commands run in the order of the calls of `acquire`. Commands of one sender wait for each other without a time
    limit, so that a command to a large room never fails with `Busy`. Commands wait for the commands of other senders
    for at most `timeout_secs`.
    """

    def __init__(self, address: str, concurrency: int, timeout_secs: float = LOCK_TIMEOUT_SECS) -> None:
        self.address = address
        self._timeout_secs = timeout_secs
        self.concurrency = concurrency
        self.commands_under_way = 0
        self.commands_ended = 0
        self._free = asyncio.Semaphore(concurrency)
        self._queues: WeakKeyDictionary[Sender, asyncio.Semaphore] = WeakKeyDictionary()
        self._devices: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: list[_WaitingCommand] = []

    async def acquire(
        self, device_ids: Collection[str] = (), sender: Sender | None = None
    ) -> list[asyncio.Semaphore]:
        """Wait until a command to these devices may run. Return the held locks, which the caller passes to `release`.

        Raise `Busy` after `timeout_secs`, and `Unreachable` after a call of `fail_waiting`. If an error is raised,
        no lock is held.
        """
        waiting, held = _WaitingCommand(device_ids), list[asyncio.Semaphore]()
        self._waiting.append(waiting)
        try:
            if sender is not None:
                queue = self._queues.setdefault(sender, asyncio.Semaphore(self.concurrency))
                await queue.acquire()
                held.append(queue)
            await self._acquire(held, device_ids)
            if waiting.outage is not None:
                raise Unreachable(str(waiting.outage))
        except BaseException as error:
            _release_all(held)
            if isinstance(error, TimeoutError):
                raise Busy(f"{self.address} is busy with earlier commands; this command was not sent") from None
            raise
        finally:
            self._waiting.remove(waiting)
        self.commands_under_way += 1
        return held

    def release(self, held: list[asyncio.Semaphore]) -> None:
        """Record the end of a command, and release the locks that `acquire` returned."""
        self.commands_under_way -= 1
        self.commands_ended += 1
        _release_all(held)

    async def _acquire(self, held: list[asyncio.Semaphore], device_ids: Collection[str]) -> None:
        """Acquire the locks of the devices, then the lock of the address. Add each acquired lock to `held`."""
        # `Lock.locked` is false while a released lock has a waiting task, and `acquire` would then wait
        locks = [self._free]
        if self.concurrency > 1:
            ids = sorted(set(device_ids))
            locks[:0] = [self._devices.setdefault(each, asyncio.Semaphore(1)) for each in ids]
        until = asyncio.get_running_loop().time() + self._timeout_secs
        for each in locks:
            if each.locked():
                async with asyncio.timeout_at(until):
                    await each.acquire()
            else:
                await each.acquire()
            held.append(each)

    def fail_waiting(self, outage: Unreachable, device_ids: Collection[str] | None) -> None:
        """Raise `outage` in the waiting commands to these devices. If `device_ids` is None, raise `outage` in all
        waiting commands."""
        for waiting in self._waiting:
            if device_ids is None or not set(device_ids).isdisjoint(waiting.device_ids):
                waiting.outage = outage

    def is_stale(self, ended_before: int) -> bool:
        """Return whether a reading may be older than the effect of a command.

        `ended_before` is the value of `commands_ended` before the reading. The reading may be older if a command is
        running, or has ended since then.
        """
        return self.commands_under_way > 0 or self.commands_ended != ended_before


def _release_all(held: list[asyncio.Semaphore]) -> None:
    while held:
        held.pop().release()


class _WaitingCommand:
    def __init__(self, device_ids: Collection[str]) -> None:
        self.device_ids = device_ids
        self.outage: Unreachable | None = None


class AddressGates:
    """Provides one gate for each address while adapters or commands use it. The first request for an address defines
    its concurrency."""

    def __init__(self, timeout_secs: float = LOCK_TIMEOUT_SECS) -> None:
        self._timeout_secs = timeout_secs
        self._gates: WeakValueDictionary[str, AddressGate] = WeakValueDictionary()

    def at(self, address: str, concurrency: int = 1) -> AddressGate:
        """Return the gate of the address. Different spellings of an address share one gate."""
        return self._gates.setdefault(canonical(address), AddressGate(address, concurrency, self._timeout_secs))


def canonical(address: str) -> str:
    """Return a URL's host and port in one spelling. Return any other text unchanged."""
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
    return f"{host} {parts.port or DEFAULT_PORTS.get(parts.scheme, 0)}"


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host
