"""The limit for files that load at the hub's start, before the hub answers requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from appliance.errors import Fault, ScriptFailed
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.text.source import Source

START_CPU_SECS = 0.5
"""Maximum processor time in seconds of the first attempt to load a file at the start."""

TIMEOUT = "timeout"
"""The status of a `ScriptFailed` whose file exceeded a time limit."""


class StartLimit:
    """Limits the time that endless files add to the hub's start.

    Each file first runs with a short limit. Files that exceed it run again with the normal limits, one after another,
    until one of them exceeds the normal limits. Further tries of a file that exceeded the limits fail at once.
    """

    def __init__(self, limits: RunLimits) -> None:
        self._normal = limits
        secs = min(START_CPU_SECS, limits.max_cpu_secs)
        why = "a short limit, because another file took too long at the start; correct that file, then reload"
        self._short = replace(limits, max_cpu_secs=secs, cpu_limit=why)
        self._lock = asyncio.Lock()
        self._had_endless_file = False
        self._exceeded: dict[Source, Fault] = {}

    async def run(self, source: Source, run: Callable[[RunLimits], Awaitable[bytes]]) -> bytes:
        """Run the file within the limits. Raise `ScriptFailed` if the file fails."""
        if source in self._exceeded:
            raise ScriptFailed(self._exceeded[source], TIMEOUT)
        try:
            return await self._run_short_first(run)
        except ScriptFailed as failed:
            if failed.status == TIMEOUT:
                self._exceeded[source] = failed.fault
            raise

    async def _run_short_first(self, run: Callable[[RunLimits], Awaitable[bytes]]) -> bytes:
        try:
            return await run(self._short)
        except ScriptFailed as failed:
            if failed.status != TIMEOUT:
                raise
            async with self._lock:
                if self._had_endless_file:
                    raise
                return await self._run_again(run)

    async def _run_again(self, run: Callable[[RunLimits], Awaitable[bytes]]) -> bytes:
        try:
            return await run(self._normal)
        except ScriptFailed as failed:
            self._had_endless_file = failed.status == TIMEOUT
            raise failed from None
