"""Writes history to the card within the daily budget, and removes expired months."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from appliance.history.card_lines import WRITTEN, encode_written, month_at
from appliance.history.collector import Collected
from appliance.history.day_budget import DAY_MS, Written, allowance, fit, lines_size
from appliance.store.month_files import MonthFiles
from appliance.version import MADE_AT


class _Ledger(Struct, kw_only=True):
    """A summary of earlier writes: the day (UTC) of the last write, the bytes written on this day, and the number of
    days with writes."""

    day: int = -1
    used: int = 0
    days: int = 0


class CardWriter:
    """Appends history to the monthly files, at most `max_day_bytes` per day (UTC), and keeps at most `keep_days`
    days. Writes run on the store's thread.

    `sizes` contains the last known sizes of the monthly files. Any thread may read `sizes`.
    """

    def __init__(self, months: MonthFiles, keep_days: int, max_day_bytes: int) -> None:
        self._months = months
        self._keep_days = keep_days
        self._max_day_bytes = max_day_bytes
        self._ledger: _Ledger | None = None
        self.sizes: Mapping[str, int] = {}

    def read_sizes(self) -> dict[str, int]:
        """Update and return `sizes`. Any thread may call this method. Raise `OSError` on failure."""
        self.sizes = sizes = self._months.list_months()
        return sizes

    def day_bytes(self, now: int) -> int:
        """Return the known number of bytes written on the day of `now`, which is in milliseconds since 1970."""
        ledger = self._ledger
        return ledger.used if ledger is not None and ledger.day == now // DAY_MS else 0

    def append(self, taken: Collected, now: int) -> Written:
        """Write the data by month. Omit months before this version's release, because the clock was wrong."""
        written, remaining = Written(), [("", taken)]
        try:
            months = taken.by_month()
            remaining = [(month, part) for month, part in months.items() if month >= month_at(MADE_AT)]
            written.untimed = len(months) - len(remaining)
            if not remaining:
                return written
            ledger = self._ledger or self._read_ledger(now)
            if ledger.day != now // DAY_MS:
                ledger = _Ledger(day=now // DAY_MS, days=ledger.days + 1)
            while remaining:
                month, part = remaining[0]
                lines = fit(part, allowance(self._max_day_bytes, ledger.used, now), written)
                end = encode_written(now, ledger.used + lines_size(lines), ledger.days)
                size = self._months.append(month, [*lines, end])
                ledger.used += size
                written.bytes += size
                self._ledger = ledger
                remaining.pop(0)
            self._remove_old(ledger)
        except Exception as error:  # even after a MemoryError, collected data must not be lost
            written.error = error
        written.left = [part for _, part in remaining]
        return written

    def _read_ledger(self, now: int) -> _Ledger:
        ends = map(self._find_end, self._months.list_months())
        found = [(end["t"] // DAY_MS, end["used"], end["days"]) for end in ends if end is not None]
        today = now // DAY_MS
        used = max((used for day, used, _ in found if day == today), default=0)
        days = max((days for _, _, days in found), default=0)
        return _Ledger(day=today if any(day == today for day, _, _ in found) else -1, used=used, days=days)

    def _find_end(self, month: str) -> Mapping[str, int] | None:
        """Return the month's last line of type `WRITTEN`, or None."""
        end = self._months.find_last(month, WRITTEN)
        is_whole = end is not None and all(type(end.get(name)) is int for name in ("t", "used", "days"))
        return end if is_whole else None

    def _remove_old(self, ledger: _Ledger) -> None:
        """Remove the months whose last write is older than `keep_days`. Only days with writes count, so that a wrong
        clock never removes a month."""
        old = []
        for month in self.read_sizes():
            end = self._find_end(month)
            if end is not None and ledger.days - end["days"] > self._keep_days:
                old.append(month)
        if old:
            self._months.remove(old)
            self.sizes = {month: size for month, size in self.sizes.items() if month not in old}
