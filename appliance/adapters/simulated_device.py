"""The base class of simulated devices: an HTTP server that can be unplugged and can simulate faults."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from appliance.clock import Clock
from appliance.tables.addresses import bracketed


class Faults(Struct, kw_only=True):
    """Faults of a device. By default, no fault is active. Each field can be changed at any time, and affects the next
    request."""

    delay: float = 0.0
    """Delay of every response, in seconds. The request takes effect at once, so a delayed reading is outdated."""
    silent: bool = False
    """Requests are accepted but never answered, and have no effect."""
    status: int | None = None
    """Every response has this status and, if set, the body `body`. Requests have no effect."""
    body: bytes | None = None
    """Every response has status 200 and these bytes under the vendor's content type. Requests have no effect."""
    stubborn: bool = False
    """Writes and key presses are answered with success, but have no effect."""
    lag: float = 0.0
    """Seconds until a write or a key press takes effect."""
    drop: int = 0
    """Number of further requests whose connection is closed without a response or an effect."""
    torn: int = 0
    """Number of further responses that are interrupted in the middle. The requests still take effect."""


class SimulatedDevice(ABC):
    """Simulates a vendor's device on this machine. The device listens inside its `async with` block while it is
    plugged in.

    `host` is an address. If `port` is 0, a free port is selected at the beginning of the block, and does not change
    later. If `tls` is true, the device uses HTTPS. `requests` holds method and path of every received request, in
    order, including requests that a fault left unanswered.
    """

    content_type: str
    """Content type of the vendor's responses."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._tls = tls
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        self._clock = Clock() if clock is None else clock
        self._pending: list[tuple[float, Callable[[], None]]] = []
        self._reserved: socket.socket | None = None
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The base URL, such as `http://127.0.0.1:40123`."""
        return f"{'http' if self._tls is None else 'https'}://{bracketed(self.host)}:{self.port}"

    async def __aenter__(self) -> Self:
        await self.plug_in()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.unplug()
        self._release()

    async def plug_in(self) -> None:
        """Listen again, in the same state as before. Raise OSError if the port is in use."""
        if self._runner is not None:
            return
        listener = self._reserve()
        runner = web.AppRunner(self._application(), access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        await web.SockSite(runner, listener, ssl_context=self._tls).start()
        self._runner = runner

    async def unplug(self) -> None:
        """Stop listening, and reset all connections. New connections are refused."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for site in runner.sites:
            await site.stop()
        self._reserved = None
        self._reserve()
        for connection in runner.server.connections if runner.server is not None else ():
            _abort(connection.transport)
        await runner.cleanup()

    def _reserve(self) -> socket.socket:
        # A socket that is bound but does not listen refuses connections, and reserves the port.
        if self._reserved is None:
            self._reserved = _bound(self.host, self.port)
            self.port = int(self._reserved.getsockname()[1])
        return self._reserved

    def _release(self) -> None:
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    @abstractmethod
    def _routes(self) -> Iterable[web.RouteDef]:
        """Return the vendor's routes."""

    def _note(self, request: web.Request, body: bytes) -> None:  # noqa: B027 - most need only `requests`
        """Record a request."""

    def _json(self, payload: Any, status: int = 200) -> web.Response:
        """Return a JSON response with the vendor's content type."""
        return web.Response(status=status, body=json.dumps(payload).encode(), content_type=self.content_type)

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        application.add_routes(self._routes())
        application.on_response_prepare.append(self._delay)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.path))
        self._note(request, body)
        if self.faults.drop > 0:
            self.faults.drop -= 1
            _abort(request.transport)
            await asyncio.Event().wait()  # wait until the server cancels the handler because the connection is closed
        if self.faults.silent:
            await asyncio.Event().wait()
        if self.faults.status is not None or self.faults.body is not None:
            status = self.faults.status or 200
            return web.Response(status=status, body=self.faults.body, content_type=self.content_type)
        response = await handler(request)
        if self.faults.torn > 0 and isinstance(response, web.Response):
            self.faults.torn -= 1
            await self._tear(request, response)
        return response

    async def _tear(self, request: web.Request, whole: web.Response) -> None:
        """Send the head of a response and half of its body, then reset the connection."""
        body = whole.body if isinstance(whole.body, bytes) else b""
        part = web.StreamResponse(status=whole.status, headers={"Content-Length": str(len(body) + 1)})
        part.content_type = self.content_type
        await part.prepare(request)
        await part.write(body[: len(body) // 2])
        _abort(request.transport)
        await asyncio.Event().wait()  # wait, as for `drop`

    async def _delay(self, request: web.Request, response: web.StreamResponse) -> None:
        if self.faults.delay > 0:
            await self._clock.sleep(self.faults.delay)

    def _take(self, change: Callable[[], None]) -> None:
        """Apply a write now, later, or never, depending on the faults."""
        if self.faults.stubborn:
            return
        if self.faults.lag > 0:
            self._pending.append((self._clock.monotonic() + self.faults.lag, change))
        else:
            self._apply_due_writes()
            change()

    def _apply_due_writes(self) -> None:
        """Apply delayed writes that are due. Each reading of the state calls this method first."""
        now = self._clock.monotonic()
        due = sorted((write for write in self._pending if write[0] <= now), key=lambda write: write[0])
        self._pending = [write for write in self._pending if write[0] > now]
        for _, change in due:
            change()


def _bound(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _abort(transport: asyncio.BaseTransport | None) -> None:
    # close() would wait for a client that does not read
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
