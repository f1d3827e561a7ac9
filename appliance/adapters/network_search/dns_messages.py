"""DNS messages of mDNS: questions, and answers with PTR, SRV, TXT, and A records. All input is bounded."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

A, PTR, TXT, SRV = 1, 12, 16, 33
"""Record types."""

MAX_RECORDS = 128
"""Maximum number of records that are read from one message. Further records are ignored."""

MAX_NAME_BYTES = 255
MAX_LABEL_BYTES = 63

MAX_NAME_STEPS = 16
"""Maximum number of labels and pointers in one name. A packet can contain thousands of pointers."""

MAX_QUERY_BYTES = 1200
"""Size limit of a question. A packet with a question of this size is not split in any network."""

_IN = 1
"""The class `IN`. If a question is sent from a port other than mDNS's, the answer is sent by unicast, without the
cache-flush bit."""

_IS_RESPONSE = 0x8000

Name = tuple[str, ...]
"""Labels of a name. A label may contain any characters, including dots."""


class Malformed(ValueError):
    """Raised if the bytes are not a DNS message, or exceed the limits."""


class DnsRecord(Struct, frozen=True, kw_only=True):
    """One record. `target` is set in PTR and SRV records, `port` in SRV records, `text` in TXT records, and `address`
    in A records."""

    name: Name
    type: int
    target: Name = ()
    port: int = 0
    text: Mapping[str, str] = {}
    address: str = ""


def fold(name: Name) -> Name:
    """Convert a name to lower case, for comparisons."""
    return tuple(label.casefold() for label in name)


def encode_query(questions: Iterable[tuple[Name, int]]) -> bytes:
    """Return a message with as many of the questions as fit. Cut labels that are too long."""
    asked, size = [], 12
    for name, type_ in questions:
        labels = (label.encode()[:MAX_LABEL_BYTES] for label in name)
        question = b"".join(bytes([len(label)]) + label for label in labels) + struct.pack(">B2H", 0, type_, _IN)
        size += len(question)
        if size > MAX_QUERY_BYTES:
            break
        asked.append(question)
    return struct.pack(">6H", 0, 0, len(asked), 0, 0, 0) + b"".join(asked)


def decode_answer(message: bytes) -> list[DnsRecord]:
    """Return the known records of an answer. Raise `Malformed` for a malformed message, and for a question."""
    if len(message) < 12:
        raise Malformed
    _, flags, *counts = struct.unpack_from(">6H", message)
    if not flags & _IS_RESPONSE:
        raise Malformed
    questions, records = counts[0], sum(counts[1:])
    at = 12
    for _ in range(min(questions, MAX_RECORDS)):
        _, at = _read_name(message, at)
        at += 4
    found = []
    for _ in range(min(records, MAX_RECORDS)):
        record, at = _read_record(message, at)
        if record is not None:
            found.append(record)
    return found


def _read_record(message: bytes, at: int) -> tuple[DnsRecord | None, int]:
    name, at = _read_name(message, at)
    if at + 10 > len(message):
        raise Malformed
    type_, _, _, length = struct.unpack_from(">2HIH", message, at)
    start, end = at + 10, at + 10 + length
    if end > len(message):
        raise Malformed
    return _record(message, name, type_, start, end), end


def _record(message: bytes, name: Name, type_: int, start: int, end: int) -> DnsRecord | None:
    if type_ == PTR:
        return DnsRecord(name=name, type=type_, target=_read_name(message, start)[0])
    if type_ == SRV and end - start > 6:
        [port] = struct.unpack_from(">H", message, start + 4)
        return DnsRecord(name=name, type=type_, target=_read_name(message, start + 6)[0], port=port)
    if type_ == TXT:
        return DnsRecord(name=name, type=type_, text=_read_text(message[start:end]))
    if type_ == A and end - start == 4:
        return DnsRecord(name=name, type=type_, address=str(ipaddress.IPv4Address(message[start:end])))
    return None


def _read_name(message: bytes, at: int) -> tuple[Name, int]:
    """Return the name and the index after it. Each pointer must point to an earlier position than the previous
    pointer."""
    labels: list[bytes] = []
    size, end, limit = 0, -1, at
    for _ in range(MAX_NAME_STEPS + 1):
        if at >= len(message):
            raise Malformed
        length = message[at]
        if length == 0:
            return _labels(labels), at + 1 if end < 0 else end
        if length >= 0xC0:
            if at + 1 >= len(message):
                raise Malformed
            end = at + 2 if end < 0 else end
            at = (length & 0x3F) << 8 | message[at + 1]
            if at >= limit:
                raise Malformed
            limit = at
            continue
        size += length + 1
        if length > MAX_LABEL_BYTES or size > MAX_NAME_BYTES or at + 1 + length > len(message):
            raise Malformed
        labels.append(message[at + 1 : at + 1 + length])
        at += length + 1
    raise Malformed


def _labels(labels: Sequence[bytes]) -> Name:
    return tuple(label.decode(errors="replace") for label in labels)


def _read_text(data: bytes) -> dict[str, str]:
    """Return the values of a TXT record by key. Convert the keys to lower case. If a key is repeated, its first value
    is used."""
    pairs: dict[str, str] = {}
    at = 0
    while at < len(data) and len(pairs) < MAX_RECORDS:
        entry = data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
        key, _, value = entry.decode(errors="replace").partition("=")
        if key:
            pairs.setdefault(key.lower(), value)
    return pairs
