"""Connects to devices. Limits the data that is read at once, and repairs malformed response heads."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import ssl
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, cast

import aiohttp
from aiohttp import AddrInfoType, ClientRequest
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError
from aiohttp.tracing import Trace

from appliance.adapters.device_http.resolver import DeviceResolver
from appliance.byte_budget import ByteBudget
from appliance.errors import BadAnswer
from appliance.tasks import time_limit

CONNECT_TIMEOUT_SECS = 2.0

MAX_WAITING_RESPONSES = 8
"""Maximum number of unread responses on a connection, including interim responses (1xx)."""

PARSED_BYTES = 4096
"""Maximum number of bytes that one iteration of the event loop reads and parses. The limit corresponds to 100 of
the shortest responses, or to 2,000 frames."""

RECEIVE_BUFFER_BYTES = 16 * 1024
"""The kernel's receive buffer of a connection. The buffer's size limits the data that one iteration parses."""

MAX_HEAD_BYTES = 16 * 1024
"""Size limit of an incomplete response head. A longer head is parsed without repair."""

MAX_FRAMING_BYTES = 64 * 1024
MAX_FRAMING_PER_BODY_BYTE = 8
"""Size limits of everything except the body: heads, chunk sizes and extensions, and trailers. The second limit is
added for each byte of the body, because the shortest chunk has five bytes of framing."""

MAX_UNREAD_BYTES = 64 << 20
"""Size limit of the unfinished and unread messages of all WebSockets and streams of events together."""

UNREAD_FULL = "held the most unread data while the messages of all devices used all of their memory"

_WHOLE = frozenset({aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY})
_HTTP, _LINE_END, _HEAD_END = b"HTTP/", re.compile(rb"\r*\n"), re.compile(rb"\n\r*\n")
_LENGTH = re.compile(rb"(?i)content-length[ \t]*:([ \t\d,]*)")


def _open_socket(address: AddrInfoType) -> socket.socket:
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    return opened


class FramingTooLarge(HttpProcessingError):
    """Raised if a response has too many bytes outside its body."""


class UnreadMessages(ByteBudget):
    """The unfinished and unread messages of all connections. Beyond the limit, the connection with the most bytes is
    closed. Messages in use are counted, but closing would not free them."""

    def __init__(self, max_bytes: int = MAX_UNREAD_BYTES) -> None:
        super().__init__(max_bytes)
        self.connections: set[_Protocol] = set()

    def close_largest(self) -> None:
        while self.is_exceeded and self.connections:
            max(self.connections, key=attrgetter("unread")).close_unread()


class _Protocol(ResponseHandler):
    """One connection. Repairs malformed response heads, and closes the connection after unrequested responses or
    endless framing. `held` is the number of bytes that are counted in `unread`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, unread: UnreadMessages) -> None:
        super().__init__(loop)
        self._unread = unread
        self._unfinished = self._in_use = self.held = 0

    _received = 0
    """The number of bytes received since the request."""

    _head: bytearray | None = None
    """The incomplete head of the next response, or None while a body is received."""

    _queue: Any = None
    """The queue of the WebSocket's messages, or None before the upgrade and after the end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Limit the bytes per iteration of the event loop."""
        cast("Any", transport).max_size = PARSED_BYTES
        super().connection_made(transport)

    def set_response_params(self, **params: Any) -> None:
        self._head, self._received = bytearray(), 0
        super().set_response_params(**params)

    def set_parser(self, parser: Any, payload: Any, data_received_cb: Callable[[], None] | None = None) -> None:
        """Begin a WebSocket, whose messages are counted."""
        self._queue = payload
        self.begin_messages()
        super().set_parser(parser, payload, data_received_cb)

    def data_received(self, data: bytes) -> None:
        if self._queue is not None:
            self._receive_frames(self._queue, data)
            return
        self._received += len(data)
        data = data if self._head is None else self._take_heads(self._head + data)
        for start in range(0, len(data), PARSED_BYTES):
            super().data_received(data[start : start + PARSED_BYTES])
            if len(self._buffer) > MAX_WAITING_RESPONSES:
                self.abort()
                return
        if (error := self.exception()) is not None and self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(error)  # the parser does not end a body whose later part is malformed
        if not self._upgraded:
            self._check_framing()

    def _receive_frames(self, queue: Any, data: bytes) -> None:
        """Parse and count the bytes of a WebSocket."""
        waiting = queue._buffer  # noqa: SLF001
        for start in range(0, len(data), PARSED_BYTES):
            piece, before = data[start : start + PARSED_BYTES], len(waiting)
            super().data_received(piece)
            if self._payload_parser_failed:
                self._queue = None  # aiohttp drops all further bytes
                return
            self._unfinished += len(piece)
            for frame, _ in itertools.islice(waiting, before, None):
                if frame.type in _WHOLE:  # a ping between the parts of a message does not begin a new count
                    self._unfinished = 0
            self.note_read(self._in_use)
            if self._queue is None:
                return

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_messages()
        super().connection_lost(exc)

    def begin_messages(self) -> None:
        """Count the messages of this connection from now on."""
        self._unread.connections.add(self)

    def _end_messages(self) -> None:
        self._unread.connections.discard(self)
        self._unread.held -= self.held
        self.held = self._unfinished = self._in_use = 0
        self._queue = None

    def close_unread(self) -> None:
        """Close the connection. Its reader gets an exception."""
        if self._queue is not None:
            code = aiohttp.WSCloseCode.MESSAGE_TOO_BIG
            self._queue.set_exception(aiohttp.WebSocketError(code, UNREAD_FULL))
        elif self._payload is not None:
            self._payload.set_exception(BadAnswer(UNREAD_FULL))
        self._end_messages()
        self.abort()

    @property
    def unread(self) -> int:
        """The counted bytes without the message in use."""
        return self.held - self._in_use

    def note_event(self, in_use: int, unfinished: int) -> None:
        """Count the event in use, or the unfinished event of a stream."""
        self._unfinished = unfinished
        self.note_read(in_use)

    def note_read(self, in_use: int) -> None:
        """Count the messages again. `in_use` is the size of the message that the reader is processing."""
        if self not in self._unread.connections:
            return
        self._in_use = in_use
        held = self._unfinished + in_use + (0 if self._queue is None else self._queue._size)  # noqa: SLF001
        self._unread.held += held - self.held
        self.held = held
        if self._unread.is_exceeded:
            self._unread.close_largest()

    def _check_framing(self) -> None:
        """End the connection if the framing is too large. The parser reports only the body, so it would accept an
        endless chunk extension."""
        payload = self._payload
        body = 0 if payload is None else payload.total_bytes
        if self._received - body <= MAX_FRAMING_BYTES + MAX_FRAMING_PER_BODY_BYTE * body:
            return
        error = FramingTooLarge(message="the framing is too large")
        if self.transport is not None:
            self.transport.abort()
        self.set_exception(error)
        if payload is not None:
            payload.set_exception(error)

    def _take_heads(self, received: bytearray) -> bytes:
        """Return the data that can be parsed: complete, repaired heads, and the body after the last head."""
        repaired = b""
        while received[:5] == _HTTP[: len(received)]:
            end = _HEAD_END.search(received)
            if end is None and len(received) <= MAX_HEAD_BYTES:
                self._head = received
                return repaired
            if end is None:
                break
            repaired += repair_head(bytes(received[: end.end()]))
            is_interim = received[8:10] == b" 1" and received[9:12] != b"101"
            received = received[end.end() :]
            if not is_interim:
                break
        self._head = None
        return repaired + received


