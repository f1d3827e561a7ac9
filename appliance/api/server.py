"""The server: one listening socket, served on the hub's own loop, and an end that never hangs.

It accepts connections within limits, so that a flood does not slow other clients. asyncio's own accepting takes a
whole backlog at once, and without a free file descriptor it logs a traceback and tries again each second, for every
connection that waits.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import struct
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Protocol

from sanic import Sanic

from appliance.api.connections import ApiLimits, Connections
from appliance.api.sanic_http.connection import StrictConnection
from appliance.clock import Clock
from appliance.errors import StartFailed
from appliance.tables.addresses import Address
from appliance.tasks import Tasks

BACKLOG = 4096
"""Connections that may wait to be accepted (the system may allow fewer); beyond, a client would wait a second."""

MAX_ACCEPTS_AT_ONCE = 16
"""Connections that one turn of the loop accepts, so that what others wait for comes in between."""

EXHAUSTED_PAUSE_SECS = 0.25
"""How long nothing is accepted when the system has no memory or file descriptor left."""

LOG_INTERVAL_SECS = 60.0

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log = logging.getLogger("api")

PeerOf = Callable[[socket.socket, Any], str | None]
"""As what an accepted connection is counted, by its socket and address; None for one that may not connect."""


def address_of(peername: Any) -> str:
    """The client's address; an IPv4 one as IPv4, also where a socket serves both families."""
    return str(peername[0]).removeprefix("::ffff:")


class Listener:
    """Accepts connections within the context. `connections` decides which are kept; others are closed at once.

    One whose `peer_of` is None is closed at once. One file descriptor is held in reserve: where none is free, a
    connection is accepted with it, to be closed.
    """

    def __init__(
        self,
        listening: socket.socket,
        connections: Connections,
        new_connection: Callable[[str], StrictConnection],
        peer_of: PeerOf = lambda _, address: address_of(address),
    ) -> None:
        self._socket = listening
        self._connections = connections
        self._new_connection = new_connection
        self._peer_of = peer_of
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._reserve: socket.socket | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._is_open = False
        self._unlogged = 0
        self._log_at = 0.0

    async def __aenter__(self) -> Listener:
        self._reserve = socket.socket()
        self._socket.listen(BACKLOG)
        self._is_open = True
        self._loop.add_reader(self._socket, self._accept_some)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self._tasks.__aexit__()

    def close(self) -> None:
        """Stop accepting, and close the socket."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._socket.close()
        if self._resume is not None:
            self._resume.cancel()
        if self._reserve is not None:
            self._reserve.close()

    def _accept_some(self) -> None:
        for _ in range(MAX_ACCEPTS_AT_ONCE):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._recover_from_exhaustion(error)
                return
            if (peer := self._peer_of(accepted, address)) is None:
                accepted.close()
            else:
                self._register(accepted, peer)

    def _register(self, accepted: socket.socket, peer: str) -> None:
        if (refusal := self._connections.find_refusal(peer)) is not None:
            accepted.close()
            self._log_refusal(refusal)
            return
        connection = self._new_connection(peer)
        self._connections.add(peer, connection)
        self._tasks.start(self._open(accepted, peer, connection), f"connection of {peer}")

    async def _open(self, accepted: socket.socket, peer: str, connection: StrictConnection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, accepted)
        except (OSError, asyncio.CancelledError):
            self._connections.remove(peer, connection)
            accepted.close()

    def _recover_from_exhaustion(self, error: OSError) -> None:
        """Close the first that waits with the descriptor in reserve, and accept nothing for a while."""
        if error.errno not in _EXHAUSTED:
            log.error("accepting a connection failed: %s", error.strerror)
        elif self._reserve is not None:
            self._reserve.close()
            self._reserve = None
            self._refuse_one()
            self._log_refusal(f"the system has none to spare ({error.strerror})")
        self._loop.remove_reader(self._socket)
        self._resume = self._loop.call_later(EXHAUSTED_PAUSE_SECS, self._resume_accepting)

    def _refuse_one(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except OSError:
            return
        accepted.close()
        self._connections.refused += 1

    def _resume_accepting(self) -> None:
        if self._reserve is None:
            try:
                self._reserve = socket.socket()
            except OSError:
                self._resume = self._loop.call_later(EXHAUSTED_PAUSE_SECS, self._resume_accepting)
                return
        self._loop.add_reader(self._socket, self._accept_some)

    def _log_refusal(self, why: str) -> None:
        """Log refusals as one line a minute, with their number."""
        self._unlogged += 1
        now = self._loop.time()
        if now >= self._log_at:
            self._log_at = now + LOG_INTERVAL_SECS
            log.warning("closed %d connection(s) at once: %s", self._unlogged, why)
            self._unlogged = 0


DRAIN_POLL_SECS = 0.02

GOING_AWAY = 1001

RESERVED_FILES = 256
"""File descriptors that clients' connections leave to the store, Lua, the adapters and all else."""

MAX_CONTROL_CONNECTIONS = 32
"""Connections of the control socket at a time; an idle one yields to a newcomer."""

