"""Data that devices push over HTTP: server-sent events, parsed as the HTML standard defines, and WebSocket
messages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import aiohttp
import orjson
from msgspec import Struct

from appliance.adapters.http_access import reason_of
from appliance.clock import Clock
from appliance.errors import BadAnswer, Unreachable

EVENT_STREAM = "text/event-stream"
"""The media type."""

GOODBYE_SECS = 1.0
"""Seconds that the last frame to a WebSocket may take; then the connection is closed without it."""

SLICE_BYTES = 2048
"""Bytes of a stream that are parsed before other tasks get a turn."""

MESSAGES_AT_ONCE = 8
"""Messages of one connection that are processed before other tasks get a turn: the state of a strip takes a third of
a ms."""

LARGE_MESSAGE = 1 << 20
"""Bytes or characters of a large message, which is parsed only after other tasks have had a turn."""

DecodeMessage = Callable[[bytes | str, str], Any]
"""Decodes the body of a frame as a message; the address is for the sentence of the `BadAnswer` that it may raise."""

_TEXT, _BINARY = aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY
_PING, _ERROR = aiohttp.WSMsgType.PING, aiohttp.WSMsgType.ERROR

_LINE_END = re.compile(rb"\r\n|\n|\r")


class ServerEvent(Struct, frozen=True, kw_only=True):
    """One message: its type, `message` if it states none, its data as text, and the last id that was stated."""

    event: str = "message"
    data: str
    id: str = ""


class EventDecoder:
    """Decodes the bytes of one stream, in pieces of any size, into messages; `max_bytes` limits one message."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._held = b""
        self._is_first = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._id = ""

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Yield the messages that end in this piece. Raises `BadAnswer` if a message is too large."""
        piece = self._held + piece
        whole = len(piece) - piece.endswith(b"\r")  # The last character may be half of a line end
        self._held = piece[whole:]
        for number, part in enumerate(_LINE_END.split(piece[:whole])):
            if number > 0 and (event := self._end_line()) is not None:
                yield event
            self._line += part
            self._check(self._size + len(self._line))

    def _end_line(self) -> ServerEvent | None:
        line, self._line = self._line, bytearray()
        self._size += len(line)
        if self._is_first:
            line, self._is_first = line.removeprefix(b"\xef\xbb\xbf"), False
        if not line:
            return self._end()
        self._read_field(line.decode(errors="replace"))
        return None

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
    """Yield the messages of a response until it ends or is interrupted. Raises `BadAnswer` if a message is too
    large."""
    decoder = EventDecoder(max_bytes)
    while True:
        try:
            piece = await response.content.readany()
        except (aiohttp.ClientError, OSError):  # also after a silence that is too long
            return
        if not piece:
            return
        for start in range(0, len(piece), SLICE_BYTES):
            for event in decoder.feed(piece[start : start + SLICE_BYTES]):
                if len(event.data) > LARGE_MESSAGE:
                    await clock.sleep(0)
                yield event
            await clock.sleep(0)


class Messages(AsyncIterator[Any]):
    """The two directions of one WebSocket; `on_message` is called at each message. One task reads; any task may
    send."""

    def __init__(
        self,
        address: str,
        opened: aiohttp.ClientWebSocketResponse,
        clock: Clock,
        parse: DecodeMessage,
        on_message: Callable[[], None],
    ) -> None:
        self._address = address
        self._socket = opened
        self._clock = clock
        self._parse = parse
        self._on_message = on_message
        self._count = 0

    async def __anext__(self) -> Any:
        """Return the next message of text or bytes. Raises `BadAnswer` for a too large or malformed message."""
        while (kind := (message := await self._next_frame()).type) is not _TEXT and kind is not _BINARY:
            if kind is _PING:
                await self._answer_ping(message.data)
            elif kind is _ERROR:
                raise BadAnswer(f"{self._address} sent a malformed or too large WebSocket message")
        self._on_message()
        if len(message.data) > LARGE_MESSAGE:
            await self._clock.sleep(0)
        return self._parse(message.data, self._address)

    async def _next_frame(self) -> aiohttp.WSMessage:
        """Return the next message, including pings; other tasks get turns, even if many messages wait."""
        self._count += 1
        if self._count % MESSAGES_AT_ONCE == 0:
            await self._clock.sleep(0)
        return await self._socket.__anext__()

    async def _answer_ping(self, data: bytes) -> None:
        try:
            await self._socket.pong(data)
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self._address} has closed the connection ({reason_of(error)})") from None

    async def send(self, message: Any) -> None:
        """Send a text unchanged, any other value as JSON. Raises `Unreachable` if the socket is closed.

        It waits while the other side does not read, so the caller must limit the time.
        """
        try:
            await self._socket.send_str(message if isinstance(message, str) else orjson.dumps(message).decode())
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{self._address} has closed the connection ({reason_of(error)})") from None


class PromptSocket(aiohttp.ClientWebSocketResponse[Literal[True]]):
    """Sends a Close frame and closes, without reading until the other side closes, because that could take
    forever."""

    async def close(self, *, code: int = aiohttp.WSCloseCode.OK, message: bytes = b"") -> bool:
        """Send the Close frame, for `GOODBYE_SECS` at most, and close; False if that or the connection failed."""
        # only without a Close frame of its own, aiohttp waits for the other side's
        self._close_code = self._close_code or code
        try:
            async with asyncio.timeout(GOODBYE_SECS):
                return await super().close(code=code, message=message)
        except TimeoutError:
            return False
