"""The disk: the few operations by which the store touches files, so that tests can record, refuse and crash them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from appliance.store.file_names import PART
from appliance.tables.plain_files import read_plain

PRIVATE = 0o600


class Disk:
    """One folder of files. Every method may raise `OSError`; none is ever called on the event loop.

    `bytes_written` and `syncs` count what was asked of the device since the start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bytes_written = 0
        self.syncs = 0

    def list_names(self) -> list[str]:
        """The names of the folder's files, sorted."""
        return sorted(each.name for each in self.folder.iterdir())

    def read(self, name: str) -> bytes:
        """The whole content of a file; `FileNotFoundError` where there is none."""
        return read_plain(self.folder / name)

    def create(self, name: str) -> int:
        """Open a new file of this name for writing, in place of one that may exist; the descriptor."""
        return os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)

    def open(self, name: str) -> int:
        """Open a file that exists for writing; the descriptor."""
        return os.open(self.folder / name, os.O_RDWR | os.O_CLOEXEC)

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        """Write all of the data at the offset."""
        view = memoryview(data)
        while view:
            count = os.pwrite(descriptor, view, offset)
            self.bytes_written += count
            view, offset = view[count:], offset + count

    def allocate(self, descriptor: int, length: int) -> None:
        """Make the file this long and give it room for that; what is new reads as zeros and need not be written."""
        os.posix_fallocate(descriptor, 0, length)

    def sync(self, descriptor: int) -> None:
        """Return once what was written to the file is on the device, and its length too (fdatasync)."""
        self.syncs += 1
        os.fdatasync(descriptor)

    def sync_folder(self) -> None:
        """Return once the names in the folder are on the device."""
        self.syncs += 1
        with self._folder_descriptor() as descriptor:
            os.fsync(descriptor)

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut the file to this length."""
        os.ftruncate(descriptor, length)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in place of one that may have it."""
        (self.folder / old).replace(self.folder / new)

    def link(self, old: str, new: str) -> None:
        """Give a file a second name, or a copy where the filesystem has no links; nothing where that name exists."""
        try:
            os.link(self.folder / old, self.folder / new)
        except FileExistsError:
            return
        except FileNotFoundError:
            raise
        except OSError:
            self._copy(old, new)

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is not an error."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def close(self, descriptor: int) -> None:
        """Close a descriptor."""
        os.close(descriptor)

    def _copy(self, old: str, new: str) -> None:
        """Copy a file; a power cut never leaves half of it under the new name."""
        descriptor = self.create(new + PART)
        try:
            self.write(descriptor, self.read(old), 0)
            self.sync(descriptor)
        finally:
            self.close(descriptor)
        self.rename(new + PART, new)

    @contextlib.contextmanager
    def _folder_descriptor(self) -> Iterator[int]:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
