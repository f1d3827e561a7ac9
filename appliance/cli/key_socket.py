"""The Unix socket in the data directory by which commands ask the hub that runs there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from appliance.cli.hub_client import SOCKET, socket_path
from appliance.clock import Clock
from appliance.tasks import Tasks

MAX_REQUEST_BYTES = 4096
PATIENCE_SECS = 2.0
"""How long a client may take to send its request, and to read the answer."""

LISTEN_RETRY_SECS = 1.0
MAX_CONNECTIONS = 8
ROOT = 0

log = logging.getLogger("keys")


class KeySocket:
    """Answers one request a connection, a line of JSON, with one line; for this user and root alone.

    `answer` is given each request, or None for what is none. Where there can be no socket the hub runs without, and
    says so.
    """

    def __init__(self, answer: Callable[[Any], Awaitable[dict[str, Any]]], data_dir: Path, clock: Clock) -> None:
        self._inquire = answer
        self._folder = data_dir
        self._clock = clock
        self._tasks = Tasks()
        self._listener: socket.socket | None = None
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)

    async def __aenter__(self) -> KeySocket:
        try:
            self._listener = _listen(self._folder)
        except OSError as error:
            log.warning("`lares key` cannot reach this hub: %s: %s", self._folder / SOCKET, error.strerror or error)
        else:
            self._tasks.start(self._accept(self._listener), "the socket of `lares key`")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        if self._listener is not None:
            self._listener.close()
            with contextlib.suppress(OSError):
                (self._folder / SOCKET).unlink()

    async def _accept(self, listener: socket.socket) -> None:
        """Accept up to MAX_CONNECTIONS; others wait, also while no more files may be opened."""
        while True:
            await self._room.acquire()
            try:
                peer, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError:
                self._room.release()
                await self._clock.sleep(LISTEN_RETRY_SECS)
                continue
            self._tasks.start(self._serve(peer), "a request of `lares key`")

    async def _serve(self, peer: socket.socket) -> None:
        """Answer a request that comes in time; close the connection of others, and of other users."""
        try:
            with peer, contextlib.suppress(OSError):
                if _uid_of(peer) in (ROOT, os.geteuid()):
                    await self._answer(peer)
        finally:
            self._room.release()

    async def _answer(self, peer: socket.socket) -> None:
        async with asyncio.timeout(PATIENCE_SECS):
            request = await _read_line(peer)
        reply = orjson.dumps(await self._inquire(request)) + b"\n"
        async with asyncio.timeout(PATIENCE_SECS):
            await asyncio.get_running_loop().sock_sendall(peer, reply)


async def _read_line(peer: socket.socket) -> Any:
    """The request, or None where it is none."""
    received = b""
    while b"\n" not in received and len(received) <= MAX_REQUEST_BYTES:
        piece = await asyncio.get_running_loop().sock_recv(peer, MAX_REQUEST_BYTES)
        if not piece:
            break
        received += piece
    try:
        return orjson.loads(received.partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return None


def _listen(folder: Path) -> socket.socket:
    """A listening socket of mode 0600 from its first moment, in place of one that a killed hub left."""
    path = folder / SOCKET
    if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(listener.fileno(), 0o600)  # Linux gives this mode to the name
        with socket_path(folder) as short:
            listener.bind(short)
        listener.listen(MAX_CONNECTIONS)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _uid_of(peer: socket.socket) -> int:
    """The user id of the process at the other end."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)
