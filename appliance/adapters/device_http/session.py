"""The HTTP sessions that the adapters share: without cookies, redirects, proxies, or repetitions."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import aiohttp
import orjson
from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse

from appliance.adapters.device_http.connector import CONNECT_TIMEOUT_SECS, DeviceConnector
from appliance.adapters.device_http.errors import reason_of
from appliance.adapters.device_http.resolver import DeviceResolver
from appliance.adapters.device_http.web_socket import PromptSocket
from appliance.tasks import time_limit

LASTING_SECS = 60.0
"""How long an idle connection is kept, in seconds. Only repeatable requests use idle connections, because the
device may be closing the connection."""

HEADERS = {"User-Agent": "Lares", "Accept-Encoding": "identity"}
"""The headers of every request."""


class DeviceSession:
    """The sessions of all adapters. `fresh` opens a connection for each request; `lasting` reuses idle connections.

    If an address gets at least one request per minute, one connection to it remains open, provided that the device
    allows this.
    """

    def __init__(self) -> None:
        self._resolver = DeviceResolver()
        self.fresh = _open(DeviceConnector())
        self.lasting = _open(DeviceConnector(LASTING_SECS))

    def for_sockets(self, middlewares: Sequence[ClientMiddlewareType]) -> aiohttp.ClientSession:
        """Return a separate session with these middlewares for WebSocket handshakes. aiohttp can set middlewares only
        for a whole session, not for one handshake."""
        return _open(self.fresh.connector, middlewares, is_owner=False)

    async def resolve(self, host: str, port: int) -> str:
        """Return an address of the host, preferably IPv4. Raise `OSError` on failure."""
        async with time_limit(CONNECT_TIMEOUT_SECS):
            found = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
        return min(found, key=lambda each: each["family"] != socket.AF_INET)["host"]

    async def __aenter__(self) -> DeviceSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.fresh.close()
        await self.lasting.close()


def _open(
    connector: aiohttp.BaseConnector | None,
    middlewares: Sequence[ClientMiddlewareType] = (),
    *,
    is_owner: bool = True,
) -> aiohttp.ClientSession:
    """Return a session without cookies, proxies, or compression."""
    return aiohttp.ClientSession(
        connector=connector,
        connector_owner=is_owner,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        headers=HEADERS,
        json_serialize_bytes=orjson.dumps,
        auto_decompress=False,
        middlewares=(*middlewares, send_once),
        ws_response_class=PromptSocket,
    )


async def send_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Prevent aiohttp from repeating an interrupted request, and from redirecting a WebSocket handshake."""
    try:
        response = await handler(request)
        if response.status // 100 == 3 and "Upgrade" in request.headers:
            response.close()
            raise aiohttp.WSServerHandshakeError(response.request_info, (), status=response.status)
        return response
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _CutOff(reason_of(error)) from None


class _CutOff(aiohttp.ClientError):
    """Raised if the connection failed or ended before a response arrived."""
