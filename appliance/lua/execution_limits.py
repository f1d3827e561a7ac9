"""What one execution of Lua may use."""

from __future__ import annotations

from dataclasses import dataclass

DEADLINE_GRACE_SECS = 1.0
"""How long after a limit Lua may take to stop; then its worker is condemned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionLimits:
    """What one execution may use.

    `max_cpu_secs` is running time without a `ctx` call, `backstop_secs` the whole duration without the time inside
    `ctx:sleep`. Both are real seconds, also where the hub's clock is simulated.
    """

    max_memory_mb: float = 16
    max_cpu_secs: float = 5.0
    backstop_secs: float = 3600.0

    @property
    def max_memory(self) -> int:
        """Bytes."""
        return int(self.max_memory_mb * (1 << 20))
