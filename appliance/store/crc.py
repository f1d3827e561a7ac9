"""Sealed lines: JSON objects of one line whose last field is the CRC-32 of all that stands before it."""

from __future__ import annotations

import re
import zlib
from typing import Any

import orjson

_END = re.compile(rb',"crc":"([0-9a-f]{8})"\}\Z')
CRC_BYTES = len(b',"crc":"00000000"}')
"""Bytes of a sealed line, without its newline, that the seal takes."""


def with_crc(body: bytes) -> bytes:
    """The JSON object `body` as a sealed line, newline included."""
    opened = body[:-1]
    return b'%b,"crc":"%08x"}\n' % (opened, zlib.crc32(opened))


def check_crc(line: bytes) -> dict[str, Any] | None:
    """The object of a sealed line without its newline, or None when the line is not as it was sealed."""
    end = _END.search(line, max(0, len(line) - CRC_BYTES))
    if end is None or int(end[1], 16) != zlib.crc32(line[: end.start()]):
        return None
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
