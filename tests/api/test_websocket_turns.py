"""Many clients of the event stream share an iteration of the event loop."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from appliance.api.http_server.websocket import WebSocket
from appliance.api.http_server.websocket_protocol import StrictProtocol
from appliance.api.limits import ApiLimits
from appliance.byte_budget import ByteBudget
from appliance.event_loop import SHORT_TURN_SECS, run


class SilentTransport(asyncio.Transport):
    """A transport that keeps the written bytes."""

    def __init__(self, ours: socket.socket) -> None:
        super().__init__({"socket": ours})
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def test_a_flood_of_one_client_waits_while_the_turn_is_long() -> None:
    async def flood() -> list[int]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            transport = SilentTransport(ours)
            stream = WebSocket(
                transport, StrictProtocol(1024), b"", ApiLimits(), "peer", ByteBudget(1 << 20), lambda: True
            )
            await asyncio.sleep(0)
            time.sleep(2 * SHORT_TURN_SECS)  # noqa: ASYNC251 - the work of other clients
            stream.receive(b"\x89\x80\0\0\0\0" * 3)
            sizes = [len(transport.written)]
            await asyncio.sleep(0.001)
            stream.on_connection_lost()
            return [*sizes, len(transport.written)]

    assert run(flood()) == [0, 3 * len(b"\x8a\x00")]
