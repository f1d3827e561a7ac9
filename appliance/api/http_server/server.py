"""The API server. The server binds the sockets, accepts connections, and stops within a time limit."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import struct
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

from sanic import Sanic

from appliance.api.http_server.application import Application
from appliance.api.http_server.connection import Connection
from appliance.api.http_server.connection_limiter import ConnectionLimiter
from appliance.api.http_server.listener import Listener
from appliance.byte_budget import ByteBudget
from appliance.clock import Clock
from appliance.errors import StartFailed, Stopping
from appliance.tables.addresses import Address

DRAIN_POLL_SECS = 0.02

GOING_AWAY = 1001

RESERVED_FILES = 256
"""Number of file descriptors reserved for everything except clients: store, Lua, and adapters."""

MAX_CONTROL_CONNECTIONS = 32
"""Maximum number of connections to the control socket. Above this number, an idle connection is closed to make room
for a new one."""

ROOT = 0

log = logging.getLogger("api")


class Work(Protocol):
    """When the server stops, it waits for this work in addition to requests."""

    @property
    def stop_began(self) -> float:
        """The time of the stop request, in seconds of the monotonic clock."""

    def is_working(self, until: float) -> bool:
        """Return whether any running work could still end by `until`, a time in seconds of the monotonic clock."""

    async def abort_all(self) -> None:
        """Cancel all running work. Requests that are waiting for this work get an error."""


class Server:
    """Serves the application at the address while the context is open.

    The constructor binds the socket, and raises `StartFailed` on failure. On exit, the server accepts no new
    connections, closes event streams with 1001, and waits for requests and running executions until
    `limits.stop_secs` after the stop request. The server then aborts the `work`, waits up to `limits.abort_secs` for
    responses, and aborts the remaining connections.
    """

    def __init__(self, app: Application, address: Address, clock: Clock, *, work: Work) -> None:
        self._work = work
        self._clock = clock
        self._app = app
        self._limits = limits = app.limits
        self._frames = ByteBudget(limits.frames_bytes)
        self._connections: set[Connection] = set()
        self._control: Listener | None = None
        self._control_limiter = ConnectionLimiter(MAX_CONTROL_CONNECTIONS, MAX_CONTROL_CONNECTIONS, clock.monotonic)
        self._listeners = AsyncExitStack()
        self._socket = _bind(address)
        self._port: int = self._socket.getsockname()[1]
        files = _raise_file_limit(limits.connections + RESERVED_FILES)
        app.limiter.capacity = min(limits.connections, max(files - RESERVED_FILES, files // 2))

    @property
    def port(self) -> int:
        """Return the port in use. For port 0, this is the port that the system has chosen."""
        return self._port

    async def __aenter__(self) -> Server:
        limiter = self._app.limiter
        connect = partial(self._new_connection, limiter, is_on_box=False)
        await self._listeners.enter_async_context(Listener(self._socket, limiter, connect))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listeners.aclose()
        await self._close_connections()
        Sanic.unregister_app(self._app)

    async def serve_control(self, control: socket.socket) -> None:
        """Serve the same API, without a key, to root and to this process's user at this bound Unix socket. Close the
        previous Unix socket."""
        if self._control is not None:
            self._control.close()
        limiter = self._control_limiter
        connect = partial(self._new_connection, limiter, is_on_box=True)
        self._control = Listener(control, limiter, connect, _allowed_user)
        await self._listeners.enter_async_context(self._control)

    def _new_connection(self, limiter: ConnectionLimiter, peer: str, *, is_on_box: bool) -> Connection:
        return Connection(
            app=self._app,
            peer=peer,
            limits=self._limits,
            limiter=limiter,
            frames=self._frames,
            unsent=self._app.unsent,
            is_on_box=is_on_box,
            loop=asyncio.get_running_loop(),
            connections=self._connections,
        )

    async def _close_connections(self) -> None:
        closing: set[Connection] = set()
        until = self._work.stop_began + self._limits.stop_secs
        while self._clock.monotonic() < until and (self._connections or self._work.is_working(until)):
            await self._close_idle(closing)
        await self._work.abort_all()
        until = max(until, self._clock.monotonic()) + self._limits.abort_secs
        while self._clock.monotonic() < until and self._connections:
            await self._close_idle(closing)
        for connection in tuple(self._connections):
            connection.abort()
        await self._clock.sleep(0)

    async def _close_idle(self, closing: set[Connection]) -> None:
        """Close each connection without a request in progress, add it to `closing`, and wait a moment. Cancel the
        cancellable requests. The answers to the other requests are the last ones of their connections."""
        for connection in self._connections - closing:
            if connection.is_answering:
                connection.http.keep_alive = False
                if connection.is_cancellable:
                    connection.cancel_request(Stopping("the hub is stopping, so it cancelled the request"))
            else:
                closing.add(connection)
                _close(connection)
        await self._clock.sleep(DRAIN_POLL_SECS)


def _close(connection: Connection) -> None:
    if connection.websocket is not None:
        connection.websocket.close(GOING_AWAY)
    else:
        connection.close()


def _allowed_user(accepted: socket.socket, _: object) -> str | None:
    """Return a separate peer for each connection from root or this process's user, and None for other users."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return f"user {uid}, connection {accepted.fileno()}" if uid in (ROOT, os.geteuid()) else None


def _raise_file_limit(files: int) -> int:
    """Raise the soft limit of open files to this number, as far as the hard limit allows. Return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    granted = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    if granted < files:
        log.warning(
            "the system allows only %d open files, but api.max_connections and the hub need %d", granted, files
        )
    return granted


def _bind(address: Address) -> socket.socket:
    """Return a socket bound to the address. A socket bound to `[::]` also accepts IPv4."""
    # use bytes, because Python would import its IDNA codec for a `str`
    host = address.host.encode("ascii" if address.host.isascii() else "idna")
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio sets TCP_NODELAY only on sockets whose protocol is given
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
        raise StartFailed(_explain_bind_error(error, address), os.EX_UNAVAILABLE) from None
    bound.setblocking(False)
    return bound


def _explain_bind_error(error: OSError, address: Address) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {address.port} is used by another program (another hub?); stop that program, or choose "
            "another port with api.bind_address (for the demo, with --port)"
        )
    if error.errno == errno.EACCES:
        return f"this user is not permitted to use port {address.port}; choose a port from 1024 to 65535"
    return f"cannot listen at {address.host} port {address.port}: {error.strerror}"
