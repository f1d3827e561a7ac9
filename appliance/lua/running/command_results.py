"""The results of an execution's commands, within limits of number and size."""

from __future__ import annotations

import marshal
import zlib
from array import array
from collections import deque
from typing import Any

MAX_RESULTS = 1_000
MAX_RESULT_BYTES = 256 << 10
"""Maximum size of an execution's stored command results. Older results are dropped."""

_BLOCK_RESULTS = 32
"""Number of results that are compressed together. The results of one execution are similar."""

_LEVEL = 1
"""The fastest compression."""


class CommandResults:
    """The newest results of an execution's commands, oldest first.

    Most results are compressed while the execution runs, because hundreds of executions can run at the same time.
    """

    def __init__(self) -> None:
        self._blocks: deque[bytes] = deque()
        self._latest: list[tuple[str, str, str | None]] = []
        self._sizes = array("I")
        self._bytes = 0
        self._dropped = 0
        """The number of dropped results that the oldest block still contains."""

    def add(self, target: str, status: str, message: str | None) -> None:
        self._latest.append((target, str(status), message))
        if len(self._latest) == _BLOCK_RESULTS:
            self._blocks.append(zlib.compress(marshal.dumps(self._latest), _LEVEL))
            self._latest = []
        self._sizes.append(64 + len(target) + len(message or ""))
        self._bytes += self._sizes[-1]
        while len(self._sizes) > MAX_RESULTS or self._bytes > MAX_RESULT_BYTES:
            self._bytes -= self._sizes.pop(0)
            self._dropped += 1
        while self._blocks and self._dropped >= _BLOCK_RESULTS:
            self._blocks.popleft()
            self._dropped -= _BLOCK_RESULTS

    def to_list(self) -> list[dict[str, Any]]:
        """Return the `{target, status, message}` of each result."""
        results: list[tuple[str, str, str | None]] = []
        for block in self._blocks:
            results += marshal.loads(zlib.decompress(block))  # noqa: S302 - made by `add`
        kept = (results + self._latest)[self._dropped :]
        return [{"target": target, "status": status, "message": message} for target, status, message in kept]
