"""All file operations of the store in one class, so that tests can record, reject, and interrupt them.

The function `write_file` writes a single file completely or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from appliance.errors import AccessDenied
from appliance.tables.plain_files import read_plain

PRIVATE, PRIVATE_FOLDER = 0o600, 0o700

PART = ".part"
"""The suffix of an incomplete file."""

MAX_STORE_FILE_BYTES = 256 << 20
"""Maximum size of a file that is read at once. The hub's own files are far smaller."""


FileState = tuple[int, int]
"""The size and modification time of a file or folder. If another program writes or replaces the file, or changes a
name in the folder, the state changes. The inode is omitted, because FAT and network file systems can assign another
inode to the same file."""


class Disk:
    """A folder of files. A name can include a subfolder, such as `history/2026-11.jsonl`.

    All methods block, so do not call them on the event loop. All methods can raise `OSError`. `bytes_written` and
    `syncs` are counted from the hub's start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._check_folder: Callable[[], None] = lambda: None
        self.bytes_written = 0
        self.syncs = 0

    def guard(self, check_folder: Callable[[], None]) -> None:
        """Register a function to call before each creation, renaming, or deletion. The function must raise
        `OSError` if the folder at the path was replaced."""
        self._check_folder = check_folder

    def check_folder(self) -> None:
        """Raise `OSError` if the folder at the path was replaced."""
        self._check_folder()

    def list_names(self, below: str = "") -> list[str]:
        """Return the sorted names of the files in the folder, or in the subfolder `below`."""
        return sorted(each.name for each in (self.folder / below).iterdir())

    def read(self, name: str) -> bytes:
        """Return the content of a file of at most `MAX_STORE_FILE_BYTES`. Raise `FileNotFoundError` if the file is
        missing."""
        return read_plain(self.folder / name, MAX_STORE_FILE_BYTES)

    def size(self, name: str) -> int:
        """Return the length of a file in bytes. Raise `FileNotFoundError` if the file is missing."""
        return (self.folder / name).stat().st_size

    def find_state(self, name: str = "") -> FileState | None:
        """Return the state of a file or of the folder, or None if the file is missing."""
        try:
            found = os.stat(f"{self.folder}/{name}")  # noqa: PTH116 - a `Path` would double the time of each check
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns

    def is_at(self, descriptor: int, name: str) -> bool:
        """Return whether the open file has this name."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), (self.folder / name).stat())
        return False

    def read_open(self, descriptor: int, max_bytes: int, offset: int) -> bytes:
        return os.pread(descriptor, max_bytes, offset)

    def read_part(self, name: str, offset: int, max_bytes: int) -> bytes:
        """Return at most `max_bytes` of a file, starting at the offset. If the offset is at or after the file's
        end, return empty bytes."""
        descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, max_bytes, offset)
        finally:
            os.close(descriptor)

    def free_bytes(self) -> int:
        """Return the free space in bytes that this user can use."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def make_folder(self, name: str, like: str | None = None) -> None:
        """Create a subfolder unless it exists. The subfolder gets the mode of the folder `like`, or is private if
        `like` is None. Call `sync_folder` to make the subfolder's name durable."""
        self.check_folder()
        mode = PRIVATE_FOLDER if like is None else stat.S_IMODE((self.folder / like).stat().st_mode)
        with contextlib.suppress(FileExistsError):
            (self.folder / name).mkdir(mode=mode)

    def create(self, name: str) -> int:
        """Create or replace a file for writing. Return its descriptor."""
        self.check_folder()
        return os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)

    def copy_access(self, descriptor: int, name: str) -> None:
        """Give a new open file the mode and owner of another file or folder. The owner of a folder is copied only if
        this user has permission to set the owner.

        If the mode comes from a folder, other users cannot read the new file, because it may contain secrets. Raise
        `PermissionError` if a file's owner cannot be copied.
        """
        like = (self.folder / name).stat()
        is_file = stat.S_ISREG(like.st_mode)
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except PermissionError:
            made = os.fstat(descriptor)
            if is_file and (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                raise
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode) if is_file else like.st_mode & 0o640)

    def open(self, name: str) -> int:
        self.check_folder()
        return os.open(self.folder / name, os.O_RDWR | os.O_CLOEXEC)

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        view = memoryview(data)
        while view:
            count = os.pwrite(descriptor, view, offset)
            self.bytes_written += count
            view, offset = view[count:], offset + count

    def write_synced(self, name: str, data: bytes, like: str | None = None) -> None:
        """Create or replace a file with the mode and owner of `like`. On return, the content is durable, but the
        file's name is not."""
        descriptor = self.create(name)
        try:
            if like is not None:
                self.copy_access(descriptor, like)
            self.write(descriptor, data, 0)
            self.sync(descriptor)
        finally:
            self.close(descriptor)

    def allocate(self, descriptor: int, length: int) -> None:
        """Extend the file with zeros to this length, and reserve the space."""
        os.posix_fallocate(descriptor, 0, length)

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        os.fdatasync(descriptor)

    def sync_folder(self, below: str = "") -> None:
        """Sync the folder, or the subfolder `below`. On return, the names in the folder are durable."""
        self.syncs += 1
        sync_folder(self.folder / below)

    def truncate(self, descriptor: int, length: int) -> None:
        os.ftruncate(descriptor, length)

    def rename(self, old: str, new: str) -> None:
        """Rename a file. Replace any file with the new name."""
        self.check_folder()
        (self.folder / old).replace(self.folder / new)

    def link(self, old: str, new: str) -> None:
        """Link a file to another name, or copy it if the filesystem has no links. Do nothing if the other name
        exists."""
        self.check_folder()
        try:
            os.link(self.folder / old, self.folder / new)
        except FileExistsError:
            return
        except FileNotFoundError:
            raise
        except OSError:
            self._copy(old, new)

    def remove(self, name: str) -> None:
        """Remove a file. A missing file is not an error."""
        self.check_folder()
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def _copy(self, old: str, new: str) -> None:
        """Copy a file. After a power cut, the copy is either complete or missing."""
        try:
            self.write_synced(new + PART, self.read(old))
            self.rename(new + PART, new)
        except OSError:
            self.remove(new + PART)
            raise


def for_its_user(path: str | Path) -> AccessDenied:
    """Return the error for a path that only root and the hub's user can access."""
    return AccessDenied(path, access_remedy(path))


def access_remedy(path: str | os.PathLike[str], *, is_root: bool = False) -> str:
    """Return the user's next step after this process was denied access to a path. `is_root` is whether root started
    this process."""
    uid = os.geteuid()
    with contextlib.suppress(OSError):
        if Path(path).absolute().parent.stat().st_uid == uid != 0:
            return f"run `sudo chown {user_name(uid)} {path}`, then `sudo chmod u+rwX {path}`"
    return "give the owner of the home access to it" if is_root else "use sudo"


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def write_file(file: Path, data: bytes, mode: int = 0o600) -> None:
    """Write or replace a file with this content and mode. The umask limits the mode. Return after the file is
    durable.

    A power cut leaves either the old or the new file. If writing fails, raise `OSError` and leave the old file
    unchanged.
    """
    part = file.with_name(file.name + PART)
    try:
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        part.replace(file)
        sync_folder(file.parent)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def reason_of(error: OSError) -> str:
    """Return the reason why a file or folder could not be replaced."""
    if error.errno == errno.EBUSY:
        return "a mount point cannot be replaced; mount its parent folder instead"
    return error.strerror or str(error)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the path to an `OSError` that names no path, such as the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def sync_folder(folder: Path) -> None:
    """Sync the folder. On return, the names in the folder are durable. Raise `OSError` on failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
