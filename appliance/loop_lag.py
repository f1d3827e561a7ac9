"""Measures how long the event loop keeps callbacks waiting."""

from __future__ import annotations

MIN_LAG_SECS = 0.05
"""Shorter waits for the loop are not recorded."""

LAG_WINDOW_SECS = 10.0


class LoopLag:
    """The time in seconds that ready callbacks wait for the end of a turn and for the processor.

    - `max_secs`: the longest wait since the hub's start
    - `last_secs`: the longest wait of the last `LAG_WINDOW_SECS`
    - `total_secs`: the sum of all waits longer than `MIN_LAG_SECS`
    - `turns`: the number of turns
    """

    def __init__(self) -> None:
        self.turns = 0
        self.last_secs = self.max_secs = self.total_secs = 0.0
        self.least_secs = self.ends_at = 0.0
        self._longest = 0.0

    def note(self, now: float, secs: float) -> None:
        """Record a wait that has just ended. Until the time `ends_at`, callers may skip waits of at most
        `least_secs`."""
        self._longest, self.max_secs = max(self._longest, secs), max(self.max_secs, secs)
        self.total_secs += secs if secs > MIN_LAG_SECS else 0.0
        if now >= self.ends_at:
            self.last_secs, self._longest, self.ends_at = self._longest, 0.0, now + LAG_WINDOW_SECS
        self.last_secs = max(self.last_secs, self._longest)
        self.least_secs = min(self._longest, MIN_LAG_SECS)
