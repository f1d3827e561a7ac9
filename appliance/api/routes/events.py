"""The event stream."""

from __future__ import annotations

import asyncio

from appliance.api.http_server.connection import connection_of
from appliance.api.http_server.websocket_protocol import accept_handshake
from appliance.api.roles import Role
from appliance.api.route import ApiResource, Call, route
from appliance.api.validation import whole_number
from appliance.tables.fields import Field

MAX_HEARTBEAT_SECS = 3600


_HEARTBEAT = {"heartbeat_secs": Field(whole_number(1, MAX_HEARTBEAT_SECS), required=False)}


class EventsApi(ApiResource):
    """Handler of `/events`."""

    @route("GET", "/events", Role.READ, statuses=(101, 400, 426), query=_HEARTBEAT, is_websocket=True)
    async def read(self, call: Call) -> None:
        """Open the stream of event frames as a WebSocket. With `heartbeat_secs`, also send `heartbeat` frames."""
        assert call.principal is not None
        interval = call.query()["heartbeat_secs"]
        connection = connection_of(call.request)
        socket = connection.upgrade(*accept_handshake(call.request, connection.limits))
        with self.parts.stream.subscribe(socket, call.principal.key_id) as reader:
            while interval is not None and not socket.closed.done():
                reader.beat()
                await asyncio.wait({socket.closed}, timeout=interval)
            await socket.closed
