"""The journal: JSON lines, one for each batch of changes, in a file that only grows until the next generation.

The first line names format, generation and the sequence number from which the records count on. Each further line is
a record `{"seq", "length", "put", "crc"}`: `put` maps keys to values, null for a key that is gone; `length` counts
the bytes of `put`; `crc` is the CRC-32 (as in zlib) of all before it. What follows the last record is zeros or
nothing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import orjson
from msgspec import Struct

from appliance.store.crc import CRC_BYTES, check_crc, with_crc
from appliance.store.disk import Disk
from appliance.store.file_names import STORE_FORMAT

PREALLOCATED = 256 * 1024
"""Bytes that the file is longer than its records, so that an append allocates nothing and leaves the length."""

BLOCK = 4096
"""Bytes that the card takes at once: zeros behind a record in its last block are written at no cost.

The next small records are then written over what is on the card already, which changes nothing else of the file.
"""

_START = re.compile(rb'\{"seq":\d')

EncodedChanges = Mapping[str, bytes | None]
"""Keys to their values as JSON bytes; None for a key that is removed."""


class JournalContents(Struct, frozen=True, kw_only=True):
    """What a journal file holds.

    `header` is None when its first line is damaged or missing. `end` is where good records end and `last` the line of
    the last one, `torn` counts the bytes behind it that are neither zeros nor records. `lost` counts good records
    behind damage.
    """

    header: dict[str, Any] | None
    records: tuple[dict[str, Any], ...]
    last: bytes
    end: int
    torn: int
    lost: int

    @property
    def is_damaged(self) -> bool:
        """Whether there is more wrong with the file than a write that was under way when the power went."""
        return self.header is None or self.lost > 0

    @property
    def sequence(self) -> int:
        """The sequence number of the last good record, or where the header begins."""
        if self.records:
            last: int = self.records[-1]["seq"]
            return last
        begins: int = 0 if self.header is None else self.header["sequence"]
        return begins


def read(data: bytes, generation: int) -> JournalContents:
    """What the bytes of this generation's journal hold; never raises."""
    line, newline, _ = data.partition(b"\n")
    header = check_crc(line) if newline else None
    if header is None or header.get("kind") != "journal" or header.get("generation") != generation:
        return JournalContents(header=None, records=(), last=b"", end=0, torn=len(data), lost=_count_records(data))
    last, position, records, sequence = b"", len(line) + 1, [], header["sequence"]
    while (found := _record_at(data, position)) is not None and found[0]["seq"] == sequence + 1:
        records.append(found[0])
        last, sequence, position = data[position : found[1]], sequence + 1, found[1]
    rest = data[position:]
    torn = len(rest.rstrip(b"\0"))
    return JournalContents(
        header=header, records=tuple(records), last=last, end=position, torn=torn, lost=_count_records(rest)
    )


def encode_header(generation: int, sequence: int) -> bytes:
    """The first line of a journal whose first record has the next sequence number."""
    header = {"format": STORE_FORMAT, "kind": "journal", "generation": generation, "sequence": sequence}
    return with_crc(orjson.dumps(header))


def encode_record(sequence: int, changes: EncodedChanges) -> bytes:
    """A record as a line with its checksum, newline included."""
    pairs = (b"%b:%b" % (orjson.dumps(key), b"null" if value is None else value) for key, value in changes.items())
    put = b"{%b}" % b",".join(pairs)
    return with_crc(b'{"seq":%d,"length":%d,"put":%b}' % (sequence, len(put), put))


class Journal:
    """A journal file that is open for appending, by one thread at a time.

    `end` is where its records end, `sequence` the number of the last. After a failed append it is unfit for more:
    close it, and `reopen` or begin another generation. `is_sync_broken`: a sync of the file has
    failed, so that it cannot be trusted again.
    """

    def __init__(self, disk: Disk, descriptor: int, end: int, sequence: int) -> None:
        self._disk = disk
        self._descriptor = descriptor
        self._allocated = self._filled = end
        self._allocates = True
        self.end = end
        self.sequence = sequence
        self.is_sync_broken = False

    @staticmethod
    def create(disk: Disk, name: str, generation: int, sequence: int) -> Journal:
        """A new journal without records, on the device when this returns; its name is not yet."""
        descriptor = disk.create(name)
        try:
            journal = Journal(disk, descriptor, 0, sequence)
            journal._commit(encode_header(generation, sequence))
        except OSError:
            disk.close(descriptor)
            raise
        return journal

    @staticmethod
    def reopen(disk: Disk, name: str, end: int, sequence: int, last: bytes = b"") -> Journal:
        """Open a journal behind its last good record; what stands behind that is cut off.

        `last` is that record's line where another process wrote it: it may have died before the record was on the
        device, or its sync may have failed, so it is written once more.
        """
        descriptor = disk.open(name)
        try:
            disk.truncate(descriptor, end)
            disk.write(descriptor, last, end - len(last))
            disk.sync(descriptor)
        except OSError:
            disk.close(descriptor)
            raise
        return Journal(disk, descriptor, end, sequence)

    def append(self, changes: EncodedChanges) -> None:
        """Append one record; on the device when this returns."""
        self._commit(encode_record(self.sequence + 1, changes))
        self.sequence += 1

    def close(self) -> None:
        """Close the file; nothing is written or synced."""
        self._disk.close(self._descriptor)

    def _commit(self, line: bytes) -> None:
        self._write(line)
        self.is_sync_broken = True
        self._disk.sync(self._descriptor)
        self.is_sync_broken = False
        self.end += len(line)

    def _write(self, line: bytes) -> None:
        """Write at the end, and zeros behind it up to the block's end if none are there and the file is so long."""
        end = self.end + len(line)
        if end > self._allocated and self._allocates:
            self._allocate(end + PREALLOCATED)
        filled = min(end + -end % BLOCK, self._allocated)
        if filled > self._filled:
            line, self._filled = line.ljust(filled - self.end, b"\0"), filled
        self._disk.write(self._descriptor, line, self.end)

    def _allocate(self, length: int) -> None:
        """Make the file longer; where the card has no room, or does not know how, it grows by each record."""
        try:
            self._disk.allocate(self._descriptor, length)
        except OSError:
            self._allocates = False
            with contextlib.suppress(OSError):  # the card may have given some, which others need more
                self._disk.truncate(self._descriptor, self._allocated)
        else:
            self._allocated = length


def _record_at(data: bytes, position: int) -> tuple[dict[str, Any], int] | None:
    """The record that begins at the position and where the next begins, or None."""
    end = data.find(b"\n", position)
    if end == -1 or (record := check_crc(data[position:end])) is None:
        return None
    put = data[position:end].partition(b',"put":')[2][:-CRC_BYTES]
    if not isinstance(record.get("put"), dict) or record.get("length") != len(put):
        return None
    return record, end + 1


def _count_records(data: bytes) -> int:
    """How many good records stand anywhere in the bytes, also behind a newline that is none any more."""
    return sum(_record_at(data, start.start()) is not None for start in _START.finditer(data))
