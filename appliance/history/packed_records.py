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
        self._forget()

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size(self) -> int:
        """The total bytes of all records."""
        return len(self._block)

    def add(self, record: tuple[Any, ...]) -> None:
        # `take` searches for the id, so a later format must not replace the id with a reference
        self._block += marshal.dumps((record[0], zlib.compress(marshal.dumps(record[1:]), _LEVEL)), 2)
        self._ends.append(len(self._block))

    def take(self, device_id: str) -> tuple[Any, ...] | None:
        """Remove and return the device's record, or return None if the device has no record."""
        word, at = device_id.encode(errors="surrogatepass"), -1
        while self._ends and (at := self._block.find(word, at + 1)) >= 0:
            index = bisect_right(self._ends, at)
            if self._read(index)[0] == device_id:
                return self._remove(index)
        return None

    def take_oldest(self) -> tuple[Any, ...]:
        return self._remove(0)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self._read, range(len(self)))

    def take_all(self) -> Iterator[tuple[Any, ...]]:
        yield from self
        self._forget()

    def _forget(self) -> None:
        self._block, self._ends = bytearray(), array("L")

    def _read(self, index: int) -> tuple[Any, ...]:
        first = self._ends[index - 1] if index else 0
        device_id, packed = marshal.loads(self._block[first : self._ends[index]])  # noqa: S302 - made by `add`
        return device_id, *marshal.loads(zlib.decompress(packed))  # noqa: S302 - made by `add`

    def _remove(self, index: int) -> tuple[Any, ...]:
        record, first = self._read(index), self._ends[index - 1] if index else 0
        size = self._ends[index] - first
        del self._block[first : first + size]
        self._ends = array("L", [*self._ends[:index], *(end - size for end in self._ends[index + 1 :])])
        return record
