"""The Sanic application: its configuration, and the parts that all of its connections share."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import orjson
from msgspec import Struct
from sanic import Request, Sanic
from sanic.config import Config

from appliance.api.byte_budget import ByteBudget
from appliance.api.gate import Gate
from appliance.api.http_server.connection_limiter import ConnectionLimiter
from appliance.api.http_server.http1 import exchange_of
from appliance.api.http_server.proxies import TrustedProxies
from appliance.api.limits import ApiLimits

_UNLIMITED_SECS = 7 * 86_400.0
"""This time is longer than any request, because each part of a request has a separate time limit."""

_UNLIMITED_BYTES = 1 << 60
"""Disables Sanic's limit, because the hub limits bodies when it reads or discards them."""

READ_BYTES = 16 * 1024
"""Maximum number of received bytes that a connection holds before the request uses them."""

_numbers = itertools.count(1)


class _NoSignal:
    """An awaitable that replaces a signal and completes at once."""

    def __await__(self) -> Iterator[None]:
        return iter(())


_NO_SIGNAL = _NoSignal()


class ServedParts(Struct, frozen=True, kw_only=True):
    """The parts that all connections of an application share. The gate responds to the requests. The unfinished
    frames of all WebSockets share the budget `frames`."""

    gate: Gate
    limits: ApiLimits
    limiter: ConnectionLimiter
    proxies: TrustedProxies
    frames: ByteBudget


class Application(Sanic[Config, ServedParts]):
    """A Sanic application without signals and middleware, because they would halve the speed.

    Sanic's own optimization, TOUCHUP, rewrites Sanic's classes at the start. This works for only one application per
    process.
    """

    async def handle_request(self, request: Request) -> None:
        """Send the response of the request's route, or the response to the error that the route raised."""
        try:
            response = await self.ctx.gate.respond(request)
            if response is not None and request.stream is not None:
                await exchange_of(request).send_response(response)
        except Exception as error:
            await self.handle_exception(request, error, run_middleware=False)

    def dispatch(self, event: str, **more: Any) -> Any:
        """Send a signal, except signals about requests."""
        return _NO_SIGNAL if event.startswith(("http.", "server.exception.")) else super().dispatch(event, **more)


def build_application(gate: Gate, limits: ApiLimits) -> Application:
    """Return an application whose requests the gate answers."""
    proxies = TrustedProxies(limits.trusted_proxies)
    most, now = (limits.connections, limits.connections_per_peer), lambda: asyncio.get_running_loop().time()
    app = Application(
        f"lares-{next(_numbers)}",
        config=Config(env_prefix=None),
        ctx=ServedParts(
            gate=gate,
            limits=limits,
            limiter=ConnectionLimiter(*most, now, proxies.trusts),
            proxies=proxies,
            frames=ByteBudget(limits.frames_bytes),
        ),
        configure_logging=False,
        dumps=orjson.dumps,
        loads=orjson.loads,
    )
    app.error_handler.add(Exception, gate.handle_error)
    app.config.update(
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
    return app
