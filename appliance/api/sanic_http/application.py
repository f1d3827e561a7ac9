"""Sanic's application without signals and middleware, which are not used here and cost half of its speed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import orjson
from sanic import Request, Sanic
from sanic.config import Config
from sanic.exceptions import NotFound

from appliance.api.api_limits import ApiLimits
from appliance.api.connections import Connections, TrustedProxies

_UNLIMITED_SECS = 7 * 86_400.0
"""Longer than any request; each part has time limits of its own."""

_UNLIMITED_BYTES = 1 << 60
"""Bodies are limited where they are read, and in `StrictHttp1` where they are discarded."""

_numbers = itertools.count(1)


class _NoSignal:
    """What is awaited in place of a signal; done at once."""

    def __await__(self) -> Iterator[None]:
        return iter(())


_NO_SIGNAL = _NoSignal()


class Application(Sanic[Any, Any]):
    """Sanic without signals and middleware at every step of a request, which cost half of its speed.

    Sanic's own remedy, TOUCHUP, rewrites its classes at start, which works for one application a process.
    """

    async def handle_request(self, request: Request) -> None:
        """Send the response of the request's route, or of the error that it raised."""
        try:
            request.route, handle, ids = self._find_route(request)
            response = await handle(request, **ids)
            if response is not None and request.stream is not None:
                http: Any = request.stream
                await http.send_response(response)
        except Exception as error:
            await self.handle_exception(request, error, run_middleware=False)

    def _find_route(self, request: Request) -> tuple[Any, Any, dict[str, Any]]:
        try:
            return self.router.get(request.path, request.method, None)
        except IndexError:  # Sanic's router fails so on a path like `//`
            raise NotFound(f"Requested URL {request.path} not found") from None

    def dispatch(self, event: str, **more: Any) -> Any:
        """Send a signal; those about requests are not sent, and return at once."""
        return _NO_SIGNAL if event.startswith(("http.", "server.exception.")) else super().dispatch(event, **more)


def build_application(limits: ApiLimits) -> Application:
    """An application without routes, in whose `ctx` are the limits and its connections."""
    app = Application(
        f"lares-{next(_numbers)}",
        config=Config(env_prefix=None),
        configure_logging=False,
        dumps=orjson.dumps,
        loads=orjson.loads,
    )
    app.ctx.limits = limits
    app.ctx.proxies = TrustedProxies(limits.trusted_proxies)
    app.ctx.connections = Connections(
        limits.connections,
        limits.connections_per_peer,
        lambda: asyncio.get_running_loop().time(),
        app.ctx.proxies.trusts,
    )
    app.config.update(
        {
            "ACCESS_LOG": False,
            "AUTO_EXTEND": False,
            "MOTD": False,
            "REQUEST_MAX_SIZE": _UNLIMITED_BYTES,
            "REQUEST_TIMEOUT": limits.head_secs,
            "RESPONSE_TIMEOUT": _UNLIMITED_SECS,
            "KEEP_ALIVE_TIMEOUT": limits.idle_secs,
            "TOUCHUP": False,
        }
    )
    return app
