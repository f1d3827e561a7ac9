"""The Lua workers of commands that check or run Lua files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from appliance.cli.owner import become_owner, worker_ids
from appliance.clock import Clock
from appliance.config import Config
from appliance.lua.running.worker_pool import WorkerPool, build_pool
from appliance.lua.text.source import Source


@asynccontextmanager
async def open_pool(settings: Config, clock: Clock, *home: Path, **given: Any) -> AsyncIterator[WorkerPool]:
    """Start the Lua workers. If root started this process, the workers switch to the user that owns the home. `given`
    contains optional arguments of `build_pool`.

    The first worker starts as root, because the home's owner may be unable to read root's Python.
    """
    ids, limits = worker_ids(*home), settings.automations.runner
    zone = settings.locale.timezone
    parts = settings.scripts, limits, zone, settings.root, clock
    async with build_pool(*parts, user_ids=ids, **given) as pool:
        if ids:
            await pool.compile(Source(name="the start of Lua", text=b""))
        yield pool


@asynccontextmanager
async def open_pool_as_owner(settings: Config, clock: Clock, *home: Path, **given: Any) -> AsyncIterator[WorkerPool]:
    """Start the Lua workers like `open_pool`. If root started this process, this process also switches to the user
    that owns the home."""
    async with open_pool(settings, clock, *home, **given) as pool:
        become_owner(*home)
        yield pool
