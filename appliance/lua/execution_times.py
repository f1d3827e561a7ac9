"""Measures the time of one execution, and computes its deadlines."""

from __future__ import annotations

from math import inf

from appliance.clock import Clock
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua_worker.protocol import Reason


class ExecutionTimes:
    """The times of one execution, in seconds of the machine's clock.

    Two limits apply. The running time limits Lua between two calls that wait. The backstop limits the whole duration,
    except the calls that it does not count.

    - `deadline`: the time limit of the current step.
    - `limit`: the limit that ends Lua at the deadline.
    - `computes_since`: the time at which Lua began to compute, or None while a call waits.
    """

    def __init__(self, limits: ExecutionLimits, machine: Clock) -> None:
        self._limits = limits
        self._machine = machine
        self.deadline = inf
        self.limit = Reason.RUNNING_TIME
        self.computes_since: float | None = None
        self._backstop: float | None = None
        self._resumed_at: float | None = None
        self._running_secs_left = limits.max_running_secs

    @property
    def computing_secs(self) -> float | None:
        """Return the seconds for which Lua has computed, or None if a call waits."""
        return None if self.computes_since is None else self._machine.monotonic() - self.computes_since

    @property
    def counted_secs(self) -> float:
        """Return the seconds that the backstop has counted so far."""
        if self._backstop is None:
            return 0.0
        return self._limits.backstop_secs - (self._backstop - self._machine.monotonic())

    def begin_call(self, *, is_counted: bool, is_reading: bool) -> None:
        """Set the deadline of a call. A call that does more than read restarts the running time."""
        self.deadline = self._backstop or inf if is_counted else inf
        if not is_reading:
            self._running_secs_left, self.computes_since = self._limits.max_running_secs, None

    def end_call(self, uncounted_secs: float) -> None:
        """End a call, and extend the backstop by these seconds of the call."""
        self.deadline = inf
        if self._backstop is not None:
            self._backstop += uncounted_secs

    def resume(self) -> float:
        """Start measuring Lua's running time. Return the seconds until the deadline."""
        now = self._resumed_at = self._machine.monotonic()
        if self.computes_since is None:
            self.computes_since = now
        if self._backstop is None:
            self._backstop = now + self._limits.backstop_secs
        left = max(0.0, self._backstop - now)
        secs, self.limit = min((self._running_secs_left, Reason.RUNNING_TIME), (left, Reason.BACKSTOP))
        self.deadline = now + secs
        return secs

    def pause(self) -> None:
        """Stop measuring Lua's running time, because Lua waits or has ended."""
        self.deadline = inf
        if self._resumed_at is not None:
            ran = self._machine.monotonic() - self._resumed_at
            self._running_secs_left = max(0.0, self._running_secs_left - ran)
            self._resumed_at = None
