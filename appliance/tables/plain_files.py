"""Reads files safely, even if another user has replaced a file with a pipe, a folder, or a device."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

MAX_SECRET_BYTES = 64 << 10
"""Maximum size of a file with a password, a token, or a key."""


def read_plain(path: Path, max_bytes: int | None = None) -> bytes:
    """Return the content of a regular file. Never wait for the other end of a named pipe.

    Raise `OSError` with a sentence if the file is unreadable, not regular, or larger than `max_bytes`.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)) as stream:
        found = os.fstat(stream.fileno())
        mode, size = found.st_mode, found.st_size
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if max_bytes is None:
            return stream.read()
        if size <= max_bytes and len(data := read_at_most(stream, max_bytes + 1)) <= max_bytes:
            return data
    shown = f"{max_bytes >> 20} MiB" if max_bytes >= 1 << 20 else f"{max_bytes >> 10} KiB"
    raise OSError(errno.EFBIG, f"it is larger than {shown}", str(path))


def read_at_most(stream: IO[bytes], max_bytes: int) -> bytes:
    """Return the rest of the file, at most `max_bytes`. Allocate no more memory than the file needs, unless the file
    grows at the same time."""
    size = os.fstat(stream.fileno()).st_size
    data = stream.read(min(size + 1, max_bytes))
    return data if len(data) <= size else data + stream.read(max_bytes - len(data))
