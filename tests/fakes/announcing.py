"""Devices that announce themselves: answers of vendors to mDNS and SSDP, and responders on loopback."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

CLASS = 0x8001
"""The class IN, with the cache-flush bit of mDNS."""


def name(*labels: str) -> bytes:
    encoded = (label.encode() for label in labels)
    return b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"


def record(owner: bytes, type_: int, data: bytes) -> bytes:
    return owner + struct.pack(">2HIH", type_, CLASS, 120, len(data)) + data


def text(pairs: Mapping[str, str]) -> bytes:
    """Encode the data of a TXT record."""
    entries = [f"{key}={value}".encode() for key, value in pairs.items()]
    return b"".join(bytes([len(entry)]) + entry for entry in entries) or b"\0"


def message(*records: bytes, flags: int = 0x8400) -> bytes:
    return struct.pack(">6H", 0, flags, 0, len(records), 0, 0) + b"".join(records)


def announced(
    service: str, instance: str, host: str, port: int, pairs: Mapping[str, str] | None = None
) -> Sequence[bytes]:
    """Return the records PTR, SRV, TXT, and A of one instance."""
    type_, full = (*service.split("."), "local"), name(instance, *service.split("."), "local")
    return (
        record(name(*type_), 12, full),
        record(full, 33, struct.pack(">3H", 0, 0, port) + name("host", "local")),
        record(full, 16, text(pairs or {})),
        record(name("host", "local"), 1, socket.inet_aton(host)),
    )


def found_by_ssdp(target: str, usn: str, location: str) -> bytes:
    head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\n"
    return f"{head}st:{target}\r\nUSN: {usn}\r\nLocation: {location}\r\n\r\n".encode()


Answer = Callable[[bytes], Sequence[bytes]]
"""Returns the answers of a responder to a question."""


@contextmanager
def responding(answer: Answer, *, group: tuple[str, int] | None = None) -> Iterator[tuple[str, int]]:
    """Run a responder on a loopback address, or on a multicast group of the loopback interface. Yield its address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(group or ("127.0.0.1", 0))
        if group is not None:
            joined = socket.inet_aton(group[0]) + struct.pack("4si", b"\0" * 4, socket.if_nametoindex("lo"))
            listening.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        address = listening.getsockname()

        def work() -> None:
            while True:
                question, asker = listening.recvfrom(9000)
                if not question:
                    return
                for each in answer(question):
                    listening.sendto(each, asker)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield address
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
                if group is not None:
                    only = struct.pack("4s4si", b"\0" * 4, b"\0" * 4, socket.if_nametoindex("lo"))
                    last.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, only)
                last.sendto(b"", address)
            thread.join()
