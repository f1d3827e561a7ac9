"""The guard of one execution: what the worker's threads tell each other about it while its Lua runs.

It is what Lua can call of Python. Each such function returns a whole number, bytes or nothing, and never raises.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from time import monotonic

from appliance.lua_worker.protocol import TIMING, Kind, Reason, encode

MAX_LOG_LINES = 1_000
MAX_LOG_BYTES = 1 << 20
"""What one execution may log; the rest is dropped."""

Send = Callable[[bytes], None]
"""Sends a frame to the hub."""


class Guard:
    """Limits, logging and blocking requests of the execution of this number.

    `reason` is why Lua is to stop, once somebody wants it to; `lift` takes the limit of memory away, `limit` sets it.
    """

    def __init__(self, execution: int, send: Send) -> None:
        self.reason: Reason | None = None
        self.lift: Callable[[], None] = lambda: None
        self.limit: Callable[[], None] = lambda: None
        self.is_blocked = False
        self.answers: queue.SimpleQueue[tuple[bytes, ...] | None] = queue.SimpleQueue()
        self._execution = execution
        self._send = send
        self._until = 0.0
        self._reason_then = Reason.CPU
        self._now, self._now_at = 0.0, 0.0
        self._parts: list[bytes] = []
        self._lines = 0
        self._bytes = 0

    def begin(self, timing: bytes) -> None:
        """Lua runs from now on, under these limits (`protocol.TIMING`)."""
        secs, reason, self._now = TIMING.unpack(timing)
        self._now_at = monotonic()
        self._until = self._now_at + secs
        self._reason_then = Reason(reason)

    def poll(self) -> int | None:
        """Why Lua should stop, if it should."""
        if self.reason is not None:
            return int(self.reason)
        return int(self._reason_then) if monotonic() > self._until else None

    def instant(self) -> int:
        """The present, in seconds since 1970, by the hub's clock."""
        return int(self._now + monotonic() - self._now_at)

    def emit(self, level: bytes, message: bytes, fields: bytes | None) -> None:
        """Log a line, unless there were too many."""
        fields = fields or b""
        self._lines += 1
        self._bytes += len(message) + len(fields)
        if self._lines <= MAX_LOG_LINES and self._bytes <= MAX_LOG_BYTES:
            self._send(encode(Kind.LOG, self._execution, level, message, fields))

    def ask(self, operation: bytes, arguments: bytes) -> int | None:
        """Make a request and wait on this thread: 1 or 0 as the answer is good or not, nothing where Lua is to stop.

        With an answer the limit of memory is lifted, so that Lua can `take` it; then Lua sets it again.
        """
        self.is_blocked = True
        if self.reason is not None:
            return None
        self._send(encode(Kind.REQUEST, self._execution, operation, arguments))
        answer = self.answers.get()
        self.is_blocked = False
        if answer is None or self.reason is not None:
            return None
        timing, is_ok, *self._parts = answer
        self.begin(timing)
        self.lift()
        return len(is_ok)

    def take(self) -> bytes:
        """The next part of the answer."""
        return self._parts.pop(0) if self._parts else b""

    def relimit(self) -> None:
        """The answer was taken: limit the memory again."""
        self.limit()
