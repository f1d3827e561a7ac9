"""How much of the loop's time the messages of each announced device may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.clock import Clock

MAX_SHARE = 0.1
"""Share of the time that the messages of one announced device may take in the long run."""

MAX_BURST_SECS = 0.1
"""Seconds that they may take at once before that counts."""


class TimeShares:
    """Measures the processor's time that is spent for each announcer, and says who has had its share.

    What is spent is forgotten at the rate of `MAX_SHARE`; more than `MAX_BURST_SECS` beyond that is too much.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}

    def is_over(self, announcer: str) -> bool:
        """Whether the messages of an announcer have to wait."""
        return self._level(announcer) > MAX_BURST_SECS

    @contextmanager
    def spending(self, announcer: str) -> Iterator[None]:
        """Count the time of this thread in the block as spent for an announcer."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.spend(announcer, time.thread_time() - began)

    def counting(self, announcer: str, work: Iterator[None]) -> Iterator[None]:
        """Do the work, its steps as they are, and count their time as spent for an announcer."""
        while True:
            with self.spending(announcer):
                if next(work, self) is self:
                    return
            yield

    def spend(self, announcer: str, secs: float) -> None:
        """Count so many seconds as spent for an announcer."""
        self._spent[announcer] = (self._level(announcer) + secs, self._clock.monotonic())

    def forget_idle(self) -> None:
        """Forget those of whom nothing is left to remember."""
        self._spent = {name: spent for name, spent in self._spent.items() if self._level(name) > 0}

    def _level(self, announcer: str) -> float:
        level, at = self._spent.get(announcer, (0.0, 0.0))
        return max(level - MAX_SHARE * (self._clock.monotonic() - at), 0.0) if level else 0.0
