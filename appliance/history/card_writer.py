"""The writing of history to the card: within the day's budget, and at an end where months are too old."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from appliance.history.card_budget import LINE_END_BYTES, PERIOD_MS, allowance, fit
from appliance.history.card_lines import WRITTEN, encode_written, month_of
from appliance.history.collector import AttributeKey, Collected

DAY_MS = 4 * PERIOD_MS


class LinesOfMonth(Protocol):
    """Good lines in order, and where they and bad ones begin."""

    @property
    def lines(self) -> Sequence[Mapping[str, Any]]:
        """As parsed JSON."""

    @property
    def offsets(self) -> Sequence[int]:
        """Where each of the lines begins, in bytes."""

    @property
    def bad(self) -> Collection[int]:
        """Where damaged lines begin."""

    @property
    def end(self) -> int:
        """Where reading ended."""


class Months(Protocol):
    """The files of the store, as `store/month_files.py` has them. Every method may raise `OSError`, and waits."""

    def list_months(self) -> dict[str, int]:
        """The months with the bytes of their files, oldest first."""

    def append(self, month: str, bodies: Sequence[bytes]) -> int:
        """Append lines, on the device when this returns; bytes that it took."""

    def remove(self, months: Collection[str]) -> None:
        """Remove months as a whole."""

    def find(self, month: str, beginning: bytes, start: int = 0) -> LinesOfMonth:
        """The lines from there on that begin so."""

    def find_last(self, month: str, beginning: bytes) -> Mapping[str, Any] | None:
        """The latest good line that begins so."""


class Written(Struct, kw_only=True):
    """What a writing did, by month; `left` is what the card did not take, and `error` why."""

    bytes: int = 0
    coarse: list[AttributeKey] = field(default_factory=list)
    left_out: list[AttributeKey] = field(default_factory=list)
    entries_left_out: int = 0
    left: list[Collected] = field(default_factory=list)
    error: OSError | None = None


class _Ledger(Struct, kw_only=True):
    """What the ends of former writings say: on which day (UTC) the last was, what it took until then, and on how many
    days something was written."""

    day: int = -1
    used: int = 0
    days: int = 0


class CardWriter:
    """Appends to the months of at most `keep_days`, at most `max_day_bytes` a day (UTC). All on the store's thread.

    `sizes` are the months with the bytes of their files, as far as they were looked at; any thread may read them.
    """

    def __init__(self, months: Months, keep_days: int, max_day_bytes: int) -> None:
        self._months = months
        self._keep_days = keep_days
        self._max_day_bytes = max_day_bytes
        self._ledger: _Ledger | None = None
        self.sizes: Mapping[str, int] = {}

    def day_bytes(self, now: int) -> int:
        """What was written on the day of this time, in milliseconds since 1970, as far as that is known."""
        ledger = self._ledger
        return ledger.used if ledger is not None and ledger.day == now // DAY_MS else 0

    def append(self, parts: Mapping[str, Collected], now: int) -> Written:
        """Append the months one after another, and remove those that are kept no more."""
        written, remaining = Written(), list(parts.items())
        try:
            ledger = self._ledger or self._read_ledger(now)
            if ledger.day != now // DAY_MS:
                ledger = _Ledger(day=now // DAY_MS, days=ledger.days + 1)
            while remaining:
                month, part = remaining[0]
                fitted = fit(part, allowance(self._max_day_bytes, ledger.used, now))
                used = ledger.used + sum(map(len, fitted.lines)) + LINE_END_BYTES * len(fitted.lines)
                size = self._months.append(month, [*fitted.lines, encode_written(now, used, ledger.days)])
                ledger.used += size
                written.bytes += size
                written.coarse += fitted.coarse
                written.left_out += fitted.left_out
                written.entries_left_out += fitted.entries_left_out
                self._ledger = ledger
                remaining.pop(0)
            self._remove_old(ledger)
        except OSError as error:
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
        """What the end of the month's last writing says; None where there is none."""
        end = self._months.find_last(month, WRITTEN)
        is_whole = end is not None and all(type(end.get(name)) is int for name in ("t", "used", "days"))
        return end if is_whole else None

    def _remove_old(self, ledger: _Ledger) -> None:
        """Remove the months to which nothing was added on more days than are kept.

        Days on which something was written count, not those of the calendar: no clock that was wrong ends a month.
        """
        self.sizes = self._months.list_months()
        old = []
        for month in self.sizes:
            end = self._find_end(month)
            if end is not None and ledger.days - end["days"] > self._keep_days:
                old.append(month)
        if old:
            self._months.remove(old)
            self.sizes = {month: size for month, size in self.sizes.items() if month not in old}


class WritingIndex:
    """Where each writing ends in the months' files, so that a read of the last hours need not begin at a month's.

    One thread at a time. What was written before a moment holds nothing of later ones.
    """

    def __init__(self, months: Months) -> None:
        self._months = months
        self._ends: dict[str, list[tuple[int, int]]] = {}
        self._seen: dict[str, int] = {}

    def start_for(self, month: str, size: int, first_ms: int) -> int:
        """Where to begin in the month's file, of this size, to find what was from then on. May raise `OSError`."""
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
        """Read all from the beginning the next time: something that was appended may have been taken back."""
        self._ends, self._seen = {}, {}
