"""Waiting in real time for events outside of the test, with a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE = 60.0
"""Seconds after which a test fails, far more than any event takes on a busy machine."""


async def until(holds: Callable[[], object], within: float = PATIENCE) -> None:
    """Wait until the condition is true. Check the condition at growing intervals."""
    pause = 0.001
    async with asyncio.timeout(within):
        while not holds():
            await asyncio.sleep(pause)
            pause = min(1.2 * pause, 0.02)


async def until_async(holds: Callable[[], Awaitable[bool]], within: float = PATIENCE) -> None:
    """Wait until the asynchronous condition is true."""
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110 - no event to await
            await asyncio.sleep(0.05)
