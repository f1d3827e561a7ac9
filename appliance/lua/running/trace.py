"""The trace of an execution: its newest steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.clock import Clock
from appliance.lua.running.packed_rows import PackedRows, RowMemory
from appliance.shortening import shorten

MAX_TRACE_STEPS = 200
MAX_LOG_STEPS = 50

MAX_STEP_CHARS = 200
"""Maximum length of a string in a trace step."""


class Trace:
    """Stores an execution's newest steps, with at most `MAX_LOG_STEPS` log lines. A step's `at_ms` is the time since
    the trace was created."""

    def __init__(self, clock: Clock, memory: RowMemory) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self._logs, self._others = PackedRows(memory), PackedRows(memory)
        self._log_count = self._count = 0

    def add(self, step: str, **fields: Any) -> None:
        """Add a step: `command`, `invoke`, `sleep`, `log`, `scene`, or `wait`."""
        at_ms = round((self._clock.monotonic() - self._began) * 1000)
        row = {"at_ms": at_ms, "step": step, **{key: shorten_strings(value) for key, value in fields.items()}}
        self._count += 1
        if step == "log":
            self._log_count += 1
            self._logs.add((self._count, row), MAX_LOG_STEPS)
        else:
            self._others.add((self._count, row), MAX_TRACE_STEPS)

    def list_steps(self) -> tuple[Mapping[str, Any], ...]:
        """Return the steps, oldest first."""
        rows = [*self._logs.list_newest(MAX_LOG_STEPS), *self._others.list_newest(MAX_TRACE_STEPS)]
        return tuple(row for _, row in sorted(rows, key=lambda each: each[0])[-MAX_TRACE_STEPS:])

    def count_missing(self) -> int:
        """Return the number of steps that were dropped only because of the memory of all executions."""
        added = min(self._log_count, MAX_LOG_STEPS) + self._count - self._log_count
        kept = min(self._logs.count, MAX_LOG_STEPS) + self._others.count
        return min(added, MAX_TRACE_STEPS) - min(kept, MAX_TRACE_STEPS)


def shorten_strings(value: Any) -> Any:
    """Return the value as plain data, with short strings."""
    if isinstance(value, dict):
        return {key: shorten_strings(each) for key, each in value.items()}
    if isinstance(value, str):
        return shorten(str(value), MAX_STEP_CHARS)
    return value
