"""Past executions of scenes and automations, in memory within a size limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
import orjson
from msgspec import Struct
from msgspec.structs import asdict

from appliance.history.bounded_log import BoundedLog
from appliance.history.period import Period

MAX_EXECUTIONS_PER_SUBJECT = 1000
"""Maximum number of entries per scene or automation."""

MAX_EXECUTION_HISTORY_BYTES = 3 << 20
"""Maximum total size of all scene executions. The same limit applies separately to automation executions."""


class ExecutionStatus(StrEnum):
    """The result of an execution, or the reason why it did not run."""

    OK = "ok"
    ERROR = "error"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


class ExecutionEntry(Struct, frozen=True, kw_only=True):
    """An execution of a scene or automation.

    - `results`: the results of its commands in call order.
    - `trigger_payload`: an automation's event.
    - `trace`: the steps.
    - `warnings`: sentences about failed calls.
    - `counted_secs`: the duration without waits, to which the execution's time limit applies.
    """

    subject: str
    executed_at: datetime
    status: ExecutionStatus
    error: str | None
    results: tuple[Mapping[str, Any], ...]
    duration_ms: int
    counted_secs: float = 0.0
    trigger_payload: Mapping[str, Any] | None = None
    trace: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


class ExecutionResult(Struct, frozen=True, kw_only=True):
    """The result of an execution without its details."""

    executed_at: datetime
    status: ExecutionStatus
    error: str | None


class ExecutionHistory:
    """The latest executions of scenes or of automations. `on_add` is called for each new entry."""

    def __init__(
        self,
        *,
        max_bytes: int = MAX_EXECUTION_HISTORY_BYTES,
        on_add: Callable[[ExecutionEntry], None] | None = None,
    ) -> None:
        self._on_add = on_add
        self._log = BoundedLog(max_bytes, MAX_EXECUTIONS_PER_SUBJECT)

    def add(self, entry: ExecutionEntry) -> None:
        if self._on_add is not None:
            self._on_add(entry)
        self._log.add(entry.subject, entry.executed_at, orjson.dumps(entry, default=_as_dict))

    def find_newest_result(self, subject: str) -> ExecutionResult | None:
        newest = next(self._log.iterate_entries(Period(limit=1), subject), None)
        return None if newest is None else msgspec.json.decode(newest, type=ExecutionResult)

    def iterate_runs(self, subject: str, period: Period) -> Iterator[ExecutionEntry]:
        """Yield the period's executions, newest first."""
        for each in self._log.iterate_entries(period, subject):
            yield msgspec.json.decode(each, type=ExecutionEntry)

    def list_runs(self, subject: str, period: Period) -> list[ExecutionEntry]:
        """Return the period's executions, newest first."""
        return [*self.iterate_runs(subject, period)]


def _as_dict(value: Any) -> dict[str, Any]:
    return asdict(value) if isinstance(value, Struct) else dict(value)