def repair_head(head: bytes) -> bytes:
    """Correct faults that strict parsers reject: lines that end with CR CR LF, and a repeated length."""
    at = (lower := head.lower()).find(b"content-length")
    if b"\r\r" not in head and at == lower.rfind(b"content-length") and b"," not in head[at : head.find(b"\n", at)]:
        return head
    lines, lengths = [], set[bytes]()
    for line in _LINE_END.split(head):
        found = _LENGTH.fullmatch(line)
        stated = set() if found is None else {each.strip() for each in found[1].split(b",")}
        if len(stated) != 1:
            lines.append(line)
        elif stated != lengths:
            lines.append(b"Content-Length: " + b"".join(stated))
        lengths |= stated
    return b"\r\n".join(lines)


class DeviceConnector(aiohttp.TCPConnector):
    """Keeps idle connections for `keep_secs`. If `keep_secs` is None, a new connection is opened for each request."""

    def __init__(self, keep_secs: float | None = None) -> None:
        kept: dict[str, Any] = {"force_close": True} if keep_secs is None else {"keepalive_timeout": keep_secs}
        super().__init__(limit=0, resolver=DeviceResolver(), socket_factory=_open_socket, **kept)
        self._complete: set[ssl.SSLContext] = set()
        build: Callable[..., ResponseHandler] = _Protocol
        self._factory = partial(build, loop=self._loop, unread=UnreadMessages())

    def _get_ssl_context(self, req: ClientRequest) -> ssl.SSLContext | None:
        """Return the TLS context for the request. At the first use, load the system's certificates. See `imports`."""
        context = super()._get_ssl_context(req)
        if context is not None and req.ssl is True and context not in self._complete:
            self._complete.add(context)
            context.load_default_certs()
        return context

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """Return a connection for the request. Raise `ClientError`, or `TimeoutError` after two seconds."""
        if (idle := await self._get(req.connection_key, traces)) is not None:
            return idle
        async with time_limit(CONNECT_TIMEOUT_SECS):
            return await super().connect(req, traces, timeout)
