"""One open WebSocket for events. From the client, only control frames are processed. The client's messages are
checked for size and UTF-8, and discarded."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State

from appliance.api.http_server.sockets import shutdown_write, unsent_bytes
from appliance.api.http_server.websocket_protocol import StrictProtocol
from appliance.api.limits import ApiLimits
from appliance.byte_budget import ByteBudget
from appliance.event_loop import is_turn_long

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
    of all clients exceed `frames`, the WebSocket that receives more bytes closes with 1013. `has_room` returns
    whether the send buffer has room. While the buffer is full, inbound data is not processed either. `on_writable` is
    called when the buffer has room again. `closed` completes when the connection is lost.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        protocol: StrictProtocol,
        answer: bytes,
        limits: ApiLimits,
        peer: str,
        frames: ByteBudget,
        has_room: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._protocol = protocol
        self._limits = limits
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.on_writable: Callable[[], None] = lambda: None
        self._has_room = has_room
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
        return self._has_room() and self._protocol.state is State.OPEN and not self._transport.is_closing()

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

    def resume(self) -> None:
        """Continue writing because the send buffer has room again."""
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
        if self._inbuf and self._has_room() and not is_turn_long():
            piece = bytes(self._inbuf[:MAX_READ_BYTES])
            del self._inbuf[:MAX_READ_BYTES]
            self._process_piece(piece)
        self._count_held()
        if not self._inbuf:
            self._transport.resume_reading()
            return
        self._transport.pause_reading()
        if self._has_room():
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
