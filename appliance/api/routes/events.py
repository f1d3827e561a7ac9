"""The event stream over WebSocket."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from sanic import Request
from sanic.exceptions import SanicException
from sanic.server.protocols.websocket_protocol import WebSocketProtocol
from sanic.server.websockets.impl import OPEN, WebsocketImplProtocol

from appliance.api.auth import Role
from appliance.api.limits import Limits
from appliance.api.route import Call, Route
from appliance.api.stream import EventStream
from appliance.errors import Invalid, UpgradeRequired
from appliance.home.bus import Mailbox
from appliance.tasks import Tasks

MOST_AT_ONCE = 64
"""Frames that one write carries at most, so that what waits for a slow reader waits where it is counted."""

INTERNAL_ERROR = 1011

log = logging.getLogger("api")


class Events:
    """What answers `/events`."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    async def read(self, call: Call) -> None:
        """Send every frame from now on, until the reader leaves or takes nothing for too long."""
        if call.request.headers.get("upgrade", "").lower() != "websocket":
            raise UpgradeRequired("this path is a WebSocket: connect with a WebSocket client")
        with self._stream.reader() as mailbox:
            socket, protocol = await _shake_hands(call.request)
            try:
                async with Tasks() as tasks:
                    tasks.start(_discard(socket), "reading of a client's messages")
                    await self._send_all(mailbox, protocol, call.limits)
            except Exception as error:
                log.error("event stream failed: %s: %s", type(error).__name__, error)
                log.debug("event stream", exc_info=error)
                socket.fail_connection(INTERNAL_ERROR)

    async def _send_all(self, mailbox: Mailbox[bytes], protocol: WebSocketProtocol, limits: Limits) -> None:
        socket = protocol.websocket
        while socket is not None and socket.ws_proto.state is OPEN:
            missed, frames = await mailbox.take(MOST_AT_ONCE)
            if missed:
                frames.insert(0, self._stream.lagged(missed))
            if not await _has_room(protocol, limits.stall_secs):
                log.info("event stream: closed a reader that took nothing for %g s", limits.stall_secs)
                protocol.abort()
                return
            if socket.ws_proto.state is OPEN:
                await protocol.send(b"".join(frames))


async def _shake_hands(request: Request) -> tuple[WebsocketImplProtocol, WebSocketProtocol]:
    protocol: Any = request.transport.get_protocol()
    try:
        return await protocol.websocket_handshake(request), protocol
    except SanicException as error:
        raise Invalid(f"the WebSocket handshake failed: {' '.join(str(error).split())}") from None


async def _discard(socket: WebsocketImplProtocol) -> None:
    """Take what the client says and forget it; without this its pongs would wait behind it."""
    while True:
        await socket.recv()


async def _has_room(protocol: WebSocketProtocol, patience: float) -> bool:
    """Wait until the socket takes more; false when it took not a byte for as long as patience lasts."""
    waiting: Any = protocol._can_write
    while not waiting.is_set():
        before = _unsent(protocol)
        try:
            async with asyncio.timeout(patience):
                await waiting.wait()
        except TimeoutError:
            if _unsent(protocol) >= before:
                return False
    return True


def _unsent(protocol: WebSocketProtocol) -> int:
    return protocol.transport.get_write_buffer_size() if protocol.transport is not None else 0


ROUTES = (
    Route(
        method="GET",
        path="/events",
        role=Role.READ,
        handler=Events.read,
        answers=(101, 400, 426),
        summary="The stream of event frames, as a WebSocket.",
        is_websocket=True,
    ),
)
