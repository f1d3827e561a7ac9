"""The Sanic application: its configuration, and the calls of the API for each request."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from sanic import HTTPResponse, Request, Sanic
from sanic.config import Config

from appliance.api.http_server.connection import READ_BYTES, connection_of
from appliance.api.http_server.connection_limiter import ConnectionLimiter
from appliance.api.http_server.http1 import http1_of
from appliance.api.http_server.unsent_bytes import UnsentBytes
from appliance.api.limits import ApiLimits

_UNLIMITED_SECS = 7 * 86_400.0
"""This time is longer than any request, because each part of a request has a separate time limit."""

_UNLIMITED_BYTES = 1 << 60
"""Disables Sanic's limit, because the hub limits bodies when it reads or discards them."""

_numbers = itertools.count(1)


class Application(Sanic[Config, Any]):
    """A Sanic application without signals and middleware, because they would halve the speed.

    - `respond`: returns the response to a request, or None for a WebSocket.
    - `handle_error`: returns the response to a request that raised an error.
    - `limiter`: counts the connections from the network.
    - `unsent`: limits the unsent bytes of all connections.

    Sanic's own optimization, TOUCHUP, rewrites Sanic's classes at the start. This works for only one application per
    process.
    """

    __slots__ = ("_respond", "limiter", "limits", "unsent")

    def __init__(
        self,
        respond: Callable[[Request], Awaitable[HTTPResponse | None]],
        handle_error: Callable[[Request, Exception], Awaitable[HTTPResponse]],
        limits: ApiLimits,
        limiter: ConnectionLimiter,
        unsent: UnsentBytes,
    ) -> None:
        super().__init__(
            f"lares-{next(_numbers)}",
            config=Config(env_prefix=None),
            configure_logging=False,
            dumps=orjson.dumps,
            loads=orjson.loads,
        )
        self.limits = limits
        self.limiter = limiter
        self.unsent = unsent
        self._respond = respond
        self.error_handler.add(Exception, handle_error)
        self.config.update(
            {
                "ACCESS_LOG": False,
                "AUTO_EXTEND": False,
                "MOTD": False,
                "REQUEST_BUFFER_SIZE": READ_BYTES,
                "REQUEST_MAX_SIZE": _UNLIMITED_BYTES,
                "REQUEST_TIMEOUT": limits.head_secs,
                "RESPONSE_TIMEOUT": _UNLIMITED_SECS,
                "KEEP_ALIVE_TIMEOUT": limits.idle_secs,
                "TOUCHUP": False,
            }
        )

    async def handle_request(self, request: Request) -> None:
        """Send the response, or the response to the error that occurred."""
        try:
            connection_of(request).note_request(request)
            response = await self._respond(request)
            if response is not None and request.stream is not None:
                await http1_of(request).send_response(response)
        except Exception as error:
            await self.handle_exception(request, error, run_middleware=False)

    async def dispatch(self, event: str, **more: Any) -> Any:
        """Send no signal."""
