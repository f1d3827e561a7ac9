"""Writes standard output and standard error on threads, so that the hub never waits for a reader that stalls."""

from __future__ import annotations

import io
import logging
import os
import select
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import Any, Literal, TextIO

MAX_WAITING_BYTES = 256 << 10
"""Maximum size of the output that waits for the reader. Further output is dropped."""

FLUSH_SECS = 0.5
"""Maximum seconds that `flush` waits."""

log = logging.getLogger("hub")


def unblock(name: Literal["stdout", "stderr"]) -> None:
    """Replace `sys.stdout` or `sys.stderr` with a stream whose `write` never blocks."""
    stream = getattr(sys, name)
    writer = OutputWriter(stream, {"stdout": "standard output", "stderr": "standard error"}[name])
    setattr(sys, name, io.TextIOWrapper(writer, stream.encoding, errors="backslashreplace", write_through=True))


class OutputWriter(io.RawIOBase):
    """A stream whose thread writes to the descriptor of another stream.

    If the reader stalls, output is dropped from the full queue until the queue is empty. The log then reports the
    number of dropped lines. Errors are ignored, because they cannot be reported anywhere else.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream  # closes its descriptor if it is freed
        self._name = name
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped_lines = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True, name=name).start()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, data: Any, /) -> int:
        output = bytes(data)
        with self._changed:
            is_full = self._waiting_bytes + len(output) > MAX_WAITING_BYTES
            if self._waiting and (is_full or self._dropped_lines):
                self._dropped_lines += output.count(b"\n")
            else:
                self._waiting.append(output)
                self._waiting_bytes += len(output)
                self._changed.notify_all()
        return len(output)

    def flush(self) -> None:
        """Wait until all output is written, at most `FLUSH_SECS`."""
        if self._waiting:
            with self._changed:
                self._changed.wait_for(lambda: not self._waiting, FLUSH_SECS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
            with suppress(OSError):
                self._write_out(self._waiting[0])
            if len(self._waiting) == 1:
                self._report_dropped()
            with self._changed:
                self._waiting_bytes -= len(self._waiting.popleft())
                self._changed.notify_all()

    def _write_out(self, output: bytes) -> None:
        """Write the output, and wait for the reader. Another process may have made the descriptor non-blocking."""
        while output:
            try:
                output = output[os.write(self.fileno(), output) :]
            except BlockingIOError:
                select.select([], [self.fileno()], [])

    def _report_dropped(self) -> None:
        with self._changed:
            count, self._dropped_lines = self._dropped_lines, 0
        if count:
            log.warning(
                "the reader of %s stalled; %d lines were dropped%s",
                self._name,
                count,
                "; `lares log` shows the latest log lines" if self._name == "standard error" else "",
            )