ROOT = 0

log = logging.getLogger("api")


class Work(Protocol):
    """The work in progress besides requests."""

    def is_working(self, until: float) -> bool:
        """Whether something is in progress that may end by then, in seconds of the monotonic clock."""

    def abort_all(self) -> None:
        """End everything that is in progress, also what requests wait for."""


class Server:
    """Serves the application at the address from entering the context to leaving it.

    Making one binds the socket; raises `StartFailed` if that fails. Leaving takes no new connection, closes event
    streams with 1001, and gives requests and executions in progress `limits.stop_secs` to end. Then it aborts the
    `work`, gives requests `limits.abort_secs` to respond, and aborts the others.
    `control` is a bound Unix socket that serves the same to root and this process's user, who need no key.
    """

    def __init__(
        self,
        app: Sanic[Any, Any],
        address: Address,
        limits: ApiLimits,
        clock: Clock,
        *,
        work: Work,
        control: socket.socket | None = None,
    ) -> None:
        self._work = work
        self._clock = clock
        self._app = app
        self._limits = limits
        self._connections: set[StrictConnection] = set()
        self._control = control
        self._listeners = AsyncExitStack()
        self._socket = _bind(address)
        self._port: int = self._socket.getsockname()[1]
        files = _raise_file_limit(limits.connections + RESERVED_FILES)
        app.ctx.connections.capacity = min(limits.connections, max(files - RESERVED_FILES, files // 2))

    @property
    def port(self) -> int:
        """The port that is served, also when the address left the choice to the system."""
        return self._port

    async def __aenter__(self) -> Server:
        counted = self._app.ctx.connections
        self._open = [Listener(self._socket, counted, partial(self._new_connection, counted, is_on_box=False))]
        if self._control is not None:
            own = Connections(MAX_CONTROL_CONNECTIONS, MAX_CONTROL_CONNECTIONS, self._clock.monotonic)
            connect = partial(self._new_connection, own, is_on_box=True)
            self._open.append(Listener(self._control, own, connect, _allowed_user))
        for listener in self._open:
            await self._listeners.enter_async_context(listener)
        return self

    async def __aexit__(self, *_: object) -> None:
        for listener in self._open:
            listener.close()
        await self._close_connections(self._connections)
        await self._listeners.aclose()
        Sanic.unregister_app(self._app)

    def _new_connection(self, counted: Connections, peer: str, *, is_on_box: bool) -> StrictConnection:
        loop = asyncio.get_running_loop()
        more = {"loop": loop, "connections": self._connections}
        return StrictConnection(app=self._app, peer=peer, counted=counted, is_on_box=is_on_box, **more)

    async def _close_connections(self, connections: set[StrictConnection]) -> None:
        closing: set[StrictConnection] = set()
        until = self._clock.monotonic() + self._limits.stop_secs
        while self._clock.monotonic() < until and (connections or self._work.is_working(until)):
            await self._close_idle(connections, closing)
        self._work.abort_all()
        until = self._clock.monotonic() + self._limits.abort_secs
        while self._clock.monotonic() < until and connections:
            await self._close_idle(connections, closing)
        for connection in tuple(connections):
            connection.abort()
        await self._clock.sleep(0)

    async def _close_idle(self, connections: set[StrictConnection], closing: set[StrictConnection]) -> None:
        """Close each connection that handles no request, add it to `closing`, and wait a moment."""
        for connection in connections - closing:
            if not connection.is_answering:
                closing.add(connection)
                _close(connection)
        await self._clock.sleep(DRAIN_POLL_SECS)


def _close(connection: StrictConnection) -> None:
    if connection.websocket is not None:
        connection.websocket.close(GOING_AWAY)
    else:
        connection.close()


def _allowed_user(accepted: socket.socket, _: object) -> str | None:
    """A name for the connection of root or this process's own user, each counted by itself; None for any other's."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return f"user {uid}, connection {accepted.fileno()}" if uid in (ROOT, os.geteuid()) else None


def _raise_file_limit(files: int) -> int:
    """Raise the soft limit of open files to this many where the hard limit allows; return what is granted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    granted = files if hard == resource.RLIM_INFINITY else min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < granted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))
    if granted < files:
        log.warning("the system grants %d open files; api.max_connections and the hub need %d", granted, files)
    return granted


def _bind(address: Address) -> socket.socket:
    """A socket bound to the address; `[::]` takes IPv4 too."""
    host = address.host.encode(
        "ascii" if address.host.isascii() else "idna"
    )  # as text, Python imports its IDNA for it
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio makes only those sockets send at once (TCP_NODELAY) whose protocol is given
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
            f"port {address.port} is taken by another program (another hub?); stop it, or choose another port "
            "(api.bind_address, for the demo --port)"
        )
    if error.errno == errno.EACCES:
        return f"port {address.port} needs more rights than this user has; choose one from 1024 up"
    return f"cannot listen at {address.host} port {address.port}: {error.strerror}"
