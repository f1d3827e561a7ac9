"""Removes parts of ELF files that only linkers and debuggers need."""

from __future__ import annotations

import struct

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")


def cut(data: bytes) -> bytes:
    """Return the file without sections, up to the end of its last segment. The code does not change.

    Raise `ValueError` if the file is not a complete 64-bit little-endian ELF file.
    """
    if len(data) < HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    head = list(HEADER.unpack_from(data))
    table, entry_size, count = head[5], head[9], head[10]
    end = table + entry_size * count
    if end > len(data):
        raise ValueError("the ELF file ends within its own table of segments")
    for index in range(count):
        _, _, offset, _, _, size, _, _ = SEGMENT.unpack_from(data, table + entry_size * index)
        end = max(end, offset + size)
    if end > len(data):
        raise ValueError("the ELF file ends within a segment")
    head[6] = head[12] = head[13] = 0  # set the position, number, and names of the sections to 0
    return HEADER.pack(*head) + data[HEADER.size : end]


def machine(data: bytes) -> int:
    """Return the machine number in the ELF header."""
    number: int = HEADER.unpack_from(data)[2]
    return number
