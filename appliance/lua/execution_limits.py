"""What one execution of Lua may use."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from msgspec import Struct

from appliance.clock import Clock
from appliance.lua.folder import Folder

DEADLINE_GRACE_SECS = 1.0
"""How long after a limit Lua may take to stop; then its worker is killed."""


class ExecutionLimits(Struct, frozen=True, kw_only=True):
    """What one execution may use.

    `max_cpu_secs` is running time without a call that waits, `max_cpu_total_secs` processor time in all, and
    `backstop_secs` the whole duration without the time inside `ctx:sleep`. All are real seconds, also where the hub's
    clock is simulated. `user_ids` are the user and the groups that a worker becomes which root starts.
    """

    max_memory_mb: float = 16
    max_cpu_secs: float = 5.0
    max_cpu_total_secs: float = 60.0
    backstop_secs: float = 3600.0
    user_ids: tuple[int, ...] = ()

    @property
    def max_memory(self) -> int:
        """Bytes."""
        return int(self.max_memory_mb * (1 << 20))


class ExecutionSettings(Struct, frozen=True):
    """What all executions share. `clock` and `zone` are those that Lua sees; the limits are seconds of `machine`."""

    limits: ExecutionLimits
    scripts: Folder | None
    clock: Clock
    zone: ZoneInfo
    machine: Clock
