"""The limits of one run of a Lua file, and the settings that all runs share."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from msgspec import Struct

from appliance.clock import Clock
from appliance.lua.files.folder import Folder
from appliance.lua.running.stopped_scripts import StoppedScripts

MAX_SLOWDOWN = 10
"""Lua that gets little processor time, because the machine is busy or because Lua mostly reads, may run for this many
times its limit."""

DEADLINE_GRACE_SECS = 1.0
"""Lua must stop within this number of seconds after a limit is exceeded. Otherwise, the hub ends the run, and the
worker halts Lua's thread."""


WORKER_BYTES = 256 << 20
"""One part of a worker's maximum resident memory. The other part is four times the memory limit of a run."""


class RunLimits(Struct, frozen=True, kw_only=True):
    """The limits of one run. Times are in real seconds, even if the hub's clock is simulated.

    - `max_cpu_secs`: the processor time between two waiting calls. `cpu_limit` is the name of this limit.
    - `slowdown`: the real time between two waiting calls, as a multiple of `max_cpu_secs`.
    - `max_cpu_total_secs`: the total processor time.
    - `backstop_secs`: the whole duration, without the time inside `ctx:sleep`.
    - `unremarked_cpu_secs`: the processor time that causes a warning in the log.
    - `worker_bytes`: the memory that all runs of a worker share, in addition to four times `max_memory`.
    - `user_ids`: the user and groups of the worker if root starts it.
    """

    max_memory_mb: float = 16
    max_cpu_secs: float = 5.0
    slowdown: float = MAX_SLOWDOWN
    cpu_limit: str = "scripts.max_cpu_secs"
    max_cpu_total_secs: float = 60.0
    backstop_secs: float = 3600.0
    unremarked_cpu_secs: float = 10.0
    worker_bytes: int = WORKER_BYTES
    user_ids: tuple[int, ...] = ()

    @property
    def max_real_secs(self) -> float:
        return self.max_cpu_secs * self.slowdown

    @property
    def max_memory(self) -> int:
        return int(self.max_memory_mb * (1 << 20))

    @property
    def max_worker_bytes(self) -> int:
        """Return the maximum resident memory of a worker in bytes."""
        return self.max_memory * 4 + self.worker_bytes


class RunSettings(Struct, frozen=True):
    """The settings that all runs share. Lua gets its time from `clock` and `zone`. Limits are measured with the
    `machine` clock. `stopped_scripts` belongs to a single run: the scripts that it cannot require."""

    limits: RunLimits
    scripts: Folder | None
    clock: Clock
    zone: ZoneInfo
    machine: Clock
    stopped_scripts: StoppedScripts | None = None
