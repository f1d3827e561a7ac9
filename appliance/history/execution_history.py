"""Run history: how each execution of a scene or automation ended, and why one did not run."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from appliance.history.period import Period

MAX_RUNS_PER_SUBJECT = 1000
"""Entries that are kept of one scene or automation."""

MAX_WEIGHT = 20_000
"""Entries, results, and KiB of trigger payloads that are kept in all; the least recently run subject loses first."""


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

    `trigger_payload` is the event that an automation was given, `trace` what it did step by step, `warnings` are
    sentences about commands that failed. `counted_secs` of its duration count for the backstop.
    """

    subject: str
    executed_at: datetime
    status: RunStatus
    error: str | None
    results: Sequence[Mapping[str, Any]]
    duration_ms: int
    counted_secs: float = 0.0
    trigger_payload: Mapping[str, Any] | None = None
    trace: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()


class RunHistory:
    """The latest executions of each scene or each automation."""

    def __init__(self, *, max_runs: int = MAX_RUNS_PER_SUBJECT, max_weight: int = MAX_WEIGHT) -> None:
        self._max_runs = max_runs
        self._max_weight = max_weight
        self._weight = 0
        self._entries: OrderedDict[str, deque[RunEntry]] = OrderedDict()

    def add(self, entry: RunEntry) -> None:
        """Add an execution; the oldest are dropped where there is no room."""
        kept = self._entries.setdefault(entry.subject, deque())
        self._entries.move_to_end(entry.subject)
        kept.append(entry)
        self._weight += _weight(entry)
        if len(kept) > self._max_runs:
            self._weight -= _weight(kept.popleft())
        while self._weight > self._max_weight and len(self._entries) + len(kept) > 2:
            self._drop_oldest()

    def list_runs(self, subject: str, period: Period) -> list[RunEntry]:
        """The executions in the period, the newest first."""
        found = [entry for entry in self._entries.get(subject, ()) if period.contains(entry.executed_at)]
        found.sort(key=lambda entry: entry.executed_at)
        return found[::-1][: period.max_entries]

    def _drop_oldest(self) -> None:
        subject, kept = next(iter(self._entries.items()))
        self._weight -= _weight(kept.popleft())
        if not kept:
            del self._entries[subject]


def _weight(entry: RunEntry) -> int:
    """One for the entry, one for each result, one for eight steps, one for each KiB of what it was given."""
    given = 0 if entry.trigger_payload is None else len(repr(entry.trigger_payload)) >> 10
    return 1 + len(entry.results) + len(entry.trace) // 8 + given
