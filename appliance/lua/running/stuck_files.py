"""Blocks files that repeatedly could not be stopped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from appliance.clock import Clock
from appliance.lua.text.source import Source

MAX_STUCK = 2
STUCK_PAUSE_SECS = 60.0
"""If a file could not be stopped `MAX_STUCK` times within this time, it is blocked for the same time."""


class StuckFiles:
    """The times at which files could not be stopped."""

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._times: dict[Source, deque[float]] = {}

    def note(self, sources: Iterable[Source]) -> None:
        """Note that these files could not be stopped."""
        for source in sources:
            self._times.setdefault(source, deque(maxlen=MAX_STUCK)).append(self._machine.monotonic())

    def refusal_of(self, source: Source) -> str | None:
        """If the file is blocked, return the reason; otherwise, return None."""
        if not self._times:
            return None
        now = self._machine.monotonic()
        for each in [each for each, times in self._times.items() if now - times[-1] > STUCK_PAUSE_SECS]:
            del self._times[each]
        times = self._times.get(source)
        if times is None or len(times) < MAX_STUCK or now - times[0] > STUCK_PAUSE_SECS:
            return None
        left = STUCK_PAUSE_SECS - (now - times[-1])
        blocked = f"is blocked for {left:.0f} s, because {MAX_STUCK} of its runs could not be stopped"
        return f"{blocked}; to run it earlier, change the file"
