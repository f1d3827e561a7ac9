"""Time as a part that is handed in, so that tests and simulations own it."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """The machine's own time. Subclasses may invent theirs; nobody else in Lares asks the machine."""

    def now(self) -> datetime:
        """The present instant, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds on a clock that is never set; only differences mean something."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after this many seconds."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most this many seconds; tell whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return event.is_set()
        return True


def timestamp(instant: datetime) -> str:
    """The instant as RFC 3339 in UTC with milliseconds, `2026-11-20T08:09:11.042Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
