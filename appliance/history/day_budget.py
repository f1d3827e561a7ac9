"""Fits collected history into the remaining daily budget. Frequently changing attributes are thinned out first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from appliance.history.card_lines import encode_changes, encode_hours
from appliance.history.collector import AttributeKey, Collected, CollectedHours
from appliance.history.hours import Hour, join_all
from appliance.history.series import HOUR_MS

LINE_END_BYTES = 19
"""Bytes that the checksum and the newline add to a line."""

PERIODS_PER_DAY = 4
"""Writes per day. Each write can use its share of the budget, and the unused shares of earlier writes."""

DAY_MS = 24 * HOUR_MS

PERIOD_MS = DAY_MS // PERIODS_PER_DAY


class Written(Struct, kw_only=True):
    """The result of a write.

    - `left`: months that could not be written because of `error`.
    - `coarse`: attributes that exceeded the budget, written with one entry for all hours, or with one change per
      hour.
    - `omitted`: attributes that exceeded the budget and were not written.
    - `omitted_entries`: the number of commands and executions that were not written.
    - `untimed`: the number of months that were dropped because the clock was wrong.
    """

    bytes: int = 0
    coarse: list[AttributeKey] = field(default_factory=list)
    omitted: list[AttributeKey] = field(default_factory=list)
    omitted_entries: int = 0
    untimed: int = 0
    left: list[Collected] = field(default_factory=list)
    error: Exception | None = None


class _Candidate(Struct, kw_only=True):
    """An attribute's complete lines. `thin_out` returns the thinned-out lines."""

    key: AttributeKey
    frequency: int
    lines: Sequence[bytes]
    thin_out: Callable[[], Sequence[bytes]]


def allowance(budget_bytes: int, used_bytes: int, at_ms: int) -> int:
    """Return the number of bytes that may be written now: the budget's share for the quarters of the day (UTC) that
    have begun, minus the used bytes."""
    quarters = at_ms // PERIOD_MS % PERIODS_PER_DAY + 1
    return max(0, budget_bytes * quarters // PERIODS_PER_DAY - used_bytes)


def fit(collected: Collected, max_bytes: int, written: Written) -> list[bytes]:
    """Return those lines of one month that fit into `max_bytes`. Record omitted data in `written`."""
    candidates = [*map(_of_hours, collected.hours), *(_of_changes(*each) for each in collected.changes.items())]
    candidates.sort(key=lambda each: each.frequency, reverse=True)
    entries = sorted(collected.entries, key=lambda entry: (entry.importance, entry.at))
    total = sum(lines_size(each.lines) for each in candidates) + lines_size(entry.body for entry in entries)
    for each in candidates:
        if total <= max_bytes:
            break
        if (saved := lines_size(each.lines) - lines_size(coarse := each.thin_out())) > 0:
            total -= saved
            each.lines = coarse
            written.coarse.append(each.key)
    for each in candidates:
        if total > max_bytes:
            total -= lines_size(each.lines)
            each.lines = ()
            written.omitted.append(each.key)
    kept = 0
    while total > max_bytes and kept < len(entries):
        total -= lines_size([entries[kept].body])
        kept += 1
    written.omitted_entries += kept
    bodies = [entry.body for entry in sorted(entries[kept:], key=lambda entry: entry.at)]
    return [*(line for each in candidates for line in each.lines), *bodies]


def _of_hours(found: CollectedHours) -> _Candidate:
    def encode(hours: Iterable[Hour]) -> list[bytes]:
        return _bodies(encode_hours(*found.key, found.parts, hours))

    return _Candidate(
        key=found.key,
        frequency=found.reports,
        lines=encode(found.hours),
        thin_out=lambda: encode([join_all(found.hours[0].start, found.hours)]),
    )


def _of_changes(key: AttributeKey, changes: list[tuple[int, object]]) -> _Candidate:
    def encode(kept: Iterable[tuple[int, object]]) -> list[bytes]:
        return _bodies(encode_changes(*key, kept))

    return _Candidate(
        key=key,
        frequency=len(changes),
        lines=encode(changes),
        thin_out=lambda: encode({at // HOUR_MS: (at, value) for at, value in changes}.values()),
    )


def _bodies(lines: Iterable[tuple[str, bytes]]) -> list[bytes]:
    return [body for _, body in lines]


def lines_size(lines: Iterable[bytes]) -> int:
    return sum(len(line) + LINE_END_BYTES for line in lines)
