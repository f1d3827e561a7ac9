"""Entries in one block of memory."""

from __future__ import annotations

from collections.abc import Iterator

Entry = tuple[int, int, bytes]
"""The time in milliseconds since 1970, a number, and one line of JSON."""


class EntryLines:
    """Entries in one block of memory, oldest first.

    After a burst of entries, many small objects would occupy much memory, because each of them prevents the return of
    a page to the system.
    """

    __slots__ = ("_count", "_lines")

    def __init__(self) -> None:
        self._lines = bytearray()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """The total bytes of all entries."""
        return len(self._lines)

    def add(self, at: int, number: int, json: bytes) -> None:
        self._lines += b"%d %d %s\n" % (at, number, json)
        self._count += 1

    def drop_oldest(self) -> None:
        del self._lines[: self._lines.index(b"\n") + 1]
        self._count -= 1

    def __iter__(self) -> Iterator[Entry]:
        return read_lines(self.copy())

    def copy(self) -> bytes:
        """Return the entries as bytes for `read_lines`."""
        return bytes(self._lines)


def read_lines(lines: bytes) -> Iterator[Entry]:
    for line in lines.splitlines():
        at, number, json = line.split(b" ", 2)
        yield int(at), int(number), json
