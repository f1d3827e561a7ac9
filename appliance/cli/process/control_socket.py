"""The control socket: a Unix socket in the data directory, through which local commands reach the running hub."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

SOCKET = "control.sock"
MAX_PATH_BYTES = 107

log = logging.getLogger("hub")


@contextlib.contextmanager
def control_socket(folder: Path) -> Iterator[socket.socket | None]:
    """Within the context, bind a socket in the folder. Remove the socket's file at the end, unless another hub has
    replaced it. If binding fails, log an error and yield None."""
    try:
        bound, file = _bind(folder)
    except OSError as error:
        is_other = error.errno == errno.EADDRINUSE
        reason = "is not a socket; remove it and restart the hub" if is_other else error.strerror or error
        log.warning(
            "the control socket is missing, so commands cannot reach this hub: %s: %s", folder / SOCKET, reason
        )
        yield None
        return
    try:
        yield bound
    finally:
        bound.close()
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file), (folder / SOCKET).lstat()):
                (folder / SOCKET).unlink()
        os.close(file)


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


def _bind(folder: Path) -> tuple[socket.socket, int]:
    """Bind a socket with mode 0600. Replace the socket of a killed hub. Return the socket and a descriptor of its
    file."""
    path = folder / SOCKET
    if path.exists() and stat.S_ISSOCK(path.lstat().st_mode):
        path.unlink()
    bound = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(bound.fileno(), 0o600)  # Linux creates the socket's file with this mode
        with socket_path(folder) as short:
            bound.bind(short)
        bound.setblocking(False)
        # while the descriptor is open, no other file gets the inode, even if this file is deleted
        file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        bound.close()
        raise
    return bound, file
