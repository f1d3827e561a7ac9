"""Lines with a checksum: JSON objects of one line whose last field is the CRC-32 of all before it."""

from __future__ import annotations

import re
import zlib
from typing import Any

import orjson

_END = re.compile(rb',"crc":"([0-9a-f]{8})"\}\Z')
CRC_BYTES = len(b',"crc":"00000000"}')
"""Bytes of such a line, without its newline, that the checksum field takes."""


def with_crc(body: bytes) -> bytes:
    """The JSON object `body` as a line with its checksum, newline included."""
    opened = body[:-1]
    return b'%b,"crc":"%08x"}\n' % (opened, zlib.crc32(opened))


def check_crc(line: bytes) -> dict[str, Any] | None:
    """The object of such a line without its newline; None where the checksum does not match."""
    end = _END.search(line, max(0, len(line) - CRC_BYTES))
    if end is None or int(end[1], 16) != zlib.crc32(line[: end.start()]):
        return None
    return parse_object(line)


def parse_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object that the line is, whatever its checksum; None where it is none."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
