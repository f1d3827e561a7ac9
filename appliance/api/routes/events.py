"""The event stream over WebSocket."""

from __future__ import annotations

from typing import Any

from appliance.api.auth import Role
from appliance.api.route import Call, route
from appliance.api.sanic_http.connection import StrictConnection
from appliance.api.stream import EventStream
from appliance.api.websocket import accept_handshake


class EventsApi:
    """Handler of `/events`."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    @route("GET", "/events", Role.READ, statuses=(101, 400, 426), is_websocket=True)
    async def read(self, call: Call) -> None:
        """The stream of event frames, as a WebSocket."""
        assert call.principal is not None
        protocol, answer = accept_handshake(call.request, call.limits)
        transport: Any = call.request.transport
        connection: StrictConnection = transport.get_protocol()
        socket = connection.upgrade(protocol, answer)
        with self._stream.subscribe(socket, call.principal.key_id):
            await socket.closed
