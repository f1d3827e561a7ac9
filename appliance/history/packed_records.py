"""Records of removed devices in one block of memory."""

from __future__ import annotations

import marshal
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

_LEVEL = 1
"""The fastest compression. It halves a record."""


class PackedRecords:
    """Records of removed devices in one block of memory, oldest first. A record begins with the device's id, and is
    compressed except for the id.

    After a burst of removals, many small objects would occupy much memory, because Python returns only whole
    mebibytes to the system.
    """

    def __init__(self) -> None:
        self._block, self._start = bytearray(), 0
        self._ends = array("Q")
        """The ends of all records. The block begins at `_start`, so the ends stay the same if the oldest record is
        removed."""

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size(self) -> int:
        """The total bytes of all records."""
        return len(self._block)

    def add(self, record: tuple[Any, ...]) -> None:
        # `take` searches for the id, so a later format must not replace the id with a reference
        self._block += marshal.dumps((record[0], zlib.compress(marshal.dumps(record[1:]), _LEVEL)), 2)
        self._ends.append(self._start + len(self._block))

    def take(self, device_id: str) -> tuple[Any, ...] | None:
        """Remove and return the device's record, or return None if the device has no record."""
        word, at = device_id.encode(errors="surrogatepass"), -1
        while self._ends and (at := self._block.find(word, at + 1)) >= 0:
            index = bisect_right(self._ends, self._start + at)
            if self._read(index)[0] == device_id:
                return self._remove(index)
        return None

    def take_oldest(self) -> tuple[Any, ...]:
        record, end = self._read(0), self._ends.pop(0)
        del self._block[: end - self._start]
        self._start = end
        return record

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self._read, range(len(self)))

    def take_all(self) -> Iterator[tuple[Any, ...]]:
        yield from self
        self._block, self._start, self._ends = bytearray(), 0, array("Q")

    def _read(self, index: int) -> tuple[Any, ...]:
        device_id, packed = marshal.loads(self._block[self._place(index)])  # noqa: S302 - made by `add`
        return device_id, *marshal.loads(zlib.decompress(packed))  # noqa: S302 - made by `add`

    def _place(self, index: int) -> slice:
        """Return the record's place in the block."""
        first = self._ends[index - 1] if index else self._start
        return slice(first - self._start, self._ends[index] - self._start)

    def _remove(self, index: int) -> tuple[Any, ...]:
        record, place = self._read(index), self._place(index)
        del self._block[place]
        size = place.stop - place.start
        self._ends[index:] = array("Q", (end - size for end in self._ends[index + 1 :]))
        return record
