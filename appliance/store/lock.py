"""The lock: one hub for each data directory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from appliance.errors import StartFailed
from appliance.store.names import LOCK


class Lock:
    """Holds the data directory from being made until it is released.

    Making one raises `StartFailed` when another process holds it, and names that process.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = _open(folder / LOCK)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(self._descriptor)
            self.release()
            raise StartFailed(
                f"the data directory {folder} is in use by another hub, process {holder}", os.EX_TEMPFAIL
            ) from None
        except OSError as error:
            self.release()
            raise StartFailed(f"cannot lock {folder}: {error.strerror}", os.EX_CANTCREAT) from None
        self._sign(self._descriptor)

    def release(self) -> None:
        """Let others have the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @staticmethod
    def _sign(descriptor: int) -> None:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        except OSError:
            return  # the lock holds all the same; only its holder's name is missing


def holder_of(folder: Path) -> str | None:
    """The process that holds the data directory, or None where none does."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _read_holder(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _read_holder(descriptor: int) -> str:
    try:
        return os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
    except OSError:
        return "unknown"


def _open(file: Path) -> int:
    """The lock file, made if need be; where the card takes none it is only read, or the folder stands for it."""
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.ENOSPC):
            raise StartFailed(f"cannot lock {file}: {error.strerror}", os.EX_CANTCREAT) from None
    with contextlib.suppress(FileNotFoundError):
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    return os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
