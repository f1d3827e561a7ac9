"""The server: one listening socket, served on the hub's own loop, and an end that never hangs."""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
from collections.abc import Callable
from typing import Any

from sanic import Sanic
from sanic.server import AsyncioServer

from appliance.api.auth import Authenticator
from appliance.api.connection import Connection
from appliance.api.limits import Limits
from appliance.clock import Clock
from appliance.errors import StartFailed
from appliance.settings import Address

BACKLOG = 512
CHECK_EVERY = 0.02

GOING_AWAY = 1001

OTHER_FILES = 128
"""File descriptors that the hub needs beside its clients' connections, and some more."""

log = logging.getLogger("api")


class Server:
    """Serves the application at the address from entering the context to leaving it.

    Making one raises `StartFailed` when the address cannot be had. Leaving takes no new connection, closes event
    streams with 1001, and gives requests in progress `limits.stop_secs` to end. Then it calls `give_up`, which is to
    end what they wait for, gives them `limits.last_words_secs` to say so, and cuts what is left.
    """

    def __init__(
        self,
        app: Sanic[Any, Any],
        authenticator: Authenticator,
        address: Address,
        limits: Limits,
        clock: Clock,
        *,
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._give_up = give_up
        self._clock = clock
        self._app = app
        self._authenticator = authenticator
        self._limits = limits
        self._socket = _bind(address)
        _make_room(limits.connections + OTHER_FILES)
        self._server: AsyncioServer | None = None

    @property
    def port(self) -> int:
        """The port that is served, also when the address left the choice to the system."""
        port: int = self._socket.getsockname()[1]
        return port

    async def __aenter__(self) -> Server:
        self._server = await self._app.create_server(
            sock=self._socket,
            protocol=Connection,
            backlog=BACKLOG,
            asyncio_server_kwargs={"start_serving": False},
        )
        assert self._server is not None
        await self._server.startup()
        await self._server.before_start()
        await self._server.start_serving()
        await self._server.after_start()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        listener: Any = self._server.server
        listener.close()
        await self._server.before_stop()
        await self._close_connections(self._server.connections)
        await self._server.after_stop()
        self._authenticator.close()
        Sanic.unregister_app(self._app)

    async def _close_connections(self, connections: set[Connection]) -> None:
        told: set[Connection] = set()
        await self._drain(connections, told, self._limits.stop_secs)
        if connections:
            self._give_up()
            await self._drain(connections, told, self._limits.last_words_secs)
        for connection in tuple(connections):
            connection.abort()
        await self._clock.sleep(0)

    async def _drain(self, connections: set[Connection], told: set[Connection], seconds: float) -> None:
        """Close each connection that was not told yet as soon as it answers nothing, for so many seconds at most."""
        deadline = self._clock.monotonic() + seconds
        while connections and self._clock.monotonic() < deadline:
            for connection in connections - told:
                if not connection.is_answering:
                    told.add(connection)
                    _close(connection)
            await self._clock.sleep(CHECK_EVERY)


def _close(connection: Connection) -> None:
    if connection.websocket is not None:
        connection.websocket.close(GOING_AWAY)
    else:
        connection.close()


def _make_room(files: int) -> None:
    """Ask the system for as many open files; many grant 1,024 until asked, and a full house could not store then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < files:
        log.warning("the system grants %d open files; api.max_connections and the hub need %d", most, files)


def _bind(address: Address) -> socket.socket:
    """A socket bound to the address; `[::]` takes IPv4 too."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio makes only those sockets send at once (TCP_NODELAY) whose protocol it is told
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise StartFailed(f"cannot listen at {address.host}: {error.strerror}", os.EX_UNAVAILABLE) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind(place)
    except OSError as error:
        bound.close()
        raise StartFailed(_why(error, address), os.EX_UNAVAILABLE) from None
    bound.setblocking(False)
    return bound


def _why(error: OSError, address: Address) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {address.port} is taken by another program (another hub?); stop it, or choose another port "
            "(api.bind_address, for the demo --port)"
        )
    if error.errno == errno.EACCES:
        return f"port {address.port} needs more rights than this user has; choose one from 1024 up"
    return f"cannot listen at {address.host} port {address.port}: {error.strerror}"
