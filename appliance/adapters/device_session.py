"""The session of all adapters: how connections to devices are opened, kept and closed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Literal

import aiohttp
import orjson
from aiohttp import AddrInfoType, ClientHandlerType, ClientRequest, ClientResponse
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from appliance.adapters.device_resolver import DeviceResolver
from appliance.adapters.http_errors import reason_of

CONNECT_TIMEOUT_SECS = 2.0
"""Seconds that a device has to accept a connection."""

KEEP_SECS = 1.0
"""Seconds that a connection is kept for any request; no known device closes an idle one sooner."""

LASTING_SECS = 60.0
"""Seconds that one is kept for requests that may be repeated: a device may have closed it meanwhile."""

GOODBYE_SECS = 1.0
"""Seconds that the last frame to a WebSocket may take; then the connection is closed without it."""

MAX_WAITING_RESPONSES = 8
"""Responses on a connection that nobody has read, interim ones (1xx) included."""

RECEIVE_BUFFER_BYTES = 16 * 1024
"""What the kernel holds of a connection: no more than that is parsed before others of the loop come."""


class DeviceSession:
    """The session for every adapter, until it is closed: connections that are kept briefly, and lasting ones.

    Those who ask for an address at most every minute keep one connection to it, as long as the device does.
    """

    def __init__(self) -> None:
        self.brief = _open(KEEP_SECS)
        self.lasting = _open(LASTING_SECS)

    async def __aenter__(self) -> DeviceSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self.brief.close()
        await self.lasting.close()


def _open(keep_secs: float) -> aiohttp.ClientSession:
    """No cookies, no proxies, no compression."""
    return aiohttp.ClientSession(
        connector=_Connector(keep_secs),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_SECS),
        headers={"User-Agent": "Lares", "Accept-Encoding": "identity"},
        json_serialize_bytes=orjson.dumps,
        auto_decompress=False,
        middlewares=(send_once,),
        ws_response_class=_PromptSocket,
    )


def _open_socket(address: AddrInfoType) -> socket.socket:
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    return opened


class _Protocol(ResponseHandler):
    """One connection, which is given up where more responses wait on it than were asked for."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if len(self._buffer) > MAX_WAITING_RESPONSES:
            self.abort()


class _Connector(aiohttp.TCPConnector):
    """Keeps connections, but never one whose request had `Connection: close`, even if the device keeps it open."""

    def __init__(self, keep_secs: float) -> None:
        super().__init__(keepalive_timeout=keep_secs, limit=0, resolver=DeviceResolver(), socket_factory=_open_socket)
        build: Callable[..., ResponseHandler] = _Protocol
        self._factory = partial(build, loop=self._loop)

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        if req.headers.get("Connection") == "close" and connection.protocol is not None:
            connection.protocol.force_close()
        return connection


class _PromptSocket(aiohttp.ClientWebSocketResponse[Literal[True]]):
    """Says goodbye and closes, without reading on until the other side does: that may send without end."""

    async def close(self, *, code: int = aiohttp.WSCloseCode.OK, message: bytes = b"") -> bool:
        self._close_code = self._close_code or code  # aiohttp waits for the other's only where it has none
        try:
            async with asyncio.timeout(GOODBYE_SECS):
                return await super().close(code=code, message=message)
        except TimeoutError:
            return False


async def send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Neither repeat a request that was cut off (`HttpClient` may) nor redirect the handshake of a WebSocket."""
    try:
        response = await handler(request)
        if response.status // 100 == 3 and "Upgrade" in request.headers:
            response.close()
            raise aiohttp.WSServerHandshakeError(response.request_info, (), status=response.status)
        return response
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _CutOff(reason_of(error)) from None


class _CutOff(aiohttp.ClientError):
    """The connection failed or ended before a response came."""
