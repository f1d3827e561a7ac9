"""The control socket: a Unix socket in the data directory, through which local commands reach the running hub."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from appliance.clock import Clock

SOCKET = "control.sock"
MAX_PATH_BYTES = 107

SOCKET_CHECK_SECS = 10.0
"""Seconds between two checks whether the socket's file exists."""

log = logging.getLogger("hub")


class ControlSocket:
    """A Unix socket in the folder. If binding fails, the context logs an error. At the end, the context removes the
    socket's file, unless another hub has replaced it.

    - `bound`: the socket, or None if binding failed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SOCKET
        self._file: int | None = None
        self.bound: socket.socket | None = None

    def __enter__(self) -> ControlSocket:
        try:
            self.bind()
        except OSError as error:
            is_other = error.errno == errno.EADDRINUSE
            reason = "is not a socket; remove it and restart the hub" if is_other else error.strerror or error
            log.warning(
                "the control socket is missing, so commands cannot reach this hub: %s: %s", self._path, reason
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.bound is not None and self._file is not None:
            self.bound.close()
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(self._file), self._path.lstat()):
                    self._path.unlink()
            os.close(self._file)

    @property
    def is_missing(self) -> bool:
        """Whether the folder contains no control socket."""
        return not os.path.lexists(self._path)

    def bind(self) -> socket.socket:
        """Bind a new socket with mode 0600. Replace the socket of a killed hub. Raise `OSError` on failure."""
        if self._path.exists() and stat.S_ISSOCK(self._path.lstat().st_mode):
            self._path.unlink()
        bound = socket.socket(socket.AF_UNIX)
        try:
            os.fchmod(bound.fileno(), 0o600)  # Linux creates the socket's file with this mode
            with socket_path(self._path.parent) as short:
                bound.bind(short)
            bound.setblocking(False)
            # while the descriptor is open, no other file gets the inode, even if this file is deleted
            file = os.open(self._path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            bound.close()
            raise
        if self._file is not None:
            os.close(self._file)
        self.bound, self._file = bound, file
        return bound


async def restore_missing(
    control: ControlSocket,
    serve: Callable[[socket.socket], Awaitable[None]],
    check_folder: Callable[[], Awaitable[None]],
    clock: Clock,
) -> None:
    """Bind and serve a new socket whenever another program has deleted the socket's file. Run until cancelled. Log a
    failure once, until its reason changes.

    `check_folder` raises `OSError` if the data directory was replaced, because another hub may use it.
    """
    logged: str | None = None
    while True:
        await clock.sleep(SOCKET_CHECK_SECS)
        if not control.is_missing:
            logged = None
            continue
        try:
            await check_folder()
            await serve(control.bind())
            log.warning("the control socket was missing; the hub created it again")
        except OSError as error:
            if logged != (reason := error.strerror or str(error)):
                logged = reason
                log.warning("the control socket is missing, so commands cannot reach this hub: %s", reason)


@contextlib.contextmanager
def socket_path(folder: Path) -> Iterator[str]:
    """Yield a path to the socket. If the path is too long for a socket, yield a path through the open folder in
    `/proc`. Raise `OSError` on failure."""
    path = str(folder / SOCKET)
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield path
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
