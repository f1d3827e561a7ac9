"""Finds the last part of a month's file, so that a read of recent values skips the rest."""

from __future__ import annotations

from appliance.history.card_lines import WRITTEN, month_of
from appliance.store.month_files import MonthFiles


class WritingIndex:
    """The end offsets of all writes in the months' files. A read of the last hours starts at such an offset.

    Only one thread may use the index at a time. A write contains no values later than its end mark.
    """

    def __init__(self, months: MonthFiles) -> None:
        self._months = months
        self._ends: dict[str, list[tuple[int, int]]] = {}
        self._seen: dict[str, int] = {}

    def start_for(self, month: str, size: int, first_ms: int) -> int:
        """Return an offset in the month's file. All values from the time `first_ms` on are after the offset. `size`
        is the size of the file. May raise `OSError`."""
        if first_ms < 0 or month_of(first_ms / 1000) < month:
            return 0
        if size < self._seen.get(month, 0):  # another file
            self.forget()
        if size > self._seen.get(month, 0):
            found = self._months.find(month, WRITTEN, self._seen.get(month, 0))
            pairs = zip(found.lines, found.offsets, strict=True)
            known = [(line["t"], offset) for line, offset in pairs if isinstance(line.get("t"), int)]
            self._ends.setdefault(month, []).extend(known)
            self._seen[month] = min(found.end, size)
        return max((offset for at, offset in self._ends.get(month, ()) if at < first_ms), default=0)

    def forget(self) -> None:
        """Read the files from the beginning next time, because a failed append may have been removed."""
        self._ends, self._seen = {}, {}
