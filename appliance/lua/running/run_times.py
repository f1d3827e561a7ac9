"""Measures the time of one run, and computes its deadlines."""

from __future__ import annotations

from math import inf

from appliance.clock import Clock
from appliance.lua.running.run_limits import RunLimits
from appliance.lua_worker.protocol import Reason


class RunTimes:
    """The times of one run, in seconds of the machine's clock.

    Three limits apply. Two of them limit the processor time and the real time of Lua between two calls that wait. The
    backstop limits the whole duration, except the calls that it does not count.

    - `deadline`: the time limit of the current step.
    - `limit`: the limit that ends Lua at the deadline.
    - `cpu_secs_at_limit`: Lua must wait or end before the run's processor time exceeds this; None until Lua computes.
    - `computes_since`: the time at which Lua began to compute, or None while a call waits.
    """

    def __init__(self, limits: RunLimits, machine: Clock) -> None:
        self._limits = limits
        self._machine = machine
        self.deadline = inf
        self.limit = Reason.REAL_TIME
        self.computes_since: float | None = None
        self._backstop: float | None = None
        self.cpu_secs_at_limit: float | None = None

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
            self.cpu_secs_at_limit = self.computes_since = None

    def end_call(self, uncounted_secs: float) -> None:
        """End a call, and extend the backstop by these seconds of the call."""
        self.deadline = inf
        if self._backstop is not None:
            self._backstop += uncounted_secs

    def resume(self, cpu_secs: float) -> tuple[float, float]:
        """Start measuring Lua's running time. Return `cpu_secs_at_limit`, and the seconds until the deadline.

        `cpu_secs` is the processor time of the run so far.
        """
        now = self._machine.monotonic()
        if self.computes_since is None:
            self.computes_since = now
        if self._backstop is None:
            self._backstop = now + self._limits.backstop_secs
        left = max(0.0, self._backstop - now)
        if self.cpu_secs_at_limit is None:
            self.cpu_secs_at_limit = cpu_secs + self._limits.max_cpu_secs
        computing_left = max(0.0, self.computes_since + self._limits.max_real_secs - now)
        secs, self.limit = min((computing_left, Reason.REAL_TIME), (left, Reason.BACKSTOP))
        self.deadline = now + secs
        return self.cpu_secs_at_limit, secs

    def secs_left(self, cpu_secs: float) -> tuple[float, Reason]:
        """Return the seconds until Lua exceeds a limit, at the earliest, and this limit. The seconds are negative if
        Lua has exceeded the limit."""
        cpu_left = inf if self.cpu_secs_at_limit is None else self.cpu_secs_at_limit - cpu_secs
        return min((cpu_left, Reason.RUNNING_TIME), (self.deadline - self._machine.monotonic(), self.limit))

    def pause(self) -> None:
        """Remove the deadline, because Lua waits or has ended."""
        self.deadline = inf
