"""History: what was run and how it ended, and why it was not; in memory and bounded, never on the card."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

MOST_RUNS = 1000
"""Entries that are kept of one scene or automation."""

USUAL_LIMIT = 200
"""Entries that are told where nobody says how many."""

MOST_IN_ALL = 20_000
"""Entries, results, and KiB of what runs were given that are kept in all; the longest unheard of goes first."""


class RunStatus(StrEnum):
    """How an execution ended, or that there was none."""

    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One execution of a scene or automation; `results` are those of its commands in call order.

    `trigger_payload` is the event that an automation was given.
    """

    subject: str
    executed_at: datetime
    status: RunStatus
    error: str | None
    results: Sequence[Mapping[str, Any]]
    duration_ms: int
    trigger_payload: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Which entries are asked for: from `start` to `end`, both included, None for no bound; at most `limit`."""

    start: datetime | None = None
    end: datetime | None = None
    limit: int | None = None

    def holds(self, instant: datetime) -> bool:
        """Whether the instant, to the millisecond that people are shown, lies in it."""
        shown = instant.replace(microsecond=instant.microsecond // 1000 * 1000)
        return (self.start is None or self.start <= shown) and (self.end is None or shown <= self.end)


class RunHistory:
    """The latest executions of each scene or each automation."""

    def __init__(self, *, most: int = MOST_RUNS, most_in_all: int = MOST_IN_ALL) -> None:
        self._most = most
        self._most_in_all = most_in_all
        self._weight = 0
        self._entries: OrderedDict[str, deque[RunEntry]] = OrderedDict()

    def add(self, entry: RunEntry) -> None:
        """Note an execution; the oldest make room."""
        kept = self._entries.setdefault(entry.subject, deque())
        self._entries.move_to_end(entry.subject)
        kept.append(entry)
        self._weight += _weight(entry)
        if len(kept) > self._most:
            self._weight -= _weight(kept.popleft())
        while self._weight > self._most_in_all and len(self._entries) + len(kept) > 2:
            self._forget()

    def list_runs(self, subject: str, period: Period) -> list[RunEntry]:
        """The executions in the period, the newest first."""
        found = [entry for entry in self._entries.get(subject, ()) if period.holds(entry.executed_at)]
        found.sort(key=lambda entry: entry.executed_at)
        return found[::-1][: period.limit or USUAL_LIMIT]

    def _forget(self) -> None:
        subject, kept = next(iter(self._entries.items()))
        self._weight -= _weight(kept.popleft())
        if not kept:
            del self._entries[subject]


def _weight(entry: RunEntry) -> int:
    """One for the entry, one for each result, one for each KiB of what it was given."""
    given = 0 if entry.trigger_payload is None else len(repr(entry.trigger_payload)) >> 10
    return 1 + len(entry.results) + given
