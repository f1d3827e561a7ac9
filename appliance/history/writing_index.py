"""Finds the parts of a monthly file that contain values since a time, so that readers can skip the other parts."""

from __future__ import annotations

from msgspec import Struct

from appliance.history.card_lines import WRITTEN
from appliance.store.month_files import MonthFiles


class WrittenPart(Struct, frozen=True, kw_only=True):
    """The part of a monthly file that one write appended, from `start` to `end`. All values in earlier parts of the
    file are older than `others_until_ms`."""

    start: int
    end: int
    others_until_ms: int


class WritingIndex:
    """The end offsets of all writes in the monthly files.

    The last line of a write contains the time of the write, and all values of the write are earlier.

    Only one thread at a time may use the index.
    """

    def __init__(self, months: MonthFiles) -> None:
        self._months = months
        self._ends: dict[str, list[tuple[int, int]]] = {}
        self._seen: dict[str, int] = {}

    def list_parts(self, month: str, size: int, first_ms: int) -> list[WrittenPart]:
        """Return the parts of the month's file that can contain values since `first_ms`, latest part first. `size` is
        the file's size. Raise `OSError` if the file is unreadable."""
        if size < (seen := self._seen.get(month, 0)):  # the file was replaced by a smaller file
            self.forget()
            seen = 0
        added = [
            (line.fields["t"], line.offset)
            for line in self._months.find(month, WRITTEN, seen, size)
            if line.fields is not None and isinstance(line.fields.get("t"), int)
        ]  # a list, because a read can fail after some lines
        ends = self._ends.setdefault(month, [])
        ends += added
        self._seen[month] = size
        parts: list[WrittenPart] = []
        start, others_until = 0, -(1 << 62)
        for at, end in ends:
            if at >= first_ms:
                parts.append(WrittenPart(start=start, end=end, others_until_ms=others_until))
            start, others_until = end, max(at, others_until)
        parts.append(WrittenPart(start=start, end=size, others_until_ms=others_until))
        return parts[::-1]

    def forget(self) -> None:
        """Discard the offsets, because a failed append may have been removed from the files."""
        self._ends, self._seen = {}, {}
