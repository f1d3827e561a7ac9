"""The protocol between the hub and its Lua workers: length-prefixed frames over a socket pair.

A frame is a kind, the number of an execution, and any number of byte strings. Values of Lua cross as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

MAX_FRAME_BYTES = 8 << 20
"""A longer frame is a fault of whoever sends it."""

_HEADER = Struct("<IBI")
_LENGTH = Struct("<I")

TIMING = Struct("<dBd")
"""What EXECUTE, DESCRIBE, COMPILE and ANSWER begin with: for how many seconds Lua may run now, the
`Reason` why it is stopped then, and the present instant in seconds since 1970."""

LARGEST = Struct("<IQ")
"""What PONG holds: the execution that uses the most memory, and how many bytes; zeros where there is none."""


class Kind(IntEnum):
    """What a frame is for; its parts stand behind it."""

    EXECUTE = 1  # timing, text, name, event as JSON or nothing: run the file, then its `execute`
    DESCRIBE = 2  # timing, text, name: run the file and tell what it returns
    COMPILE = 3  # timing, text, name: tell whether the file is Lua
    ANSWER = 4  # timing, is_ok as "1" or "", body, name of a module
    STOP = 5  # reason as a byte
    PING = 6
    READY = 16
    REQUEST = 17  # operation, arguments as JSON
    LOG = 18  # level, message, fields as JSON or nothing
    DONE = 19  # description as JSON or nothing
    STOPPED = 20  # reason as a byte, place
    FAILED = 21  # message, place, what a look-up did not find
    PONG = 22


LAST = frozenset({Kind.DONE, Kind.STOPPED, Kind.FAILED})
"""After one of these the worker knows nothing more of the execution."""


class Reason(IntEnum):
    """Why an execution was stopped. Small whole numbers, because these cross into Lua."""

    BACKSTOP = 1
    CPU = 2
    CANCELLED = 3
    MEMORY = 4
    STUCK = 5
    """It did not stop in time; only the hub says so."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `execution` is 0 where it concerns none."""

    kind: Kind
    execution: int
    parts: tuple[bytes, ...]


def encode(kind: Kind, execution: int = 0, *parts: bytes) -> bytes:
    """The frame as bytes; `ValueError` if it would be too long."""
    body = b"".join([piece for part in parts for piece in (_LENGTH.pack(len(part)), part)])
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {len(body)} bytes is too long")
    return _HEADER.pack(len(body), kind, execution) + body


class Decoder:
    """Puts frames together from whatever pieces the socket gives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Every frame that is complete now; `ValueError` for bytes that are none."""
        self._buffer += data
        frames, at = [], 0
        while len(self._buffer) - at >= _HEADER.size:
            size, kind, execution = _HEADER.unpack_from(self._buffer, at)
            if size > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {size} bytes is too long")
            end = at + _HEADER.size + size
            if end > len(self._buffer):
                break
            body = bytes(self._buffer[at + _HEADER.size : end])
            at = end
            frames.append(Frame(Kind(kind), execution, tuple(_split(body))))
        del self._buffer[:at]
        return frames


def _split(body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        if at + _LENGTH.size > len(body):
            raise ValueError("a frame ends within a length")
        end = at + _LENGTH.size + _LENGTH.unpack_from(body, at)[0]
        if end > len(body):
            raise ValueError("a part is longer than its frame")
        yield body[at + _LENGTH.size : end]
        at = end
