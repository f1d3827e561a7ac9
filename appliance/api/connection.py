"""A connection: the bytes of one client, as requests or, once it was upgraded, as a WebSocket."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from sanic import Sanic
from sanic.exceptions import RequestCancelled
from sanic.server import HttpProtocol
from websockets.server import ServerProtocol

from appliance.api.exchange import Exchange
from appliance.api.limits import Limits
from appliance.api.websocket import WebSocket, count_untaken, say_no_more

LINGER_SECS = 1.0
"""How long a client is still heard after the last answer: hanging up on one that talks could take the answer away."""


class Peers:
    """Counts the open connections of each address. `refused` are those that were one too many, since the start."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: Counter[str] = Counter()
        self.count = 0
        self.refused = 0

    def admit(self, peer: str) -> bool:
        """Count one more of this peer, unless it is one too many."""
        if self.count >= self._limits.connections or self._open[peer] >= self._limits.connections_per_peer:
            self.refused += 1
            return False
        self.count += 1
        self._open[peer] += 1
        return True

    def leave(self, peer: str) -> None:
        """Count one less."""
        self.count -= 1
        self._open[peer] -= 1
        if not self._open[peer]:
            del self._open[peer]


class Connection(HttpProtocol):
    """Sanic's connection, which ends when its client takes nothing, and which carries our own WebSocket.

    `websocket` is None until `upgrade`.
    """

    HTTP_CLASS = Exchange

    __slots__ = ("_is_lingering", "_peer", "_peers", "limits", "websocket")

    def __init__(self, *, app: Sanic[Any, Any], **more: Any) -> None:
        super().__init__(app=app, **more)
        self.limits: Limits = app.ctx.limits
        self.websocket: WebSocket | None = None
        self._peers: Peers = app.ctx.peers
        self._peer: str | None = None
        self._is_lingering = False

    @property
    def is_answering(self) -> bool:
        """Whether a request is being handled or answered; Sanic's `Http` is true only then."""
        return self.websocket is None and bool(self.http)

    def upgrade(self, protocol: ServerProtocol, answer: bytes) -> WebSocket:
        """Speak WebSocket from now on, and end its handshake with the answer."""
        assert self.transport is not None
        self.http.upgrade_websocket = True
        self.websocket = WebSocket(self.transport, protocol, answer, self.limits)
        if not self._can_write.is_set():
            self.websocket.pause()
        early, self.recv_buffer = bytes(self.recv_buffer), bytearray()
        self.websocket.receive(early)
        return self.websocket

    async def send(self, data: bytes) -> None:
        """Write, when there is room for it; a client that takes nothing for `stall_secs` is cut off."""
        while not self._can_write.is_set():
            await self._wait_for_room()
        if self.transport is None or self.transport.is_closing():
            raise RequestCancelled
        self.transport.write(data)
        self._time = self.loop.time()

    async def _wait_for_room(self) -> None:
        before = self._count_untaken()
        try:
            async with asyncio.timeout(self.limits.stall_secs):
                await self._can_write.wait()
        except TimeoutError:
            if self._count_untaken() >= before:
                self.abort()
                raise RequestCancelled from None

    def _count_untaken(self) -> int:
        return 0 if self.transport is None else count_untaken(self.transport)

    def close(self, timeout: float | None = None) -> None:
        """Hang up: at once, or, after the last answer, when the client has done so or `LINGER_SECS` later."""
        has_ended = self._task is None and self.websocket is None
        if has_ended and not self._is_lingering and self.transport is not None and not self.transport.is_closing():
            self._is_lingering = True
            self.transport.resume_reading()
            say_no_more(self.transport)
            self.loop.call_later(LINGER_SECS, self.close)
        else:
            super().close(timeout)

    def abort(self) -> None:
        """Hang up at once, whatever is unsent."""
        super().abort()  # type: ignore[no-untyped-call]

    def connection_made(self, transport: Any) -> None:
        """Called by the loop at the start; one that is too many ends at once."""
        peer, *_ = transport.get_extra_info("peername") or ("",)
        if self._peers.admit(peer):
            self._peer = peer
            super().connection_made(transport)  # type: ignore[no-untyped-call]
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Called by the loop with what arrived."""
        if self.websocket is not None:
            self.websocket.receive(data)
        elif not self._is_lingering:
            super().data_received(data)

    def pause_writing(self) -> None:
        """Called by the loop when there is no more room."""
        super().pause_writing()  # type: ignore[no-untyped-call]
        if self.websocket is not None:
            self.websocket.pause()

    def resume_writing(self) -> None:
        """Called by the loop when there is room again."""
        super().resume_writing()  # type: ignore[no-untyped-call]
        if self.websocket is not None:
            self.websocket.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop at the end."""
        if self._peer is None:
            return
        self._peers.leave(self._peer)
        if self.websocket is not None:
            self.websocket.lose()
        super().connection_lost(exc)  # type: ignore[no-untyped-call]
