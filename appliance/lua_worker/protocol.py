"""The protocol between the hub and its Lua workers: length-prefixed frames over a socket pair.

A frame contains a kind, a run's number, and any number of byte strings. Lua values are encoded as JSON.
"""

from __future__ import annotations

from collections import namedtuple
from enum import IntEnum
from struct import Struct, pack, unpack_from

MAX_FRAME_BYTES = 24 << 20

_HEADER = Struct("<IBIB")
"""The size of the rest of the frame, the kind, the run's number, and the number of parts. The sizes of the parts
follow, and then the parts."""

TIMING = Struct("<ddBd")
"""The first part of EXECUTE, DESCRIBE, COMPILE, CALL, and ANSWER. The part contains the maximum of the run's
processor time until Lua waits, the seconds that Lua may run, the `Reason` to stop Lua after these seconds, and the
current time in seconds since 1970."""

MEMORY_USE = Struct("<IQ")
"""The first part of PONG: the number of the run with the most memory, and that run's memory in bytes. If
there are no runs, both numbers are 0."""


CPU = Struct("<d")
"""The last part of REQUEST: the run's processor time in seconds."""

CPU_SECS = Struct("<Id")
"""A part of PONG: the number and the processor time in seconds of each computing run."""


class FrameKind(IntEnum):
    """The kinds of frames. The comments list the parts of each kind. `prelude/driver.lua` has the same numbers."""

    EXECUTE = 1  # timing, text, name, event as JSON or empty: run the file, then its `execute`
    DESCRIBE = 2  # timing, text, name, "1" for an adapter kind or "": run the file and describe its result
    COMPILE = 3  # timing, text, name: only compile the file
    ANSWER = 4  # timing, is_ok as "1" or "", body, module name
    STOP = 5  # reason as a byte
    PING = 6  # the worker answers with PONG about the same run
    CALL = 7  # timing, text, name, call as JSON: run the file of an adapter kind, then a function in it
    READY = 16  # the protections that the sandbox lacks, as text
    REQUEST = 17  # operation, arguments as JSON, position, CPU
    LOG = 18  # level, message, fields as JSON or empty
    DONE = 19  # the description or the result of CALL as JSON, or empty
    STOPPED = 20  # reason as a byte, position, the file that `require` was loading
    FAILED = 21  # message, position, the missing name of a lookup
    PONG = 22  # MEMORY_USE, position, CPU_SECS of each computing run, for each the file that `require` is loading
    LOST = 23  # a sentence; never sent, but used as the last frame if the worker has ended
    REFUSED = 24  # a sentence; never sent, but used as the last frame if the worker has no memory for the run


LAST = frozenset({FrameKind.DONE, FrameKind.STOPPED, FrameKind.FAILED, FrameKind.LOST, FrameKind.REFUSED})
"""The kinds of a run's last frame."""

_KINDS = {int(kind): kind for kind in FrameKind}


class Reason(IntEnum):
    """The reason for stopping a run. The values are small integers, because they are passed to Lua."""

    BACKSTOP = 1
    RUNNING_TIME = 2
    CANCELLED = 3
    MEMORY = 4
    STUCK = 5
    """The run did not stop in time. If Lua still does not poll, the worker halts its thread forever, and sends no
    last frame."""
    CPU_TOTAL = 6
    REAL_TIME = 7
    SHARED_MEMORY = 8
    """All runs together use the worker's memory."""


class WorkerFrame(namedtuple("WorkerFrame", ("kind", "run", "parts"))):
    """One frame. `run` is 0 if the frame concerns no run."""

    __slots__ = ()
    kind: FrameKind
    run: int
    parts: tuple[bytes, ...]


def encode(kind: int, run: int = 0, *parts: bytes) -> bytes:
    """Return the frame as bytes. Raise `ValueError` if the frame is longer than `MAX_FRAME_BYTES`."""
    sizes = [len(each) for each in parts]
    size = 4 * len(sizes) + sum(sizes)
    if size > MAX_FRAME_BYTES:
        raise ValueError(f"a frame of {size} bytes is too long")
    return b"".join([_HEADER.pack(size, kind, run, len(sizes)), pack(f"<{len(sizes)}I", *sizes), *parts])


class Decoder:
    """Assembles frames from received bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> list[WorkerFrame]:
        """Return the frames that are now complete. Raise `ValueError` for invalid bytes."""
        buffer = self._buffer
        buffer += data
        frames, at = [], 0
        while len(buffer) - at >= _HEADER.size:
            size, kind, run, count = _HEADER.unpack_from(buffer, at)
            if size > MAX_FRAME_BYTES or kind not in _KINDS:
                raise ValueError(f"a frame has the invalid kind {kind} or size {size}")
            end = at + _HEADER.size + size
            if end > len(buffer):
                break
            frames.append(WorkerFrame(_KINDS[kind], run, _split(bytes(buffer[at + _HEADER.size : end]), count)))
            at = end
        del buffer[:at]
        return frames


def _split(body: bytes, count: int) -> tuple[bytes, ...]:
    at = 4 * count
    if at > len(body):
        raise ValueError("a frame ends before the sizes of its parts")
    parts = []
    for size in unpack_from(f"<{count}I", body):
        parts.append(body[at : at + size])
        at += size
    if at != len(body):
        raise ValueError("the parts of a frame do not have the frame's size")
    return tuple(parts)
