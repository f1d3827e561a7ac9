"""The day's budget of the card: what is written where not all has room. Frequent attributes thin out first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from appliance.history.card_lines import encode_changes, encode_hours
from appliance.history.collector import AttributeKey, Collected, CollectedHours
from appliance.history.hours import join_all
from appliance.history.series import HOUR_MS

LINE_END_BYTES = 19
"""What checksum and newline add to a line."""

PERIODS_PER_DAY = 4
"""Writings of a day; each may bring its part of the budget, and what earlier ones have left."""

PERIOD_MS = 24 * HOUR_MS // PERIODS_PER_DAY


class FittedLines(Struct, kw_only=True):
    """The lines that have room, and what was done to other attributes; how many entries were left out.

    `coarse` have one entry for all hours, or for each hour one change; `left_out` have nothing.
    """

    lines: list[bytes]
    coarse: list[AttributeKey] = field(default_factory=list)
    left_out: list[AttributeKey] = field(default_factory=list)
    entries_left_out: int = 0


class _Candidate(Struct, kw_only=True):
    """The lines of one attribute, and those that it has if it is thinned."""

    key: AttributeKey
    frequency: int
    lines: Sequence[bytes]
    coarse: Sequence[bytes]


def allowance(budget_bytes: int, used_bytes: int, at_ms: int) -> int:
    """Bytes that may be written now: those of the quarters of the day (UTC) that have begun, less those used."""
    quarters = at_ms // PERIOD_MS % PERIODS_PER_DAY + 1
    return max(0, budget_bytes * quarters // PERIODS_PER_DAY - used_bytes)


def fit(collected: Collected, max_bytes: int) -> FittedLines:
    """The lines of what was collected in one month, at most so many bytes."""
    candidates = [*map(_of_hours, collected.hours), *(_of_changes(*each) for each in collected.changes.items())]
    candidates.sort(key=lambda each: each.frequency, reverse=True)
    entries = sorted(collected.entries, key=lambda entry: (entry.importance, entry.at))
    total = sum(_size(each.lines) for each in candidates) + _size(entry.body for entry in entries)
    fitted = FittedLines(lines=[])
    for each in candidates:
        if total > max_bytes and _size(each.coarse) < _size(each.lines):
            total -= _size(each.lines) - _size(each.coarse)
            each.lines = each.coarse
            fitted.coarse.append(each.key)
    for each in candidates:
        if total > max_bytes:
            total -= _size(each.lines)
            each.lines = ()
            fitted.left_out.append(each.key)
    kept = 0
    while total > max_bytes and kept < len(entries):
        total -= _size([entries[kept].body])
        kept += 1
    fitted.entries_left_out = kept
    bodies = [entry.body for entry in sorted(entries[kept:], key=lambda entry: entry.at)]
    fitted.lines = [*(line for each in candidates for line in each.lines), *bodies]
    return fitted


def _of_hours(found: CollectedHours) -> _Candidate:
    coarse = [join_all(found.hours[0].start, found.hours)]
    return _Candidate(
        key=found.key,
        frequency=found.reports,
        lines=_bodies(encode_hours(*found.key, found.beside, found.hours)),
        coarse=_bodies(encode_hours(*found.key, found.beside, coarse)),
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
