"""Finds the part of a month's file that has the newest values."""

from __future__ import annotations

from appliance.history.card_lines import WRITTEN, month_of
from appliance.store.month_files import MonthFiles


class WritingIndex:
    """The end of each write in the months' files, so that a read of the last hours need not start at the beginning of
    a month.

    Only one thread may use it at a time. A write contains no values later than its end mark.
    """

    def __init__(self, months: MonthFiles) -> None:
        self._months = months
        self._ends: dict[str, list[tuple[int, int]]] = {}
        self._seen: dict[str, int] = {}

    def start_for(self, month: str, size: int, first_ms: int) -> int:
        """Return the offset in the month's file, of this size, before which there are no values from this time on.
        May raise `OSError`."""
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
        """Read everything from the beginning the next time, because appended data may have been taken back."""
        self._ends, self._seen = {}, {}
