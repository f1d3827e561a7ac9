"""A pool for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from appliance.lua.running.worker_pool import WorkerPool
from tests.lua.bench import open_pool


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[WorkerPool]:
    """Provide a pool for all tests of a file, on their event loop. Each execution in the pool has a separate Lua
    state."""
    async with open_pool() as opened:
        yield opened
