"""Limits: what one execution may use, and the watch that is kept over it while Lua runs on another thread."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from appliance.clock import Clock
from appliance.lua.pool import stand_back

GRACE = 2.0
"""Seconds beyond a limit after which a thread that is lost in a C function is given up."""

MOST_LOG_LINES = 1_000

SHORT_SECS = 0.02
"""How long a step may run before its thread stands back; hardly any honest one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one execution may use.

    `max_cpu_secs` is running time without a `ctx` call, `backstop_secs` the whole duration without the time inside
    `ctx:sleep`. Both are the machine's seconds, whatever clock the hub lives by.
    """

    max_memory_mb: float = 16
    max_cpu_secs: float = 5.0
    backstop_secs: float = 3600.0

    @property
    def max_memory(self) -> int:
        """Bytes."""
        return int(self.max_memory_mb * (1 << 20))


class Reason(IntEnum):
    """Why an execution was stopped. Small whole numbers, because these cross into Lua."""

    BACKSTOP = 1
    CPU = 2
    CANCELLED = 3
    MEMORY = 4
    STUCK = 5


class Watch:
    """What the hub may change, and Lua's hook asks, at any moment and from any thread.

    It knows nothing of the Lua state: the state's callbacks hold it, and a circle would keep the state alive.
    """

    __slots__ = ("_backstop", "_limits", "_now", "_short_until", "_until", "is_cancelled", "lines")

    def __init__(self, limits: Limits, machine: Clock) -> None:
        self._limits = limits
        self._now = machine.monotonic
        self._backstop = self._now() + limits.backstop_secs
        self._until: float | None = None
        self._short_until: float | None = None
        self.is_cancelled = False
        self.lines = 0

    def begin(self) -> None:
        """Lua runs from now on, after a `ctx` call or for the first time."""
        now = self._now()
        self._until = now + self._limits.max_cpu_secs
        self._short_until = now + SHORT_SECS

    def pause(self) -> None:
        """Lua does not run."""
        self._until = None

    def extend(self, seconds: float) -> None:
        """So many seconds were slept, and do not count."""
        self._backstop += seconds

    @property
    def left(self) -> float:
        """Seconds until the backstop."""
        return self._backstop - self._now()

    @property
    def is_lost(self) -> bool:
        """Whether Lua should have stopped by now, and has not."""
        return self._until is not None and self._now() > min(self._until, self._backstop) + GRACE

    def reason(self) -> Reason | None:
        """Why Lua should stop, if it should. Asked on its thread, which stands back when it has run for a while."""
        if self.is_cancelled:
            return Reason.CANCELLED
        now = self._now()
        if self._short_until is not None and now > self._short_until:
            self._short_until = None
            stand_back()
        if now > self._backstop:
            return Reason.BACKSTOP
        return Reason.CPU if self._until is not None and now > self._until else None

    def takes_line(self) -> bool:
        """Count a log line; whether it is still within what one execution may log."""
        self.lines += 1
        return self.lines <= MOST_LOG_LINES
