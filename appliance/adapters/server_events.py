"""Server-sent events: the messages of a `text/event-stream`, as the HTML standard reads one, within bounds."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

import aiohttp
from msgspec import Struct

from appliance.clock import Clock
from appliance.errors import BadAnswer

EVENT_STREAM = "text/event-stream"
"""The media type."""

SLICE_BYTES = 2048
"""Bytes of a stream that are parsed before others of the loop come."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


class ServerEvent(Struct, frozen=True, kw_only=True):
    """One message: its type, `message` where it states none, its data as text, and the last id that was stated."""

    event: str = "message"
    data: str
    id: str = ""


class EventDecoder:
    """Makes messages of the bytes of one stream, in whatever pieces they come; `max_bytes` bounds one message."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._is_first = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._id = ""

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The messages that end in this piece. Raises `BadAnswer` for one that is too large."""
        self._pending += piece
        if self._is_first and len(self._pending) >= 3:
            self._pending = self._pending.removeprefix(b"\xef\xbb\xbf")
            self._is_first = False
        for line in self._take_lines() if _LINE_END.search(piece) else ():
            self._size += len(line)
            self._check(self._size)
            if line:
                self._read_field(line.decode(errors="replace"))
            elif (event := self._end()) is not None:
                yield event
        self._check(self._size + len(self._pending))

    def _take_lines(self) -> list[bytes]:
        """The lines that have ended; a carriage return at the very end may be half of an end."""
        whole = len(self._pending) - self._pending.endswith(b"\r")
        *lines, rest = _LINE_END.split(bytes(self._pending[:whole]))
        self._pending = bytearray(rest) + self._pending[whole:]
        return lines

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise BadAnswer(f"an event has more than {self._max_bytes} bytes")

    def _read_field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value

    def _end(self) -> ServerEvent | None:
        data, event = self._data, self._event or "message"
        self._data, self._event, self._size = [], "", 0
        return ServerEvent(event=event, data="\n".join(data), id=self._id) if data else None


async def read_events(response: aiohttp.ClientResponse, clock: Clock, max_bytes: int) -> AsyncIterator[ServerEvent]:
    """The messages of a response until it ends, or is broken off. Raises `BadAnswer` for one that is too large."""
    decoder = EventDecoder(max_bytes)
    while True:
        try:
            piece = await response.content.readany()
        except (aiohttp.ClientError, OSError):  # also what is silent for too long
            return
        if not piece:
            return
        for start in range(0, len(piece), SLICE_BYTES):
            for event in decoder.feed(piece[start : start + SLICE_BYTES]):
                yield event
            await clock.sleep(0)
