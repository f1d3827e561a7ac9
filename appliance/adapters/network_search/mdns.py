"""mDNS: collects the records of answers, and combines them into services. `scan` sends the questions."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct

from appliance.adapters.network_search.dns_messages import PTR, SRV, TXT, A, DnsRecord, Name, fold

T = TypeVar("T")

MAX_INSTANCES = 64
"""Maximum number of service instances per sender, and of hosts per sender. Any further instances and hosts are
ignored."""

MAX_SENDERS = 256
"""Maximum number of senders. Packets of further senders are ignored."""

MAX_ADDRESSES = 8
"""Maximum number of addresses per host."""


class Instance(Struct, frozen=True, kw_only=True):
    """A service of a host: type (`_elg._tcp`), name, address, port, and TXT record."""

    service: str
    name: str
    host: str
    port: int
    text: Mapping[str, str]


class _Sender:
    """The records of one sender, within the limits. If several records have the same name, the first is used."""

    def __init__(self) -> None:
        self.instances: dict[Name, tuple[str, Name]] = {}
        self.located: dict[Name, DnsRecord] = {}
        self.texts: dict[Name, DnsRecord] = {}
        self.addresses: dict[Name, list[str]] = {}

    def add(self, record: DnsRecord, services: Mapping[Name, str]) -> None:
        """Store the record if it belongs to one of the services."""
        name = fold(record.name)
        if record.type == PTR and name in services and record.target:
            _put(self.instances, fold(record.target), (services[name], record.target))
        elif record.type == SRV:
            _put(self.located, name, record)
        elif record.type == TXT:
            _put(self.texts, name, record)
        elif record.type == A:
            _put(self.addresses, name, [])
            known = self.addresses.get(name)
            if known is not None and len(known) < MAX_ADDRESSES:
                known.append(record.address)

    def missing(self) -> Iterator[tuple[Name, int]]:
        """Yield questions for the missing records of instances."""
        for id_, (_, name) in self.instances.items():
            located = self.located.get(id_)
            if located is None:
                yield name, SRV
            elif fold(located.target) not in self.addresses:
                yield located.target, A
            if id_ not in self.texts:
                yield name, TXT


class MdnsAnswers:
    """Collects the records of each sender. `services` lists the requested service types."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = {fold((*each.split("."), "local")): each for each in services}
        self._senders: defaultdict[str, _Sender] = defaultdict(_Sender)

    def add(self, records: Iterable[DnsRecord], sender: str) -> None:
        """Store the records of one message."""
        if sender not in self._senders and len(self._senders) >= MAX_SENDERS:
            return
        for record in records:
            self._senders[sender].add(record, self._services)

    def questions(self) -> Iterator[tuple[Name, int]]:
        """Yield questions for all services, and for the missing records of known instances."""
        for service in self._services:
            yield service, PTR
        for sender in self._senders.values():
            yield from sender.missing()

    def list_instances(self) -> list[Instance]:
        """Return the instances with a known port. If a host has several addresses, use the address that
        `choose_address` returns."""
        found = []
        for address, sender in self._senders.items():
            for id_, (service, name) in sender.instances.items():
                located = sender.located.get(id_)
                if located is not None and located.port:
                    text = sender.texts[id_].text if id_ in sender.texts else {}
                    host = choose_address(address, sender.addresses.get(fold(located.target), ()))
                    found.append(Instance(service=service, name=name[0], host=host, port=located.port, text=text))
        return found


def _put(table: dict[Name, T], name: Name, value: T) -> None:
    if len(table) < MAX_INSTANCES:
        table.setdefault(name, value)


def is_local(address: str) -> bool:
    """Return whether an IPv4 address belongs to a local network or is a loopback address."""
    try:
        found = ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return (found.is_private or found.is_link_local) and not (int(found) < 1 << 24 or found.is_reserved)


def choose_address(sender: str, stated: Iterable[str]) -> str:
    """Return an address of the sender's host. Prefer the sender's address if `stated` contains it. Otherwise, return
    a usable address from `stated` or, if there is none, the sender's address.

    Only addresses of local networks are usable. A loopback address is usable only if the sender also has one.
    """
    usable = [each for each in stated if is_local(each) and (not _is_loopback(each) or _is_loopback(sender))]
    usable.sort(key=lambda each: ipaddress.IPv4Address(each).is_link_local)
    return sender if sender in usable or not usable else usable[0]


def _is_loopback(address: str) -> bool:
    return ipaddress.IPv4Address(address).is_loopback
