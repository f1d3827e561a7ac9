"""The snapshot: the whole document at one sequence number, in one file that is never changed.

The first line names format, generation, sequence number, and length and CRC-32 of the rest, which holds one line for
each key: `{"key": …, "value": …}`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from appliance.home.values import to_bytes
from appliance.store.crc import check_crc, with_crc
from appliance.store.disk import Disk
from appliance.store.file_names import STORE_FORMAT


class Snapshot(Struct, frozen=True, kw_only=True):
    """What a snapshot file holds: values as JSON bytes, by key."""

    format: int
    generation: int
    sequence: int
    values: Mapping[str, bytes]
    size: int


def encode(generation: int, sequence: int, values: Mapping[str, bytes]) -> bytes:
    """The bytes of a snapshot file."""
    body = b"".join([b'{"key":%b,"value":%b}\n' % (orjson.dumps(key), values[key]) for key in sorted(values)])
    header = {
        "format": STORE_FORMAT,
        "kind": "snapshot",
        "generation": generation,
        "sequence": sequence,
        "length": len(body),
        "body_crc": f"{zlib.crc32(body):08x}",
    }
    return with_crc(orjson.dumps(header)) + body


def decode(data: bytes, generation: int) -> Snapshot | None:
    """What the bytes of this generation's snapshot hold, or None when they are not as they were written."""
    line, newline, body = data.partition(b"\n")
    header = check_crc(line) if newline else None
    if header is None or header.get("kind") != "snapshot" or header.get("generation") != generation:
        return None
    if header.get("length") != len(body):
        return None
    if header.get("body_crc") != f"{zlib.crc32(body):08x}":
        return None
    return Snapshot(
        format=header["format"],
        generation=header["generation"],
        sequence=header["sequence"],
        values=dict(_entry(each) for each in body.split(b"\n")[:-1]),
        size=len(data),
    )


def write_new(disk: Disk, name: str, data: bytes) -> None:
    """Write a snapshot file, on the device when this returns; its name is not yet."""
    descriptor = disk.create(name)
    try:
        disk.write(descriptor, data, 0)
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)


def _entry(line: bytes) -> tuple[str, bytes]:
    entry: dict[str, Any] = orjson.loads(line)
    return entry["key"], to_bytes(entry["value"])
