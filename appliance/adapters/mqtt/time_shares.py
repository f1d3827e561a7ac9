"""How much of the loop's time the messages of each announced device may take."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.clock import Clock

MAX_SHARE = 0.1
"""Share of the time that the messages of one announced device may take in the long run."""

MAX_BURST_SECS = 0.1
"""Seconds that they may take at once before that counts."""

MAX_SHARE_OF_ALL = 0.4
"""Share of the time that the messages of all those together may take who take much."""

LITTLE_SECS = 0.001
"""Seconds up to which somebody takes little."""

RECOUNT_SECS = 0.05
"""Seconds spent, or ten times as many passed, after which those who take much are counted anew."""


MAX_COSTS = 20_000
"""Announcers of whom it is remembered what their latest work took."""


class TimeShares:
    """Measures the processor's time that is spent for each announcer, and says who has had its share.

    What is spent is forgotten at the rate of the share, and more than the burst beyond that is too much. Where many
    take much, they divide `MAX_SHARE_OF_ALL` among them; while they have had that, whoever is not known to take
    little waits with them. So whoever is known to take little is never late because of them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}
        self._portion = 1.0
        self._counted_at = -math.inf
        self._spent_since = 0.0
        self._costs: dict[str, float] = {}
        self._much = (0.0, 0.0)

    def is_crowded_out(self, announcer: str) -> bool:
        """Whether those who take much have had all their time, and an announcer is not known to take little."""
        return self._level_of_all() > MAX_BURST_SECS and self._costs.get(announcer, math.inf) > LITTLE_SECS

    def is_over(self, announcer: str) -> bool:
        """Whether the messages of an announcer have to wait."""
        return self._level(announcer) > MAX_BURST_SECS * self._portion

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
        self._spent_since += secs
        self._costs[announcer] = secs
        if secs > LITTLE_SECS:
            self._much = (self._level_of_all() + secs, self._clock.monotonic())
        if self._spent_since > RECOUNT_SECS:
            self._recount()

    def forget_idle(self) -> None:
        """Forget those of whom nothing is left to remember."""
        self._spent = {name: spent for name, spent in self._spent.items() if self._level(name) > 0}
        if len(self._costs) > MAX_COSTS:
            self._costs.clear()
        if self._portion < 1 and self._clock.monotonic() - self._counted_at > 10 * RECOUNT_SECS:
            self._recount()

    def _recount(self) -> None:
        """Find what portion of a whole share everybody has now."""
        self._spent = {name: (self._level(name), self._clock.monotonic()) for name in self._spent}
        busy = sum(level > LITTLE_SECS for level, _ in self._spent.values())
        self._portion = min(1.0, MAX_SHARE_OF_ALL / MAX_SHARE / max(busy, 1))
        self._counted_at, self._spent_since = self._clock.monotonic(), 0.0

    def _level_of_all(self) -> float:
        level, at = self._much
        return max(level - MAX_SHARE_OF_ALL * (self._clock.monotonic() - at), 0.0)

    def _level(self, announcer: str) -> float:
        level, at = self._spent.get(announcer, (0.0, 0.0))
        forgotten = MAX_SHARE * self._portion * (self._clock.monotonic() - at)
        return max(level - forgotten, 0.0) if level else 0.0
