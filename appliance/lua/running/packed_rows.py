"""Rows of running executions in compressed blocks, because hundreds of executions can run at the same time."""

from __future__ import annotations

import io
import marshal
import zlib
from typing import Any
from weakref import WeakSet

MAX_ROW_BYTES = 4 << 20
"""Maximum total size of the compressed rows of all running executions. Above this size, the longest list of rows
loses its oldest block."""

_BLOCK_BYTES = 2048
"""Rows of at least this total size are compressed together. The rows of one execution are similar."""

_LEVEL = 1
"""The fastest compression."""


class RowMemory:
    """Limits the total size of the rows of all running executions."""

    def __init__(self, max_bytes: int = MAX_ROW_BYTES) -> None:
        self._max_bytes = max_bytes
        self._every: WeakSet[PackedRows] = WeakSet()

    def add(self, rows: PackedRows) -> None:
        """Count the compressed rows until they are deleted. Drop old rows if all rows together are too large."""
        self._every.add(rows)
        while sum(each.size for each in self._every) > self._max_bytes:
            max(self._every, key=lambda each: each.size).drop_block()


class PackedRows:
    """Rows of one execution, oldest first.

    - `count`: the number of rows.
    - `size`: the total size of the compressed rows.
    """

    def __init__(self, memory: RowMemory) -> None:
        self._memory = memory
        self._blocks: list[tuple[int, bytes]] = []
        """The number of rows of each block, and the compressed rows."""
        self._latest = bytearray()
        self._latest_count = self.count = self.size = 0

    def add(self, row: tuple[Any, ...], keep: int) -> None:
        """Add a row of plain data. Drop blocks that are older than the newest `keep` rows."""
        self._latest += marshal.dumps(row)
        self._latest_count += 1
        self.count += 1
        while self._blocks and self.count - self._blocks[0][0] >= keep:
            self.drop_block()
        if len(self._latest) >= _BLOCK_BYTES:
            block = zlib.compress(self._latest, _LEVEL)
            self._blocks.append((self._latest_count, block))
            self.size += len(block)
            self._latest, self._latest_count = bytearray(), 0
            self._memory.add(self)

    def drop_block(self) -> None:
        """Drop the oldest compressed rows."""
        count, block = self._blocks.pop(0)
        self.count -= count
        self.size -= len(block)

    def list_newest(self, count: int) -> list[Any]:
        """Return at most `count` rows, oldest first."""
        rows: list[Any] = []
        blocks = [(number, zlib.decompress(each)) for number, each in self._blocks]
        for number, block in (*blocks, (self._latest_count, bytes(self._latest))):
            stream = io.BytesIO(block)
            rows += [marshal.load(stream) for _ in range(number)]  # noqa: S302 - made by `add`
        return rows[max(0, len(rows) - count) :]
