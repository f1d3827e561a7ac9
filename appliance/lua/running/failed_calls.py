"""Stores the failed commands and calls of executions."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from appliance.clock import Clock
from appliance.lua.running.trace import shorten_strings

MAX_FAILED_CALLS = 100


class FailedCall(Struct, frozen=True, kw_only=True):
    """The newest failure of requests to one target, and the number of failures since the hub's start."""

    source: str
    target: str
    reason: str
    at: datetime
    count: int


class FailedCalls:
    """The failures, with one row for each source and target."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[tuple[str, str], FailedCall] = {}

    def add(self, source: str, target: str, reason: str) -> None:
        """Count a failure. If there are more than `MAX_FAILED_CALLS` rows, drop the oldest row."""
        before = self._rows.pop((source, target), None)
        count = 1 if before is None else before.count + 1
        self._rows[source, target] = FailedCall(
            source=source, target=target, reason=shorten_strings(reason), at=self._clock.now(), count=count
        )
        if len(self._rows) > MAX_FAILED_CALLS:
            del self._rows[next(iter(self._rows))]

    def list_newest(self) -> list[FailedCall]:
        return [*reversed(self._rows.values())]
