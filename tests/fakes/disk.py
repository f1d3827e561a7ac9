"""A disk in memory that logs all operations and fails on request.

From the log, `tests.store.cuts` derives the possible disk states after a power cut.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from appliance.store.disk import Disk, FileState

Image = Mapping[str, bytes]
"""The content of a disk, by file name."""

Refusal = Literal["ENOSPC", "EIO", "EROFS", "short"]
"""How an operation fails. With `short`, a write ends in the middle because the disk is full."""

Fault = Callable[[int, str], Refusal | None]
"""Decides whether the operation with this number and name fails."""


@dataclass(frozen=True, slots=True)
class Write:
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    file: int
    length: int


@dataclass(frozen=True, slots=True)
class Named:
    """A file got a name, by creating, linking, or renaming. `old` is the name before a rename."""

    file: int
    name: str
    old: str | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    file: int
    name: str


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync of a file, or of the folder if `file` is None."""

    file: int | None
    is_done: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """From this point on, a start may find these documents. If `may_be_damaged` is true, the start may also report
    damage."""

    allowed: tuple[dict[str, bytes], ...]
    may_be_damaged: bool = False


Event = Write | Truncate | Named | Removed | Sync | Mark
Content = Write | Truncate
Naming = Named | Removed

MAX_GRANTED_BYTES = 6 * 1024
"""Maximum number of bytes that a reservation adds to a file, so that images are small."""


