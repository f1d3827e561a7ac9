"""The lock of the data directory, which allows one hub at a time. The lock file shows whether the previous hub
crashed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import stat
import time
from datetime import datetime
from pathlib import Path

from appliance.errors import StartFailed
from appliance.store.disk import for_its_user
from appliance.store.file_format import generations_of
from appliance.tables.plain_files import read_plain

log = logging.getLogger("store")

LOCK = "lock"

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_HELD = Path("/proc/locks")
"""The file in which the kernel lists locks, with the inodes of the locked files."""

MAX_LOCK_FILE_BYTES = 200
TRY_EVERY_SECS, MAX_TRIES = 0.05, 200
"""The pause in seconds between attempts to take a lock that a command holds briefly, and the maximum number of these
attempts: ten seconds in total."""

SIGNING_TRIES = 4
"""Maximum number of attempts to read the lock file while the holder has not yet written a process id."""

_BRIEF = b"brief "
"""The prefix of the lock file while a command holds the lock. The file's previous content follows."""

_STOPPING = b"stopping\n"
"""The text that follows the process id and boot id if a stop was requested."""

_STOPPED = b"stopped "
"""The prefix of the lock file after a clean stop. Without a clean stop, the file contains the hub's process id and
the machine's boot id."""


LOST = (
    "the lock was replaced, so another hub may use the data directory; make sure that no other hub runs there, and "
    "restart this hub"
)


class LockLost(OSError):
    """Raised once another process may hold the lock. This process never writes again, because it would overwrite the
    changes of the other process, even if that process has ended."""

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, LOST)


class DirectoryLock:
    """Holds the lock of the data directory from the object's creation until `release`.

    If another hub holds the lock, the constructor raises `StartFailed` with that hub's process id. A hub waits while
    a command briefly holds the lock (`is_brief`). A brief lock preserves the content of the file.

    - `stopped_at`: the time of the previous hub's clean stop, or None.
    - `was_cut_off`: whether the file lacks the record of a clean stop. A power cut can also empty the file, fill it
      with zeros, or remove it.
    - `is_crash`: whether a hub ended without releasing the lock, no stop was requested, and the machine has not
      restarted since.
    - `is_lost`: whether another process may have taken the lock since, because the lock file was deleted.
    """

    def __init__(self, folder: Path, *, is_brief: bool = False) -> None:
        self._folder = folder
        self.is_lost = False
        self._descriptor: int | None = _acquire(folder, 1 if is_brief else MAX_TRIES)
        is_file = not stat.S_ISDIR(os.fstat(self._descriptor).st_mode)
        self._place = folder / LOCK if is_file else folder
        self._folder_descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        before = _read(self._descriptor).removeprefix(_BRIEF)
        if not before and not _holds_document(folder):
            before = _stop_text(None)  # no hub has used the directory yet
        self._before = before
        self.stopped_at = _parse_stop(before)
        boot = read_boot_id().encode()
        self.was_cut_off = not before.startswith(_STOPPED)
        self.is_crash = bool(boot) and before[:1].isdigit() and before.split()[1:] == [boot]
        self._own = b"%d\n%b\n" % (os.getpid(), boot)
        self._sign(self._descriptor, _BRIEF + before if is_brief else self._own)

    def check_folder(self) -> None:
        """Raise `OSError` if the path no longer leads to the held lock. If the data directory was moved, replaced,
        or unmounted, writing could damage another hub's data. The check costs two system calls.

        If only the lock file was deleted, create and lock it again.
        """
        if self._descriptor is None:
            return
        if self.is_lost:
            raise LockLost
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._descriptor), self._place.stat(follow_symlinks=False)):
                return
        if not self._is_folder_in_place():
            raise OSError(errno.ESTALE, f"the data directory {self._folder} was moved, replaced, or unmounted")
        self._lock_again()

    def _is_folder_in_place(self) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(self._folder_descriptor), self._folder.stat())
        return False

    def _lock_again(self) -> None:
        """Replace a deleted lock file. Raise `LockLost` if another process has created the file, because this process
        may be another hub."""
        assert self._descriptor is not None
        descriptor, place = -1, self._place
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._sign(descriptor, _read(self._descriptor))
            os.dup2(descriptor, self._descriptor, inheritable=False)  # the event loop can use the number meanwhile
        except (FileExistsError, BlockingIOError):
            self.is_lost = True
            raise LockLost from None
        finally:
            if descriptor != -1:
                os.close(descriptor)
        log.warning("another program deleted %s; the hub created and locked it again", place)

    def record_stop(self) -> None:
        """Record the stop request, so that a later kill is not counted as a crash."""
        if self._descriptor is not None:
            self._sign(self._descriptor, self._own + _STOPPING)

    def record_stored(self, stopped_at: datetime | None) -> None:
        """Record a clean stop before the lock is released, because the rest of the stop may exceed its time limit."""
        if self._descriptor is not None:
            self._sign(self._descriptor, _stop_text(stopped_at))

    def release(self) -> None:
        """Release the lock, and restore the previous content of the file."""
        self._release(self._before)

    def release_after_stop(self, stopped_at: datetime | None) -> None:
        """Release the lock after a clean stop, and record the time for the next hub. None means that the time is
        unknown."""
        self._release(_stop_text(stopped_at))

    def release_after_fault(self) -> None:
        """Release the lock after a failure. The next hub counts this failure as a crash."""
        self._release(None)

    def _release(self, left: bytes | None) -> None:
        if self._descriptor is not None:
            if left is not None:
                self._sign(self._descriptor, left)
            os.close(self._descriptor)
            os.close(self._folder_descriptor)
            self._descriptor = None

    @staticmethod
    def _sign(descriptor: int, text: bytes) -> None:
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text, 0)
        except OSError:
            return  # without space on the card, the lock is valid without the holder's process id


