"""Execution history: how each execution of a scene or automation ended, and why one did not run."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from appliance.history.period import Period

MAX_EXECUTIONS_PER_SUBJECT = 1000
"""Entries that are kept of one scene or automation."""

MAX_EXECUTION_HISTORY_BYTES = 8 << 20
"""What all entries take together; the least recently run subject loses first."""

EXECUTION_ENTRY_BYTES = 600
"""What an entry costs beside its error and its JSON."""


class ExecutionStatus(StrEnum):
    """How an execution ended, or that there was none."""

    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


class ExecutionEntry(Struct, frozen=True, kw_only=True):
    """One execution of a scene or automation; `results` are those of its commands in call order.

    `trigger_payload` is the event that an automation was given, `trace` what it did step by step, `warnings` are
    sentences about commands that failed. `counted_secs` of its duration count for the backstop.
    """

    subject: str
    executed_at: datetime
    status: ExecutionStatus
    error: str | None
    results: Sequence[Mapping[str, Any]]
    duration_ms: int
    counted_secs: float = 0.0
    trigger_payload: Mapping[str, Any] | None = None
    trace: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()


class _KeptExecution(Struct, frozen=True):
    """An entry as it is kept: results, payload, trace and warnings as JSON, which takes a quarter of the memory."""

    entry: ExecutionEntry
    rest: bytes

    @staticmethod
    def of(entry: ExecutionEntry) -> _KeptExecution:
        rest = orjson.dumps((entry.results, entry.trigger_payload, entry.trace, entry.warnings), default=dict)
        bare = replace(entry, results=(), trigger_payload=None, trace=(), warnings=())
        return _KeptExecution(bare, bytes(memoryview(rest)))  # a copy: what orjson returns occupies 4 KiB or more

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return EXECUTION_ENTRY_BYTES + len(self.rest) + len(self.entry.error or "")

    def restore(self) -> ExecutionEntry:
        """The entry as it was."""
        results, payload, *others = orjson.loads(self.rest)
        trace, warnings = map(tuple, others)
        return replace(self.entry, results=tuple(results), trigger_payload=payload, trace=trace, warnings=warnings)


class ExecutionHistory:
    """The latest executions of each scene or each automation, never in more than `max_bytes` but for the newest.

    `on_add` is called with each.
    """

    def __init__(
        self,
        *,
        max_executions: int = MAX_EXECUTIONS_PER_SUBJECT,
        max_bytes: int = MAX_EXECUTION_HISTORY_BYTES,
        on_add: Callable[[ExecutionEntry], None] | None = None,
    ) -> None:
        self._on_add = on_add
        self._max_executions = max_executions
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, deque[_KeptExecution]] = OrderedDict()

    def add(self, entry: ExecutionEntry) -> None:
        """Add an execution; the oldest are dropped where there is no room."""
        if self._on_add is not None:
            self._on_add(entry)
        latest = _KeptExecution.of(entry)
        kept = self._entries.setdefault(entry.subject, deque())
        self._entries.move_to_end(entry.subject)
        kept.append(latest)
        self._bytes += latest.size
        if len(kept) > self._max_executions:
            self._bytes -= kept.popleft().size
        while self._bytes > self._max_bytes and len(self._entries) + len(kept) > 2:
            self._drop_oldest()

    def list_runs(self, subject: str, period: Period) -> list[ExecutionEntry]:
        """The executions in the period, the newest first."""
        found = [each for each in self._entries.get(subject, ()) if period.contains(each.entry.executed_at)]
        found.sort(key=lambda each: each.entry.executed_at)
        return [each.restore() for each in found[::-1][: period.max_entries]]

    def _drop_oldest(self) -> None:
        subject, kept = next(iter(self._entries.items()))
        self._bytes -= kept.popleft().size
        if not kept:
            del self._entries[subject]
