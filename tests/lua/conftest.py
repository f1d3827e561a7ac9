"""What the tests of Lua share: a runner for all tests of a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from appliance.lua.runner import Runner
from tests.lua.bench import open_runner


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runner() -> AsyncIterator[Runner]:
    """A runner that all tests of a file share, on its loop; each execution has a Lua state of its own."""
    async with open_runner() as opened:
        yield opened