def holder_of(folder: Path) -> str | None:
    """Return the process id of the hub that holds the data directory, or None. Never take the lock, because that
    could make a starting hub fail."""
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
    """Take the lock and return its descriptor. Retry while a command holds the lock."""
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


def _holds_document(folder: Path) -> bool:
    try:
        return bool(generations_of(each.name for each in folder.iterdir()))
    except OSError:
        return True


def _process_in(text: bytes) -> str:
    """Return the process id in the lock file. If the card is read-only, this is the id of an earlier hub."""
    return text.split()[0].decode() if text[:1].isdigit() else "unknown"


def read_boot_id() -> str:
    """Return the id of the machine's current boot, or an empty string if it is unreadable."""
    try:
        return _BOOT_ID.read_bytes().strip().decode("ascii", "replace")
    except OSError:
        return ""


def _read(descriptor: int) -> bytes:
    try:
        return os.pread(descriptor, MAX_LOCK_FILE_BYTES, 0)
    except OSError:
        return b""


def _stop_text(stopped_at: datetime | None) -> bytes:
    return _STOPPED + (b"" if stopped_at is None else stopped_at.isoformat().encode())


def _parse_stop(text: bytes) -> datetime | None:
    with contextlib.suppress(ValueError):
        if text.startswith(_STOPPED):
            stopped_at = datetime.fromisoformat(text.removeprefix(_STOPPED).decode("ascii", "replace"))
            return stopped_at if stopped_at.tzinfo is not None else None
    return None


def _open(file: Path) -> int:
    """Open the lock file, and create it if necessary. If the card is not writable, open the file for reading, or open
    the folder instead."""
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StartFailed(f"{file} is a symbolic link; remove it", os.EX_CANTCREAT) from None
        if isinstance(error, PermissionError):
            raise for_its_user(file.parent) from None
        if error.errno not in (errno.EROFS, errno.ENOSPC):
            raise StartFailed(f"cannot lock {file}: {error.strerror}", os.EX_CANTCREAT) from None
    with contextlib.suppress(FileNotFoundError):
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    return os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
