"""The server side of the event WebSocket. From the client, only control frames are processed. The client's
messages are checked for size and UTF-8, and discarded."""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import logging
import socket
import sys
import termios
from collections.abc import Callable, Sequence

from sanic import Request
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader, InvalidUpgrade
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from appliance.api.byte_budget import ByteBudget
from appliance.api.http_server.http1 import http1_of
from appliance.api.limits import ApiLimits
from appliance.errors import MalformedRequest, UpgradeRequired
from appliance.event_loop import is_turn_long

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


NO_PONG = 1011

SEND_BUFFER_BYTES = 64 * 1024
"""Requested size of the socket's send buffer. Linux doubles this size. The buffer is small, so that unsent frames
wait in the reader's queue."""

MAX_READ_BYTES = 1024
"""Number of bytes from a client that are processed per iteration of the loop: at most 170 pings, which take a few
milliseconds."""

log = logging.getLogger("api")


class WebSocket:
    """One open WebSocket. `answer` is the response that ends the handshake; `peer` is the client's address.

    The WebSocket sends a ping every `ping_secs`, and closes with 1011 if the client does not answer before the next
    ping. If the client reads nothing for `stall_secs`, the WebSocket aborts the connection. If the unfinished frames
    of all clients exceed `frames`, the WebSocket that receives more bytes closes with 1013. `on_writable` is called
    when the send buffer has room again. `closed` completes when the connection is lost.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        protocol: StrictProtocol,
        answer: bytes,
        limits: ApiLimits,
        peer: str,
        frames: ByteBudget,
    ) -> None:
        self._transport = transport
        self._protocol = protocol
        self._limits = limits
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.on_writable: Callable[[], None] = lambda: None
        self._has_room = True
        self._frames = frames
        self._held_bytes = 0
        self._inbuf = bytearray()
        self._is_input_scheduled = False
        self._abort_timer: asyncio.TimerHandle | None = None
        self._written = 0
        self._progress: tuple[int | None, float] = (None, 0.0)
        self._ping_at = self._loop.time() + limits.ping_secs
        self._is_pong_due = False
        self._watch = self._process_later()
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self.write(answer)

    @property
    def is_writable(self) -> bool:
        """Return whether frames may be written now."""
        return self._has_room and self._protocol.state is State.OPEN and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send encoded frames."""
        self._written += len(data)
        self._transport.write(data)

    def close(self, code: int, reason: str = "") -> None:
        """Send a Close frame. The connection ends when the client sends its Close frame, at the latest after
        `stop_secs`."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
            self._send_due()

    def receive(self, data: bytes) -> None:
        """Process data from the client."""
        self._inbuf += data
        if self._is_input_scheduled:
            self._count_held()
        else:
            self._process_input()

    def pause(self) -> None:
        """Stop writing because the send buffer is full. Until `resume`, inbound data is not processed either."""
        self._has_room = False

    def resume(self) -> None:
        """Continue writing because the send buffer has room again."""
        self._has_room = True
        if not self._is_input_scheduled:
            self._process_input()
        if self.is_writable:
            self.on_writable()

    def on_connection_lost(self) -> None:
        """End the timers, and break the reference cycles."""
        self._watch.cancel()
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        self.on_writable = lambda: None
        self._inbuf.clear()
        self._protocol.end()
        self._count_held()
        if not self.closed.done():
            self.closed.set_result(None)

    def _process_input(self) -> None:
        """Process some of the received data. Do nothing if other clients have already made this iteration of the loop
        long. Reading resumes when all data is processed and the replies are sent."""
        self._is_input_scheduled = False
        if self._inbuf and self._has_room and not is_turn_long():
            piece = bytes(self._inbuf[:MAX_READ_BYTES])
            del self._inbuf[:MAX_READ_BYTES]
            self._process_piece(piece)
        self._count_held()
        if not self._inbuf:
            self._transport.resume_reading()
            return
        self._transport.pause_reading()
        if self._has_room:
            self._is_input_scheduled = True
            self._loop.call_soon(self._process_input)

    def _count_held(self) -> None:
        """Count the bytes of the unfinished frame. Close the connection if the budget does not allow more bytes."""
        more = len(self._inbuf) + self._protocol.unfinished_bytes - self._held_bytes
        self._held_bytes += more
        self._frames.held += more
        if more > 0 and self._frames.is_exceeded:
            self._inbuf.clear()
            self._protocol.fail(
                CloseCode.TRY_AGAIN_LATER, "other clients use all of the memory for unfinished frames"
            )
            self._send_due()
            self._count_held()

    def _process_piece(self, piece: bytes) -> None:
        self._protocol.receive_data(piece)
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode is Opcode.PONG:
                self._is_pong_due = False
        self._send_due()

    def _send_due(self) -> None:
        """Send the data in the protocol's queue. An empty item ends the stream."""
        if due := self._protocol.data_to_send():
            self.write(b"".join(due))
        if not all(due):
            self._end()
        if self._protocol.close_expected() and self._abort_timer is None:
            self._abort_timer = self._loop.call_later(self._limits.stop_secs, self._transport.abort)

    def _end(self) -> None:
        """Close the connection. If the client has not sent its Close frame, only half-close, so that buffered frames
        are delivered."""
        if self._protocol.close_rcvd is not None:
            self._transport.close()
        else:
            shutdown_write(self._transport)

    def _process_later(self) -> asyncio.TimerHandle:
        return self._loop.call_later(min(self._limits.ping_secs, self._limits.stall_secs) / 4, self._check_alive)

    def _check_alive(self) -> None:
        """Abort the connection if the client reads nothing. Send a ping if one is due."""
        self._watch = self._process_later()
        now, waiting = self._loop.time(), unsent_bytes(self._transport)
        taken = self._written - waiting if waiting else None
        if taken is None or taken != self._progress[0]:
            self._progress = (taken, now)
        elif now - self._progress[1] >= self._limits.stall_secs:
            log.info(
                "event stream: closed the connection of %s, which read nothing for %g s",
                self._peer,
                self._limits.stall_secs,
            )
            self._transport.abort()
            return
        if now >= self._ping_at:
            self._ping_at = now + self._limits.ping_secs
            self._ping(is_idle=waiting == 0)

    def _ping(self, *, is_idle: bool) -> None:
        """Send a ping if the client has read everything. If unread data remains, no ping is necessary, because the
        progress in reading shows that the client is alive."""
        if not is_idle or self._protocol.state is not State.OPEN:
            self._is_pong_due = False
        elif self._is_pong_due:
            silent_secs = self._limits.ping_secs
            log.info(
                "event stream: closed the connection of %s, which did not answer a ping for %g s",
                self._peer,
                silent_secs,
            )
            self._protocol.fail(NO_PONG, "no pong")
            self._send_due()
        else:
            self._is_pong_due = True
            self._protocol.send_ping(b"lares")
            self._send_due()


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the number of bytes that the client has not acknowledged: the bytes in the write buffer and, on
    Linux, those in the socket."""
    ours = transport.get_write_buffer_size()
    try:
        systems = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return ours
    return ours + int.from_bytes(systems, sys.byteorder)


def shutdown_write(transport: asyncio.Transport) -> None:
    """Half-close: send nothing more but continue receiving. Abort if the client is gone."""
    try:
        transport.write_eof()
    except OSError:
        transport.abort()


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
