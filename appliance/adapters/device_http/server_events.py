"""Decodes server-sent events by the HTML standard. `HttpClient.events` opens the stream."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
from msgspec import Struct

from appliance.clock import Clock
from appliance.errors import BadAnswer

EVENT_STREAM = "text/event-stream"

SLICE_BYTES = 2048
"""Number of bytes of a stream that are parsed before other tasks can run."""

LARGE_EVENT_CHARS = 1 << 20
"""If an event is longer than this, other tasks can run before the event is yielded."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class ServerEvent(Struct, frozen=True, kw_only=True):
    """One event: its type (`message` by default), its data as text, and the last id of the stream."""

    event: str = "message"
    data: str
    id: str = ""


class EventDecoder:
    """Decodes the bytes of one stream, in pieces of any size. `max_bytes` is the maximum size of one event."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._held = b""
        self._is_first = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._id = ""

    @property
    def size(self) -> int:
        """The size of the unfinished event in bytes."""
        return self._size + len(self._line)

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Yield the events that end in this piece. Raise `BadAnswer` if an event is too large."""
        piece = self._held + piece
        whole = len(piece) - piece.endswith(b"\r")  # the last character may be the first half of a line break
        self._held = piece[whole:]
        for number, part in enumerate(_LINE_END.split(piece[:whole])):
            if number > 0 and (event := self._end_line()) is not None:
                yield event
            self._line += part
            self._check(self.size)

    def _end_line(self) -> ServerEvent | None:
        line, self._line = self._line, bytearray()
        self._size += len(line)
        if self._is_first and line.startswith(_BOM):
            del line[: len(_BOM)]
        self._is_first = False
        if not line:
            return self._end()
        self._read_field(line)
        return None

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise BadAnswer(f"an event has more than {self._max_bytes} bytes")

    def _read_field(self, line: bytearray) -> None:
        at = line.find(b":")
        name = line if at < 0 else line[:at]
        begin = len(line) if at < 0 else at + 1 + line.startswith(b" ", at + 1)
        value = str(memoryview(line)[begin:], "utf-8", "replace")  # one copy, because it may be large
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        elif name == b"id" and "\0" not in value:
            self._id = value

    def _end(self) -> ServerEvent | None:
        data, event = self._data, self._event or "message"
        self._data, self._event, self._size = [], "", 0
        return ServerEvent(event=event, data="\n".join(data), id=self._id) if data else None


async def read_events(
    response: aiohttp.ClientResponse,
    clock: Clock,
    max_bytes: int,
    note_held: Callable[[int, int], None] = lambda *_: None,
) -> AsyncIterator[ServerEvent]:
    """Yield the events of a response until it ends or is interrupted. `note_held` gets the sizes of the
    event in use and of the unfinished event. Raise `BadAnswer` if an event is too large."""
    decoder = EventDecoder(max_bytes)
    while True:
        try:
            piece = await response.content.readany()
        except (aiohttp.ClientError, OSError):  # this error is also raised if no data arrives for too long
            return
        if not piece:
            return
        for start in range(0, len(piece), SLICE_BYTES):
            for event in decoder.feed(piece[start : start + SLICE_BYTES]):
                if len(event.data) > LARGE_EVENT_CHARS:
                    await clock.sleep(0)
                note_held(len(event.data), 0)
                yield event
                del event  # it would stay in memory until the next event
            note_held(0, decoder.size)
            await clock.sleep(0)
