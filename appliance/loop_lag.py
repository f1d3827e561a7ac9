"""Loop lag: the delay between when a callback is due and when the event loop calls it."""

from __future__ import annotations

import asyncio

MEASURE_INTERVAL_SECS = 10.0
"""Seconds between two looks: each wakes a box that may have nothing else to do."""


class LoopLag:
    """Asks the running loop to call back every few seconds, from entering the context to leaving it.

    `last_secs` is how late the last call was, `max_secs` the latest since the start, `total_secs` the sum.
    """

    def __init__(self) -> None:
        self.last_secs = self.max_secs = self.total_secs = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def __enter__(self) -> LoopLag:
        self._ask()
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + MEASURE_INTERVAL_SECS
        self._handle = loop.call_at(due, self._measure, due)

    def _measure(self, due: float) -> None:
        self.last_secs = max(0.0, asyncio.get_running_loop().time() - due)
        self.max_secs = max(self.max_secs, self.last_secs)
        self.total_secs += self.last_secs
        self._ask()
