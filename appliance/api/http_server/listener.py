"""The listener accepts connections within limits, so that a flood does not slow other clients.

asyncio's server accepts the whole backlog at once. If no file descriptor is free, asyncio's server logs a traceback
each second for every waiting connection.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Any

from appliance.api.http_server.connection import Connection
from appliance.api.http_server.connection_limiter import ConnectionLimiter

BACKLOG = 4096
"""Maximum number of connections that wait to be accepted. The operating system may have a lower limit. Any further
clients retry after a second."""


MAX_ACCEPTS_AT_ONCE = 16
"""Maximum number of connections accepted per iteration of the loop, so that other tasks continue."""


EXHAUSTED_PAUSE_SECS = 0.25
"""Seconds in which no connection is accepted after the system has run out of memory or file descriptors."""


LOG_INTERVAL_SECS = 60.0


log = logging.getLogger("api")

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


PeerOf = Callable[[socket.socket, Any], str | None]
"""Returns the peer of an accepted connection. The arguments are the connection's socket and address. If the result is
None, the listener closes the connection."""


def address_of(peername: Any) -> str:
    """Return the client's address. An IPv4 address has IPv4 form, even if the socket serves both IPv4 and IPv6."""
    return str(peername[0]).removeprefix("::ffff:")


class Listener:
    """Accepts connections while the context is open. `limiter` decides which connections are kept.

    A connection is closed at once if it is not kept, or if `peer_of` returns None. One file descriptor is reserved.
    If no other descriptor is free, the listener uses the reserved descriptor to accept and close a connection.
    """

    def __init__(
        self,
        listening: socket.socket,
        limiter: ConnectionLimiter,
        new_connection: Callable[[str], Connection],
        peer_of: PeerOf = lambda _, address: address_of(address),
    ) -> None:
        self._socket = listening
        self._limiter = limiter
        self._new_connection = new_connection
        self._peer_of = peer_of
        self._loop = asyncio.get_running_loop()
        self._reserve: socket.socket | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._next_batch: asyncio.Handle | None = None
        self._is_open = False
        self._unlogged = 0
        self._log_at = 0.0

    async def __aenter__(self) -> Listener:
        self._reserve = socket.socket()
        self._socket.listen(BACKLOG)
        self._is_open = True
        self._loop.add_reader(self._socket, self._accept_ready)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop accepting, and close the socket."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._socket.close()
        for timer in (self._resume, self._next_batch):
            if timer is not None:
                timer.cancel()
        if self._reserve is not None:
            self._reserve.close()

    def _accept_ready(self) -> None:
        if self._next_batch is None:
            self._accept_batch()

    def _accept_batch(self) -> None:
        self._next_batch = None
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
        # do not wait for the selector: hundreds of ready sockets could precede the listening socket
        self._next_batch = self._loop.call_soon(self._accept_batch)

    def _register(self, accepted: socket.socket, peer: str) -> None:
        if (refusal := self._limiter.make_room(peer)) is not None:
            accepted.close()
            self._log_refusal(refusal)
            return
        connection = self._new_connection(peer)
        self._limiter.add(peer, connection)
        try:
            accepted.setblocking(False)
            # the public `connect_accepted_socket` also needs a task and a future per connection
            self._loop._make_socket_transport(accepted, connection)  # type: ignore[attr-defined]  # noqa: SLF001
        except OSError:
            self._limiter.remove(peer, connection)
            accepted.close()

    def _recover_from_exhaustion(self, error: OSError) -> None:
        """Use the reserved descriptor to accept and close the first waiting connection, and accept nothing for a
        while."""
        if error.errno not in _EXHAUSTED:
            log.error("accepting a connection failed: %s", error.strerror)
        elif self._reserve is not None:
            self._reserve.close()
            self._reserve = None
            self._refuse_one()
            self._log_refusal(f"the system has no free file descriptor or memory ({error.strerror})")
        self._loop.remove_reader(self._socket)
        self._resume = self._loop.call_later(EXHAUSTED_PAUSE_SECS, self._resume_accepting)

    def _refuse_one(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except OSError:
            return
        accepted.close()
        self._limiter.refused += 1

    def _resume_accepting(self) -> None:
        if self._reserve is None:
            try:
                self._reserve = socket.socket()
            except OSError:
                self._resume = self._loop.call_later(EXHAUSTED_PAUSE_SECS, self._resume_accepting)
                return
        self._loop.add_reader(self._socket, self._accept_ready)

    def _log_refusal(self, why: str) -> None:
        """Log at most one line per minute, with the number of refusals."""
        self._unlogged += 1
        now = self._loop.time()
        if now >= self._log_at:
            self._log_at = now + LOG_INTERVAL_SECS
            log.warning("refused %d connection(s): %s", self._unlogged, why)
            self._unlogged = 0
