"""Waits, in real time and with a limit, for events that do not depend on the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE = 60.0
"""A test fails after waiting for this number of seconds. No event takes this long, even on a busy machine."""


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
