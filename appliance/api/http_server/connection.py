"""Reads the bytes of one client as requests or, after an upgrade, as WebSocket frames."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from sanic import Request
from sanic.exceptions import BadRequest, RequestCancelled, RequestTimeout
from sanic.http import Stage
from sanic.server import HttpProtocol

from appliance.api.http_server.connection_limiter import ConnectionLimiter
from appliance.api.http_server.http1 import StrictHttp1, http1_of
from appliance.api.http_server.sockets import disconnect_events, shutdown_write, unsent_bytes
from appliance.api.http_server.unsent_bytes import UnsentBytes
from appliance.api.http_server.websocket import WebSocket
from appliance.api.http_server.websocket_protocol import StrictProtocol
from appliance.api.limits import ApiLimits
from appliance.byte_budget import ByteBudget
from appliance.errors import TooManyConnections
from appliance.event_loop import wait_for_short_turn

READ_BYTES = 16 * 1024
"""Maximum number of received bytes that a connection holds before the request uses them."""

PART_BYTES = 64 << 10
"""Maximum size of a write. Asyncio copies the unsent part of a write into memory."""

MIN_READ_BYTES = 32 << 10
"""Minimum number of bytes that a client reads within `stall_secs` while an answer is waiting for it."""

FAIR_BYTES_PER_SEC = 16 << 10
"""If the memory for unsent bytes is full, clients that read more slowly than this are late."""

LINGER_SECS = 1.0
"""Maximum time for which the hub reads after the last response. Closing while the client sends would reset the
connection."""

DISCONNECT_CHECK_SECS = 1.0
"""While reading is paused, asyncio does not notice a disconnect, so the hub asks the system at this interval."""


class Connection(HttpProtocol):
    """A connection of Sanic that can be upgraded to a `WebSocket`, and that ends if the client stops reading.

    - `limiter`: counts this connection for `peer`.
    - `frames`: limits the unfinished frames of all WebSockets.
    - `unsent`: limits the unsent bytes of all connections.
    - `peer`: the client's address.
    - `websocket`: the WebSocket; None until `upgrade` is called.
    - `is_on_box`: whether the connection came over the control socket.

    The end timer runs after either side has closed its sending side. It then ends the connection.
    """

    HTTP_CLASS = StrictHttp1

    __slots__ = (
        "_accepted",
        "_body",
        "_disconnect_timer",
        "_end_timer",
        "_frames",
        "_is_input_over",
        "_limiter",
        "_proxy",
        "_slow_since",
        "_unsent",
        "_written",
        "is_cancellable",
        "is_on_box",
        "limits",
        "peer",
        "websocket",
    )

    def __init__(
        self,
        *,
        peer: str,
        limits: ApiLimits,
        limiter: ConnectionLimiter,
        frames: ByteBudget,
        unsent: UnsentBytes,
        is_on_box: bool,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.limits = limits
        self.websocket: WebSocket | None = None
        self.is_on_box = is_on_box
        self._limiter = limiter
        self._frames = frames
        self._unsent = unsent
        self._body = b""
        self._written = 0
        self._slow_since: float | None = None
        self.peer = peer
        self._proxy: str | None = peer if limiter.proxies.trusts(peer) else None
        self._end_timer: asyncio.TimerHandle | None = None
        self._disconnect_timer: asyncio.TimerHandle | None = None
        self._is_input_over = False
        self.is_cancellable = False

    @property
    def is_answering(self) -> bool:
        """Return whether a request is in progress."""
        return self.websocket is None and bool(self.http)

    @property
    def is_idle(self) -> bool:
        """Return whether the connection is open and has no unanswered request."""
        is_open = self.transport is not None and not self.transport.is_closing()
        return is_open and self.websocket is None and not self.is_answering and b"\r\n\r\n" not in self.recv_buffer

    def note_request(self, request: Request) -> None:
        """Count the connection for the client of the request. If the client has too many connections, raise
        `TooManyConnections`; the connection ends after the response."""
        if self._proxy is not None:
            client = self._limiter.proxies.client_of(self._proxy, request.headers)
            if not self._limiter.hand_over(self.peer, client, self):
                http1_of(request).abandon_body()
                raise TooManyConnections(client)
            self.peer = client
        self._limiter.refresh(self.peer, self)

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """Cancel the request in this context if the client closes its sending side, or if the server stops. The work
        has no effect except its answer."""
        if self._is_input_over:
            raise _client_left()
        self.is_cancellable = True
        try:
            yield
        finally:
            self.is_cancellable = False

    def cancel_request(self, error: Exception) -> None:
        """Cancel the request in progress, and answer with the error."""
        assert self._task is not None
        self.is_cancellable = False  # a second cancellation would interrupt the clean-up
        self.http.exception = error
        self._task.cancel()

    def upgrade(self, protocol: StrictProtocol, answer: bytes) -> WebSocket:
        """Upgrade the connection to a WebSocket. `answer` is the response that ends the handshake."""
        assert self.transport is not None
        self.http.upgrade_websocket = True
        has_room = self._can_write.is_set
        self.websocket = WebSocket(self.transport, protocol, answer, self.limits, self.peer, self._frames, has_room)
        early, self.recv_buffer = bytes(self.recv_buffer), bytearray()
        self.websocket.receive(early)
        return self.websocket

    async def send(self, head: bytes, body: bytes = b"") -> None:
        """Write the head and the body in parts. Return when the system has accepted everything. If the client reads
        fewer than `MIN_READ_BYTES` within `stall_secs`, close the connection.

        Raise `RequestCancelled` if the connection is closed.
        """
        self._body = body
        if len(body) > PART_BYTES:
            self._unsent.hold(self, 0, body)
        try:
            await self._send_part(head + body[:PART_BYTES])
            for at in range(PART_BYTES, len(body), PART_BYTES):
                await wait_for_short_turn()  # a client on the same machine may take megabytes without a pause
                await self._send_part(body[at : at + PART_BYTES])
        finally:
            self._body = b""
            self._unsent.release(self)
        self._slow_since = None
        self._time = self.loop.time()

    async def _send_part(self, data: bytes) -> None:
        if self.transport is None or self.transport.is_closing():
            raise RequestCancelled
        self._written += len(data)
        self.transport.write(data)
        while not self._can_write.is_set():
            await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        before = self._unsent_bytes()
        try:
            async with asyncio.timeout(self.limits.stall_secs):
                await self._can_write.wait()
        except TimeoutError:
            if self._unsent_bytes() > before - MIN_READ_BYTES:
                self.abort()
                raise RequestCancelled from None

    def late_secs(self) -> float:
        """Return how late the client is, compared with a client that reads at `FAIR_BYTES_PER_SEC`."""
        now: float = self.loop.time()
        taken = self._written - self._unsent_bytes()
        return now - (self._slow_since or now) - taken / FAIR_BYTES_PER_SEC

    def _unsent_bytes(self) -> int:
        return 0 if self.transport is None else unsent_bytes(self.transport)

    def close(self, timeout: float | None = None) -> None:
        """Close the connection. After the last response, wait at most `LINGER_SECS` for the client to close the
        connection first."""
        has_ended = self._task is None and self.websocket is None and not self._is_input_over
        if has_ended and self.transport is not None and not self.transport.is_closing():
            self._is_input_over = True
            self.transport.resume_reading()
            shutdown_write(self.transport)
            if self._end_timer is not None:
                self._end_timer.cancel()
            self._end_timer = self.loop.call_later(LINGER_SECS, self.close)
        else:
            super().close(timeout)

    def connection_made(self, transport: Any) -> None:
        # with asyncio's default, each connection could make the hub hold 256 KiB or more
        transport.max_size = READ_BYTES
        self._accepted = transport
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # `pause_writing` and `resume_writing` then report all unsent bytes

    def data_received(self, data: bytes) -> None:
        if self.websocket is not None:
            self.websocket.receive(data)
        elif not self._is_input_over:
            super().data_received(data)
            if self._disconnect_timer is None and self.transport is not None and not self.transport.is_reading():
                self._check_disconnect_later()

    def eof_received(self) -> bool:
        """Return whether to keep the connection after the client has closed its sending side. Some clients, such as
        `nc -N`, still wait for the response."""
        if self.websocket is not None or self.is_idle or self._is_input_over:
            return False
        self._is_input_over = True
        self._note_half_closed()
        self._data_received.set()
        return True

    def _check_disconnect_later(self) -> None:
        self._disconnect_timer = self.loop.call_later(DISCONNECT_CHECK_SECS, self._check_disconnect)

    def _check_disconnect(self) -> None:
        """If the client has disconnected while reading is paused, do the same as if the hub had read everything."""
        self._disconnect_timer = None
        if self.websocket is not None or self.transport is None or self.transport.is_closing():
            return
        if self.transport.is_reading():
            return
        events = disconnect_events(self.transport)
        if events & select.POLLERR:
            self.transport.abort()
            return
        if events & select.POLLRDHUP:
            self._note_half_closed()
        self._check_disconnect_later()

    def _note_half_closed(self) -> None:
        if self.is_cancellable:
            self.cancel_request(_client_left())
        elif self._end_timer is None:
            self._end_timer = self.loop.call_later(self.limits.half_closed_secs, self._end_half_closed)

    def _end_half_closed(self) -> None:
        """Close the connection. If a request is in progress (for example, a long scene), respond with a timeout
        first. If the client is still reading its answer, the connection ends after the answer."""
        if self._task is None or not self.is_answering:
            self.close()
            return
        if self.http.stage is Stage.RESPONSE:
            return
        since = f"{self.limits.half_closed_secs:g} s after the client had closed its side"
        self.cancel_request(RequestTimeout(f"the hub did not answer within {since}; the work continues"))

    async def receive_more(self) -> None:
        """Wait for bytes. Close the connection if no more bytes can arrive. Raise `BadRequest` if a body is
        incomplete."""
        before = len(self.recv_buffer)
        if not self._is_input_over:
            await super().receive_more()
        if self._is_input_over and len(self.recv_buffer) == before:
            if self.is_answering:
                raise BadRequest(
                    "the request ended before the end of its body: Content-Length or the last chunk is wrong"
                )
            self.close()
            await asyncio.Future()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._slow_since is None:
            self._slow_since, self._written = self.loop.time(), self._unsent_bytes()
        self._unsent.hold(self, self._accepted.get_write_buffer_size(), self._body)

    def resume_writing(self) -> None:
        super().resume_writing()
        if len(self._body) > PART_BYTES and self.transport is not None and not self.transport.is_closing():
            self._unsent.hold(self, 0, self._body)
        else:
            self._unsent.release(self)
        if self.websocket is not None:
            self._slow_since = None
            self.websocket.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limiter.remove(self.peer, self)
        for timer in (self._end_timer, self._disconnect_timer, self._callback_check_timeouts):
            if timer is not None:
                timer.cancel()  # a pending timer would keep the connection in memory
        if self.websocket is not None:
            self.websocket.on_connection_lost()
        self._accepted._read_ready_cb = None  # noqa: SLF001 - with it, asyncio's transport is a reference cycle
        super().connection_lost(exc)


def _client_left() -> RequestTimeout:
    return RequestTimeout("the client closed its side, so the hub cancelled the request")


def connection_of(request: Request) -> Connection:
    return cast("Connection", http1_of(request).protocol)
