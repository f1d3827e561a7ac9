"""Writes history to the card within the day's budget, and removes months that are too old.

If there is not enough room, frequently changing attributes are thinned out first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from appliance.history.card_lines import WRITTEN, encode_changes, encode_hours, encode_written
from appliance.history.collector import AttributeKey, Collected, CollectedHours
from appliance.history.hours import join_all
from appliance.history.series import HOUR_MS
from appliance.store.month_files import MonthFiles

LINE_END_BYTES = 19
"""Bytes that the checksum and the newline add to a line."""

PERIODS_PER_DAY = 4
"""Writes per day; each may use its part of the budget, and the unused parts of earlier ones."""

DAY_MS = 24 * HOUR_MS
PERIOD_MS = DAY_MS // PERIODS_PER_DAY


class Written(Struct, kw_only=True):
    """The result of a write, by month; `left` has the parts that could not be written, `error` the reason.

    If there was not enough room, `coarse` attributes have one entry for all hours, or one change per hour; `left_out`
    attributes have none; and `entries_left_out` counts omitted commands and executions.
    """

    bytes: int = 0
    coarse: list[AttributeKey] = field(default_factory=list)
    left_out: list[AttributeKey] = field(default_factory=list)
    entries_left_out: int = 0
    left: list[Collected] = field(default_factory=list)
    error: Exception | None = None


class _Candidate(Struct, kw_only=True):
    """The lines of one attribute, in full and thinned."""

    key: AttributeKey
    frequency: int
    lines: Sequence[bytes]
    coarse: Sequence[bytes]


def allowance(budget_bytes: int, used_bytes: int, at_ms: int) -> int:
    """Return the bytes that may be written now: the share of the day's (UTC) quarters that have begun, minus the used
    bytes."""
    quarters = at_ms // PERIOD_MS % PERIODS_PER_DAY + 1
    return max(0, budget_bytes * quarters // PERIODS_PER_DAY - used_bytes)


def fit(collected: Collected, max_bytes: int, written: Written) -> list[bytes]:
    """Return the lines of one month that fit into these bytes; note everything that does not fit."""
    candidates = [*map(_of_hours, collected.hours), *(_of_changes(*each) for each in collected.changes.items())]
    candidates.sort(key=lambda each: each.frequency, reverse=True)
    entries = sorted(collected.entries, key=lambda entry: (entry.importance, entry.at))
    total = sum(_size(each.lines) for each in candidates) + _size(entry.body for entry in entries)
    for each in candidates:
        if total > max_bytes and _size(each.coarse) < _size(each.lines):
            total -= _size(each.lines) - _size(each.coarse)
            each.lines = each.coarse
            written.coarse.append(each.key)
    for each in candidates:
        if total > max_bytes:
            total -= _size(each.lines)
            each.lines = ()
            written.left_out.append(each.key)
    kept = 0
    while total > max_bytes and kept < len(entries):
        total -= _size([entries[kept].body])
        kept += 1
    written.entries_left_out += kept
    bodies = [entry.body for entry in sorted(entries[kept:], key=lambda entry: entry.at)]
    return [*(line for each in candidates for line in each.lines), *bodies]


def _of_hours(found: CollectedHours) -> _Candidate:
    coarse = [join_all(found.hours[0].start, found.hours)]
    return _Candidate(
        key=found.key,
        frequency=found.reports,
        lines=_bodies(encode_hours(*found.key, found.parts, found.hours)),
        coarse=_bodies(encode_hours(*found.key, found.parts, coarse)),
    )


def _of_changes(key: AttributeKey, changes: list[tuple[int, object]]) -> _Candidate:
    by_hour = {at // HOUR_MS: (at, value) for at, value in changes}
    return _Candidate(
        key=key,
        frequency=len(changes),
        lines=_bodies(encode_changes(*key, changes)),
        coarse=_bodies(encode_changes(*key, by_hour.values())),
    )


def _bodies(lines: Iterable[tuple[str, bytes]]) -> list[bytes]:
    return [body for _, body in lines]


def _size(lines: Iterable[bytes]) -> int:
    return sum(len(line) + LINE_END_BYTES for line in lines)


class _Ledger(Struct, kw_only=True):
    """The end marks of earlier writes: the day (UTC) of the last one, the bytes of that day, and the number of days
    with writes."""

    day: int = -1
    used: int = 0
    days: int = 0


class CardWriter:
    """Appends to the files of at most `keep_days`, at most `max_day_bytes` per day (UTC). Writes run on the store's
    thread.

    `sizes` has the months with the sizes of their files, as far as known; any thread may read it.
    """

    def __init__(self, months: MonthFiles, keep_days: int, max_day_bytes: int) -> None:
        self._months = months
        self._keep_days = keep_days
        self._max_day_bytes = max_day_bytes
        self._ledger: _Ledger | None = None
        self.sizes: Mapping[str, int] = {}

    def read_sizes(self) -> dict[str, int]:
        """Read the sizes of the months again; any thread may call this. Raises `OSError`."""
        self.sizes = sizes = self._months.list_months()
        return sizes

    def day_bytes(self, now: int) -> int:
        """Return the bytes written on the day of this time, in milliseconds since 1970, as far as known."""
        ledger = self._ledger
        return ledger.used if ledger is not None and ledger.day == now // DAY_MS else 0

    def append(self, parts: Mapping[str, Collected], now: int) -> Written:
        """Append the months one after another, and remove expired ones."""
        written, remaining = Written(), list(parts.items())
        try:
            ledger = self._ledger or self._read_ledger(now)
            if ledger.day != now // DAY_MS:
                ledger = _Ledger(day=now // DAY_MS, days=ledger.days + 1)
            while remaining:
                month, part = remaining[0]
                lines = fit(part, allowance(self._max_day_bytes, ledger.used, now), written)
                end = encode_written(now, ledger.used + _size(lines), ledger.days)
                size = self._months.append(month, [*lines, end])
                ledger.used += size
                written.bytes += size
                self._ledger = ledger
                remaining.pop(0)
            self._remove_old(ledger)
        except Exception as error:  # such as MemoryError: collected data must not be lost
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
        """Return the end mark of the month's last write; None if it is missing."""
        end = self._months.find_last(month, WRITTEN)
        is_whole = end is not None and all(type(end.get(name)) is int for name in ("t", "used", "days"))
        return end if is_whole else None

    def _remove_old(self, ledger: _Ledger) -> None:
        """Remove the months whose last write is older than the days that are kept.

        Only days with writes count, so that a wrong clock never makes a month expire.
        """
        old = []
        for month in self.read_sizes():
            end = self._find_end(month)
            if end is not None and ledger.days - end["days"] > self._keep_days:
                old.append(month)
        if old:
            self._months.remove(old)
            self.sizes = {month: size for month, size in self.sizes.items() if month not in old}
