"""The protocol of a WebSocket connection without I/O: the handshake, and strict checks of frames and messages."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from sanic import Request
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader, InvalidUpgrade
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from appliance.api.http_server.http1 import http1_of
from appliance.api.limits import ApiLimits
from appliance.errors import MalformedRequest, UpgradeRequired

SUBPROTOCOL = Subprotocol("lares.events")
"""The sub-protocol that the server selects. A browser offers this sub-protocol together with the sub-protocol that
contains the browser's token."""

_DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class MessageCheck:
    """Checks that each message of a client has at most `max_bytes` in all its frames, and that text is UTF-8."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._decoder: codecs.IncrementalDecoder | None = None

    def fault_of(self, frame: Frame) -> tuple[CloseCode, str] | None:
        """Return the reason why this frame must end the connection, or None. The frame's message may be
        incomplete."""
        if frame.opcode not in _DATA:
            return None
        if frame.opcode is not Opcode.CONT:
            self._size = 0
            self._decoder = codecs.getincrementaldecoder("utf-8")() if frame.opcode is Opcode.TEXT else None
        self._size += len(frame.data)
        if self._size > self._max_bytes:
            return CloseCode.MESSAGE_TOO_BIG, f"a message may have at most {self._max_bytes} bytes"
        return None if self._is_readable(frame) else (CloseCode.INVALID_DATA, "the text is not UTF-8")

    def _is_readable(self, frame: Frame) -> bool:
        try:
            if self._decoder is not None:
                self._decoder.decode(frame.data, final=frame.fin)
        except UnicodeDecodeError:
            return False
        return True


class StrictProtocol(ServerProtocol):
    """The protocol of the `websockets` package, with further checks that RFC 6455 requires.

    The package checks UTF-8 only when a message is read. The package's size limit for a message also counts a ping
    between two fragments.
    """

    def __init__(self, max_bytes: int) -> None:
        super().__init__(state=State.OPEN, max_size=(None, max_bytes))
        self._messages = MessageCheck(max_bytes)

    @property
    def unfinished_bytes(self) -> int:
        """The size of the incomplete frame that the parser holds."""
        return len(self.reader.buffer)

    def select_subprotocol(self, subprotocols: Sequence[Subprotocol]) -> Subprotocol | None:
        """Return the hub's sub-protocol if the client offers it."""
        return SUBPROTOCOL if SUBPROTOCOL in subprotocols else None

    def recv_frame(self, frame: Frame) -> None:
        """Process a frame. An invalid frame fails the connection, and later data is ignored."""
        super().recv_frame(frame)
        if (fault := self._messages.fault_of(frame)) is not None:
            self.fail(*fault)
        if frame.opcode in _DATA:
            frame.data = b""  # otherwise, the parser would keep the data until the next frame

    def end(self) -> None:
        """Discard an incomplete frame. Break the reference cycles of the parser and of the errors."""
        self.state = State.CLOSED
        self.parser.close()
        self.handshake_exc = self.parser_exc = None
        self.reader.discard()


def accept_handshake(request: Request, limits: ApiLimits) -> tuple[StrictProtocol, bytes]:
    """Return the protocol of a new WebSocket and the response that opens it.

    Raise `UpgradeRequired` or `MalformedRequest` on failure.
    """
    http1 = http1_of(request)
    # otherwise, the hub would read the body as frames
    if http1.request_body == "chunked" or http1.request_bytes_left:
        raise MalformedRequest("a WebSocket handshake must not have a body")
    handshake = _handshake_of(request)
    protocol = StrictProtocol(limits.message_bytes)
    response = protocol.accept(handshake)
    if (problem := protocol.handshake_exc) is not None:
        protocol.end()
        # the tracebacks would keep this frame and the connection in memory
        problem.__traceback__ = problem.__context__ = problem.__cause__ = None
        is_other_version = isinstance(problem, InvalidHeader) and problem.name == "Sec-WebSocket-Version"
        kind = UpgradeRequired if isinstance(problem, InvalidUpgrade) or is_other_version else MalformedRequest
        raise kind(f"this path is for WebSocket clients, and the handshake failed: {problem}")
    if request.method != "GET":
        protocol.end()
        raise UpgradeRequired("a WebSocket handshake must use GET")
    return protocol, response.serialize()


def _handshake_of(request: Request) -> Handshake:
    """Return the request's handshake headers.

    Raise `MalformedRequest` if a header is not ASCII, because `websockets` would fail.
    """
    headers = [
        (name, value)
        for name, value in request.headers.items()
        if name in ("connection", "upgrade") or name.startswith("sec-websocket-")
    ]
    if not all(value.isascii() for _, value in headers):
        raise MalformedRequest("the WebSocket handshake may only contain ASCII characters")
    return Handshake("/", Headers(headers), protocol=f"HTTP/{request.version}")


def encode_text_message(payload: bytes) -> bytes:
    """Return a text message as one unmasked frame (RFC 6455). The frame is the same for every client."""
    if len(payload) < 126:
        return b"\x81%c%b" % (len(payload), payload)
    if len(payload) < 1 << 16:
        return b"\x81\x7e%b%b" % (len(payload).to_bytes(2, "big"), payload)
    return b"\x81\x7f%b%b" % (len(payload).to_bytes(8, "big"), payload)
