"""The threads of the worker: one reads frames, others run Lua.

Whoever has read a frame does its work itself, and lets another thread read on; so no work waits for a thread to wake.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

MAX_IDLE = 8
"""Threads that wait for their turn to read; others end when they have nothing to do."""

STACK_BYTES = 1 << 20
"""Enough for Lua's deepest recursion in C; a quarter of it is not."""

Job = Callable[[], None]


class Threads:
    """Runs what `read` gives, each job on the thread that read it. A job must not raise; `read` must not return twice
    at once, and gives None where there is nothing to do.
    """

    def __init__(self, read: Callable[[], Job | None]) -> None:
        threading.stack_size(STACK_BYTES)
        self._read = read
        self._reading = threading.Lock()
        self._counting = threading.Lock()
        self._idle = 0

    def run(self) -> None:
        """Read and work on this thread, until it is not needed any more."""
        while self._enter():
            with self._reading:
                job = self._read()
            self._leave()
            if job is not None:
                job()
            del job

    def _enter(self) -> bool:
        with self._counting:
            is_needed = self._idle < MAX_IDLE
            self._idle += is_needed
            return is_needed

    def _leave(self) -> None:
        """See to it that somebody reads on."""
        with self._counting:
            self._idle -= 1
            is_alone = self._idle == 0
        if is_alone:
            with contextlib.suppress(RuntimeError):  # no room for a further thread: this one reads on after its job
                threading.Thread(target=self.run, daemon=True).start()
