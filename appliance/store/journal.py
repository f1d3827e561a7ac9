"""The journal of one generation: appends records, and syncs each record."""

from __future__ import annotations

import contextlib
from io import BytesIO

from appliance.store.disk import PART, Disk
from appliance.store.file_format import EncodedChanges, encode_header, encode_record, has_crc, journal_name

PREALLOCATED = 256 * 1024
"""Bytes reserved after a journal's records, so that an append neither allocates space nor changes the file's
length."""

BLOCK = 4096
"""The size of the card's blocks in bytes. Filling the last block of a record with zeros costs nothing. The next
small records overwrite the zeros without changing the file's metadata."""


CHECKED_BYTES = 64
"""The length of the end of the last record, including the checksum, that is compared with the file before the next
append."""


class Journal:
    """A generation's journal. Once an append has failed, the journal can only be closed.

    - `end`: the offset after the last record.
    - `sequence`: the number of the last record.
    - `last`: the line of the last record if another process wrote it. The record is written again, because the other
      process may have failed to sync it.
    - `is_sync_broken`: whether a sync of the file has failed. After a failed sync, the journal accepts no further
      records.
    """

    def __init__(self, disk: Disk, generation: int, sequence: int, end: int = 0, last: bytes = b"") -> None:
        self._disk = disk
        self._generation = generation
        self._descriptor: int | None = None
        self._last = last
        self._expected = last[-CHECKED_BYTES:]
        self.end = end
        self.sequence = sequence
        self.is_sync_broken = False

    @property
    def is_open(self) -> bool:
        return self._descriptor is not None

    def create(self) -> None:
        """Create and open a journal without records. On return, the file's content is durable, but its name is
        not."""
        self._begin(self._disk.create(journal_name(self._generation) + PART))
        try:
            self._commit(encode_header(self._generation, self.sequence))
        except OSError:
            self.close()
            raise

    def open(self) -> None:
        """Open the file, and truncate it after its last valid record."""
        descriptor = self._disk.open(journal_name(self._generation))
        try:
            self._disk.truncate(descriptor, self.end)
            self._disk.write(descriptor, self._last, self.end - len(self._last))
            self._disk.sync(descriptor)
        except OSError:
            self._disk.close(descriptor)
            raise
        self._last = b""
        self._begin(descriptor)

    def append(self, changes: EncodedChanges) -> None:
        """Append one record. Return after the record is durable."""
        self._commit(encode_record(self.sequence + 1, changes))
        self.sequence += 1

    def is_intact(self) -> bool:
        """Return whether the file still ends with the last record, even if it is closed."""
        size = len(self._expected)
        if self._descriptor is not None:
            return self._disk.read_open(self._descriptor, size, self.end - size) == self._expected
        try:
            found = self._disk.read_part(journal_name(self._generation), self.end - size, size)
        except OSError:
            return False
        return found == self._expected

    def is_whole(self) -> bool:
        """Return whether each record in the file is still valid. This reads the whole file."""
        try:
            found = self._disk.read_part(journal_name(self._generation), 0, self.end)
        except OSError:
            return False
        return len(found) == self.end and all(has_crc(line.removesuffix(b"\n")) for line in BytesIO(found))

    def is_in_place(self) -> bool:
        """Return whether the open file still has its name. The next append takes longer, because the kernel then
        stores a more precise time of the write."""
        return self._descriptor is None or self._disk.is_at(self._descriptor, journal_name(self._generation))

    def close(self) -> None:
        """Close the file if it is open. Do not write or sync."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._disk.close(descriptor)

    def _begin(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._allocated = self._filled = self.end
        self._allocates = True

    def _commit(self, line: bytes) -> None:
        assert self._descriptor is not None
        self._write(self._descriptor, line)
        self.is_sync_broken = True
        self._disk.sync(self._descriptor)
        self.is_sync_broken = False
        self.end += len(line)
        self._expected = line[-CHECKED_BYTES:]

    def _write(self, descriptor: int, line: bytes) -> None:
        """Write after the last record. Fill the rest of the block with zeros if this rest is inside the file and not
        yet zero."""
        end = self.end + len(line)
        if end > self._allocated and self._allocates:
            self._allocate(descriptor, end + PREALLOCATED)
        filled = min(end + -end % BLOCK, self._allocated)
        if filled > self._filled:
            line, self._filled = line.ljust(filled - self.end, b"\0"), filled
        self._disk.write(descriptor, line, self.end)

    def _allocate(self, descriptor: int, length: int) -> None:
        """Reserve space after the records. If the card is full or cannot reserve space, the file grows with each
        record."""
        try:
            self._disk.allocate(descriptor, length)
        except OSError:
            self._allocates = False
            with contextlib.suppress(OSError):  # release space that the failed call may have allocated
                self._disk.truncate(descriptor, self._allocated)
        else:
            self._allocated = length
