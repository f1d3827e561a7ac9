"""The results of an execution's commands, within limits of number and size."""

from __future__ import annotations

from array import array
from typing import Any

from appliance.lua.running.packed_rows import PackedRows, RowMemory

MAX_RESULTS = 1_000
MAX_RESULT_BYTES = 256 << 10
"""Maximum size of an execution's stored command results. Older results are dropped."""


class CommandResults:
    """The newest results of an execution's commands, oldest first."""

    def __init__(self, memory: RowMemory) -> None:
        self._rows = PackedRows(memory)
        self._sizes = array("I")
        self._bytes = 0

    def add(self, target: str, status: str, message: str | None) -> None:
        self._sizes.append(64 + len(target) + len(message or ""))
        self._bytes += self._sizes[-1]
        while len(self._sizes) > MAX_RESULTS or self._bytes > MAX_RESULT_BYTES:
            self._bytes -= self._sizes.pop(0)
        self._rows.add((target, str(status), message), len(self._sizes))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the `{target, status, message}` of each result."""
        kept = self._rows.list_newest(len(self._sizes))
        return [{"target": target, "status": status, "message": message} for target, status, message in kept]

    def count_missing(self) -> int:
        """Return the number of results that were dropped only because of the memory of all executions."""
        return max(0, len(self._sizes) - self._rows.count)
