"""The Lua workers of commands that check or run Lua files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

from appliance.cli.owner import become_owner, worker_ids
from appliance.clock import Clock
from appliance.config import Config
from appliance.lua.running.run_limits import WORKER_BYTES
from appliance.lua.running.worker_pool import WorkerPool, build_pool
from appliance.lua.text.source import Source


@asynccontextmanager
async def open_pool(
    settings: Config,
    clock: Clock,
    *home: Path,
    becomes_owner: bool = True,
    max_cpu_secs: float = inf,
    unsaved: Source | None = None,
    worker_bytes: int = WORKER_BYTES,
) -> AsyncIterator[WorkerPool]:
    """Start the Lua workers. If root started this process, the workers switch to the user that owns the home. If
    `becomes_owner`, this process then does so too.

    The first worker starts as root, because the home's owner may be unable to read root's Python.
    """
    ids, limits = worker_ids(*home), settings.automations.runner
    zone = settings.locale.timezone
    parts = settings.scripts, limits, zone, settings.root, clock
    async with build_pool(
        *parts, user_ids=ids, max_cpu_secs=max_cpu_secs, unsaved=unsaved, worker_bytes=worker_bytes
    ) as pool:
        if ids:
            await pool.compile(Source(name="the start of Lua", text=b""))
        if becomes_owner:
            become_owner(*home)
        yield pool
