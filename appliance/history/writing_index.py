"""Finds the offset of recent values in a monthly file, so that readers can skip the older part."""

from __future__ import annotations

from appliance.history.card_lines import WRITTEN, month_of
from appliance.store.month_files import MonthFiles


class WritingIndex:
    """The end offsets of all writes in the monthly files.

    The last line of a write contains the time of the write, and all values of the write are earlier. A search for
    later values therefore begins at that line.

    Only one thread at a time may use the index.
    """

    def __init__(self, months: MonthFiles) -> None:
        self._months = months
        self._ends: dict[str, list[tuple[int, int]]] = {}
        self._seen: dict[str, int] = {}

    def start_for(self, month: str, size: int, first_ms: int) -> int:
        """Return an offset that precedes all values since `first_ms` in the month's file. `size` is the file's size.
        Raise `OSError` if the file is unreadable."""
        if first_ms < 0 or month_of(first_ms / 1000) < month:
            return 0
        if size < self._seen.get(month, 0):  # the file was replaced by a smaller file
            self.forget()
        if size > self._seen.get(month, 0):
            found = self._months.find(month, WRITTEN, self._seen.get(month, 0))
            pairs = zip(found.lines, found.offsets, strict=True)
            known = [(line["t"], offset) for line, offset in pairs if isinstance(line.get("t"), int)]
            self._ends.setdefault(month, []).extend(known)
            self._seen[month] = min(found.end, size)
        return max((offset for at, offset in self._ends.get(month, ()) if at < first_ms), default=0)

    def forget(self) -> None:
        """Discard the offsets, because a failed append may have been removed from the files."""
        self._ends, self._seen = {}, {}
