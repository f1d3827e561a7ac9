"""The Lua workers of `lares check` and `simulate`: root runs nobody else's Lua."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from appliance.cli.owner import become_owner, worker_ids
from appliance.clock import Clock
from appliance.config import Config
from appliance.lua.source import Source
from appliance.lua.worker_pool import WorkerPool, build_pool


@asynccontextmanager
async def open_pool(settings: Config, clock: Clock, *home: Path) -> AsyncIterator[WorkerPool]:
    """The workers; they and from then on this process are the user whose home it is, if root began it.

    The first is started by root, because Python itself may lie where that user may not read.
    """
    ids, limits = worker_ids(*home), settings.automations.runner
    zone = settings.locale.timezone
    async with build_pool(settings.scripts, limits, zone, settings.root, clock, user_ids=ids) as pool:
        if ids:
            await pool.compile(Source(name="", text=b""))
            become_owner(*home)
        yield pool
