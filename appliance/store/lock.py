"""The lock: one hub per data directory. The lock file also shows whether the previous hub crashed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from datetime import datetime
from pathlib import Path

from appliance.errors import StartFailed
from appliance.store.disk import for_its_user
from appliance.tables.plain_files import read_plain

LOCK = "lock"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_HELD = Path("/proc/locks")
"""The kernel's list of held locks, by inode."""

MAX_LOCK_FILE_BYTES = 200
TRY_EVERY_SECS, MAX_TRIES = 0.05, 200
"""How a hub that starts waits until a command releases its brief lock: ten seconds at most."""

SIGNING_TRIES = 4
"""Retries while the holder has not written its process id yet."""

_BRIEF = b"brief "
"""The beginning of a lock file that a command holds for a moment; the previous content follows."""

_STOPPING = b"stopping\n"
"""The text after process id and boot id in the lock file of a hub that was asked to end."""

_STOPPED = b"stopped "
"""The beginning of the lock file of a hub that stopped cleanly; otherwise the file has the process id and the
machine's boot id."""


class DirectoryLock:
    """Holds the data directory from its creation until it is released.

    Creating one raises `StartFailed`, with the process id, if a hub holds the lock. A hub waits for a command's lock
    (`is_brief`), which leaves the file's content unchanged. `stopped_at` is when the previous hub stopped cleanly;
    None if it did not, or if that is unknown. `was_cut_off`: the previous process ended without releasing the lock;
    `is_crash`: in addition, it was not asked to end, and the machine has not restarted since.
    """

    def __init__(self, folder: Path, *, is_brief: bool = False) -> None:
        self._folder = folder
        self._descriptor: int | None = _acquire(folder, 1 if is_brief else MAX_TRIES)
        before = self._before = _read(self._descriptor).removeprefix(_BRIEF)
        self.stopped_at = _parse_stop(before)
        boot = read_boot_id().encode()
        self.was_cut_off = before[:1].isdigit()
        self.is_crash = bool(boot) and self.was_cut_off and before.split()[1:] == [boot]
        self._own = b"%d\n%b\n" % (os.getpid(), boot)
        self._sign(self._descriptor, _BRIEF + before if is_brief else self._own)

    def check_place(self) -> None:
        """Raise `OSError` unless the held lock is the one at the path; this costs two system calls.

        If it is not, the data directory was moved, replaced, or unmounted, and writing there would harm another hub.
        """
        if self._descriptor is None:
            return
        held, place = os.fstat(self._descriptor), self._folder
        if not stat.S_ISDIR(held.st_mode):
            place /= LOCK
        with contextlib.suppress(OSError):
            if os.path.samestat(held, place.stat(follow_symlinks=False)):
                return
        raise OSError(errno.ESTALE, f"the data directory {self._folder} was moved, replaced, or unmounted")

    def note_stop(self) -> None:
        """Note that the process was asked to end, so that its end never counts as a crash (`is_crash`)."""
        if self._descriptor is not None:
            self._sign(self._descriptor, self._own + _STOPPING)

    def release(self) -> None:
        """Let others use the directory; the file gets its previous content back."""
        self._release(self._before)

    def release_after_stop(self, stopped_at: datetime | None) -> None:
        """Release the lock after an orderly stop, and record its time, if known, for the next hub."""
        self._release(_STOPPED + (b"" if stopped_at is None else stopped_at.isoformat().encode()))

    def release_after_fault(self) -> None:
        """Release the lock after a failure, which counts as a crash for the next hub."""
        self._release(None)

    def _release(self, left: bytes | None) -> None:
        if self._descriptor is not None:
            if left is not None:
                self._sign(self._descriptor, left)
            os.close(self._descriptor)
            self._descriptor = None

    @staticmethod
    def _sign(descriptor: int, text: bytes) -> None:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text, 0)
        except OSError:
            return  # the lock is valid anyway; only its holder's name is missing


def holder_of(folder: Path) -> str | None:
    """Return the process id of the hub that holds the data directory; None if no hub does.

    It never takes the lock, even for a moment, because a hub that starts then would find the folder locked.
    """
    try:
        held = _HELD.read_text()
    except OSError:
        held = ""
    for place in (folder / LOCK, folder):
        try:
            inode = place.lstat().st_ino
        except OSError:
            continue
        if re.search(rf"^\d+: FLOCK +ADVISORY +WRITE .*:{inode} ", held, re.MULTILINE):
            with contextlib.suppress(OSError):
                text = read_plain(folder / LOCK, MAX_LOCK_FILE_BYTES)
                return None if text.startswith(_BRIEF) else _process_in(text)
            return "unknown"
    return None


def _acquire(folder: Path, tries: int) -> int:
    """Return the descriptor of the lock, now held; retry while another command holds it."""
    looks = 0
    for attempt in range(tries):
        descriptor = _open(folder / LOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read(descriptor)
            os.close(descriptor)
            is_brief = holder.startswith(_BRIEF)
            looks = 0 if is_brief else looks + 1
            if attempt == tries - 1 or looks > SIGNING_TRIES:
                who = "another command; try again" if is_brief else f"another hub, process {_process_in(holder)}"
                raise StartFailed(f"the data directory {folder} is in use by {who}", os.EX_TEMPFAIL) from None
            time.sleep(TRY_EVERY_SECS)
        except OSError as error:
            os.close(descriptor)
            raise StartFailed(f"cannot lock {folder}: {error.strerror}", os.EX_CANTCREAT) from None
        else:
            return descriptor
    raise AssertionError("no try was allowed")


def _process_in(text: bytes) -> str:
    """Return the process id in the file; on a read-only card, it is that of an earlier hub."""
    return text.split()[0].decode() if text[:1].isdigit() else "unknown"


def read_boot_id() -> str:
    """Return the id of the machine's present boot; empty if it cannot be read."""
    try:
        return _BOOT_ID.read_bytes().strip().decode("ascii", "replace")
    except OSError:
        return ""


def _read(descriptor: int) -> bytes:
    try:
        return os.pread(descriptor, MAX_LOCK_FILE_BYTES, 0)
    except OSError:
        return b""


def _parse_stop(text: bytes) -> datetime | None:
    with contextlib.suppress(ValueError):
        if text.startswith(_STOPPED):
            stopped_at = datetime.fromisoformat(text.removeprefix(_STOPPED).decode("ascii", "replace"))
            return stopped_at if stopped_at.tzinfo is not None else None
    return None


def _open(file: Path) -> int:
    """Return the lock file, created if necessary; if the card accepts no writes, open it for reading, or use the
    folder instead."""
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StartFailed(f"{file} is a symbolic link and not followed; remove it", os.EX_CANTCREAT) from None
        if isinstance(error, PermissionError):
            raise for_its_user(file.parent) from None
        if error.errno not in (errno.EROFS, errno.ENOSPC):
            raise StartFailed(f"cannot lock {file}: {error.strerror}", os.EX_CANTCREAT) from None
    with contextlib.suppress(FileNotFoundError):
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    return os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
