"""A log in memory with a size limit."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime
from heapq import heappop, heappush, nsmallest
from itertools import chain
from math import inf
from operator import attrgetter

from msgspec import Struct

from appliance.clock import to_millis
from appliance.history.entry_lines import Entry, EntryLines, read_lines
from appliance.history.period import Period

BLOCK_BYTES = 4096
"""If the latest entries of a subject have at least this size, they are compressed. Entries of one subject are
similar, so the compressed entries need about a sixth of the memory."""

BLOCK_OVERHEAD_BYTES = 200
"""Memory overhead of a compressed block in bytes."""

SUBJECT_OVERHEAD_BYTES = 500
"""Memory overhead of a subject in bytes, without its entries."""


class _Block(Struct, frozen=True, gc=False):
    """Compressed entries. `first` and `last` are the lowest and highest time in milliseconds since 1970."""

    first: int
    last: int
    entries: int
    compressed: bytes

    @property
    def size(self) -> int:
        return len(self.compressed) + BLOCK_OVERHEAD_BYTES


class _SubjectEntries:
    """The entries of a subject, oldest first: compressed blocks, then the latest entries."""

    __slots__ = ("blocks", "count", "latest", "size")

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self.latest = EntryLines()
        self.count = 0
        self.size = SUBJECT_OVERHEAD_BYTES

    def add(self, at: int, number: int, json: bytes) -> None:
        size = self.latest.size
        self.latest.add(at, number, json)
        self.count += 1
        self.size += self.latest.size - size
        if self.latest.size >= BLOCK_BYTES:
            self._compress_latest()

    def _compress_latest(self) -> None:
        times = [at for at, _, _ in self.latest]
        block = _Block(min(times), max(times), len(times), zlib.compress(self.latest.copy()))
        self.blocks.append(block)
        self.size += block.size - self.latest.size
        self.latest = EntryLines()

    def drop_oldest(self) -> None:
        """Drop the oldest block of entries, or if there is no block, the oldest entry."""
        if self.blocks:
            block = self.blocks.pop(0)
            self.count -= block.entries
            self.size -= block.size
        else:
            size = self.latest.size
            self.latest.drop_oldest()
            self.count -= 1
            self.size += self.latest.size - size


class BoundedLog:
    """Entries as JSON in at most `max_bytes`. Each entry belongs to a subject.

    Each subject keeps its latest `max_entries` if the memory suffices. If the memory is full, the subject with the
    most bytes loses its oldest entries. `count` is the number of entries ever added.
    """

    def __init__(self, max_bytes: int, max_entries: float = inf) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._subjects: dict[str, _SubjectEntries] = {}
        self._bytes = self.count = 0

    def add(self, subject: str, at: datetime, json: bytes) -> None:
        """Add an entry. The JSON must be one line."""
        self.count += 1
        if (entries := self._subjects.get(subject)) is None:
            entries = self._subjects[subject] = _SubjectEntries()
            self._bytes += entries.size
        size = entries.size
        entries.add(to_millis(at), self.count, json)
        self._bytes += entries.size - size
        if entries.blocks and entries.count - entries.blocks[0].entries >= self._max_entries:
            self._drop_oldest(subject)
        while self._bytes > self._max_bytes:
            self._drop_oldest(max(self._subjects, key=lambda each: self._subjects[each].size))

    def _drop_oldest(self, subject: str) -> None:
        entries = self._subjects[subject]
        self._bytes -= entries.size
        entries.drop_oldest()
        if entries.count:
            self._bytes += entries.size
        else:
            del self._subjects[subject]

    def iterate_entries(self, period: Period, subject: str | None = None) -> Iterator[bytes]:
        """Yield the period's entries, newest first, of one subject or of all subjects. Decompress a block only if its
        entries are needed. Later changes of the log have no effect."""
        if subject is None:
            chosen = [*self._subjects.values()]
        else:
            chosen = [self._subjects[subject]] if subject in self._subjects else []
        first, last = period.bounds_ms()
        blocks = [block for each in chosen for block in each.blocks if block.first <= last and block.last >= first]
        blocks.sort(key=attrgetter("last"))
        latest = chain.from_iterable(_read_negative(each.latest.copy(), period) for each in chosen)
        return _iterate_newest(period, blocks, nsmallest(period.max_entries, latest))

    def figures(self) -> dict[str, int]:
        """Return the number and size of the stored entries, and the number of entries since the hub's start."""
        entries = sum(each.count for each in self._subjects.values())
        kept = {"bytes": self._bytes, "max_bytes": self._max_bytes, "entries": entries}
        return {**kept, "recorded": self.count}


def _read_negative(lines: bytes, period: Period) -> list[Entry]:
    """Return the period's entries with negative times and numbers, so that the newest entry is the smallest."""
    first, last = period.bounds_ms()
    return [(-at, -number, json) for at, number, json in read_lines(lines) if first <= at <= last]


def _iterate_newest(period: Period, blocks: list[_Block], newest: list[Entry]) -> Iterator[bytes]:
    """Yield the period's entries in the blocks and in the heap `newest`, newest first. The blocks are sorted by
    `last`. The heap has negative times and numbers."""
    for left in range(period.max_entries, 0, -1):
        while blocks and (not newest or -newest[0][0] <= blocks[-1].last):
            for each in _read_negative(zlib.decompress(blocks.pop().compressed), period):
                heappush(newest, each)
            if len(newest) > 2 * left:
                newest = nsmallest(left, newest)
        if not newest:
            return
        yield heappop(newest)[2]