class RecordingDisk(Disk):
    """A disk in memory. `log` contains the operations, `fault` decides which operations fail, and `refusals` counts
    the failures.

    `operations` lists the names of all calls.
    """

    def __init__(self, image: Image | None = None, *, most_granted: int = MAX_GRANTED_BYTES) -> None:
        super().__init__(Path("/in-memory"))
        self._most_granted = most_granted
        self.start: Image = dict(image or {})
        self.log: list[Event] = []
        self.operations: list[str] = []
        self.refusals = 0
        self.fault: Fault = lambda index, operation: None
        self._files = [bytearray(content) for content in self.start.values()]
        self._names = {name: number for number, name in enumerate(self.start)}
        self._open: dict[int, int] = {}
        self._broken: set[int] = set()
        self._next_descriptor = 100

    @property
    def open_descriptors(self) -> int:
        """Return the number of open descriptors."""
        return len(self._open)

    def forget_descriptors(self) -> None:
        """Close all files, as happens at the end of a process."""
        self._open.clear()
        self._broken.clear()

    def mark(self, mark: Mark) -> None:
        """Record the documents that a start may find from now on."""
        self.log.append(mark)

    def image(self) -> Image:
        """Return the content that a reader finds if there is no power cut."""
        return {name: bytes(self._files[number]) for name, number in self._names.items()}

    def list_names(self, below: str = "") -> list[str]:
        prefix = below and f"{below}/"
        names = [each.removeprefix(prefix) for each in self._names if each.startswith(prefix)]
        if below and not names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), below)
        return sorted(each for each in names if "/" not in each)

    def read(self, name: str) -> bytes:
        return bytes(self._files[self._number(name)])

    def size(self, name: str) -> int:
        return len(self._files[self._number(name)])

    def find_state(self, name: str = "") -> FileState | None:
        if not name:
            return 0, zlib.crc32(repr(self._names).encode())
        number = self._names.get(name)
        return None if number is None else (len(self._files[number]), zlib.crc32(self._files[number]))

    def is_at(self, descriptor: int, name: str) -> bool:
        return self._names.get(name) == self._open[descriptor]

    def read_open(self, descriptor: int, max_bytes: int, offset: int) -> bytes:
        return bytes(self._files[self._open[descriptor]][offset : offset + max_bytes])

    def read_part(self, name: str, offset: int, max_bytes: int) -> bytes:
        return bytes(self._files[self._number(name)][offset : offset + max_bytes])

    def free_bytes(self) -> int:
        return 1 << 30

    def make_folder(self, name: str, like: str | None = None) -> None:
        self._ask("make_folder")

    def create(self, name: str) -> int:
        self._ask("create")
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self._files)
            self._files.append(bytearray())
            self.log.append(Named(number, name))
        else:
            self._files[number].clear()
            self.log.append(Truncate(number, 0))
        return self._descriptor(number)

    def copy_access(self, descriptor: int, name: str) -> None:
        self._ask("copy_access")

    def open(self, name: str) -> int:
        self._ask("open")
        return self._descriptor(self._number(name))

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        number = self._trusted(descriptor)
        refusal = self._refusal("write")
        if refusal is not None:
            self._put(number, data[: len(data) // 2] if refusal == "short" else b"", offset)
            raise _error(refusal)
        self._put(number, data, offset)

    def allocate(self, descriptor: int, length: int) -> None:
        number = self._trusted(descriptor)
        self._ask("allocate")
        granted = min(length, len(self._files[number]) + self._most_granted)
        apply(self._files[number], Truncate(number, granted))
        self.log.append(Truncate(number, granted))

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        number = self._trusted(descriptor)
        refusal = self._refusal("sync")
        self.log.append(Sync(number, refusal is None))
        if refusal is not None:
            self._broken.add(descriptor)
            raise _error(refusal)

    def sync_folder(self, below: str = "") -> None:
        self.syncs += 1
        refusal = self._refusal("sync_folder")
        self.log.append(Sync(None, refusal is None))
        if refusal is not None:
            raise _error(refusal)

    def truncate(self, descriptor: int, length: int) -> None:
        self._ask("truncate")
        number = self._trusted(descriptor)
        apply(self._files[number], Truncate(number, length))
        self.log.append(Truncate(number, length))

    def rename(self, old: str, new: str) -> None:
        self._ask("rename")
        number = self._number(old)
        del self._names[old]
        self._names[new] = number
        self.log.append(Named(number, new, old))

    def link(self, old: str, new: str) -> None:
        self._ask("link")
        number = self._number(old)
        if new not in self._names:
            self._names[new] = number
            self.log.append(Named(number, new))

    def remove(self, name: str) -> None:
        self._ask("remove")
        if name in self._names:
            self.log.append(Removed(self._names.pop(name), name))

    def close(self, descriptor: int) -> None:
        del self._open[descriptor]
        self._ask("close")

    def _put(self, number: int, data: bytes, offset: int) -> None:
        if data:
            write = Write(number, offset, bytes(data))
            apply(self._files[number], write)
            self.log.append(write)
            self.bytes_written += len(data)

    def _trusted(self, descriptor: int) -> int:
        """Return the file of the descriptor, which must be open and without a failed sync."""
        assert descriptor not in self._broken, "a descriptor is used whose sync has failed"
        return self._open[descriptor]

    def _refusal(self, operation: str) -> Refusal | None:
        self.operations.append(operation)
        refusal = self.fault(len(self.operations) - 1, operation)
        self.refusals += refusal is not None
        return refusal

    def _ask(self, operation: str) -> None:
        refusal = self._refusal(operation)
        if refusal is not None:
            raise _error(refusal)

    def _number(self, name: str) -> int:
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return self._names[name]

    def _descriptor(self, number: int) -> int:
        self._next_descriptor += 1
        self._open[self._next_descriptor] = number
        return self._next_descriptor


def apply(content: bytearray, event: Content) -> None:
    if isinstance(event, Truncate):
        del content[event.length :]
        content.extend(bytes(event.length - len(content)))
        return
    content.extend(bytes(max(0, event.offset - len(content))))
    content[event.offset : event.offset + len(event.data)] = event.data


def _error(refusal: Refusal) -> OSError:
    number = {"ENOSPC": errno.ENOSPC, "short": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS}[refusal]
    return OSError(number, os.strerror(number))
