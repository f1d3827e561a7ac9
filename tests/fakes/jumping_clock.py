"""A clock for homes on real sockets whose hours pass in milliseconds."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from appliance.clock import Clock


class JumpingClock(Clock):
    """Real time, and the jumps beside it: a jump wakes whoever's time has come."""

    recheck_secs = 86_400.0

    def __init__(self, start: datetime) -> None:
        self._loop = asyncio.get_running_loop()
        self._start, self._began, self._jumped = start, self._loop.time(), 0.0
        self._waits: dict[asyncio.Future[None], float] = {}

    def now(self) -> datetime:
        """The instant."""
        return datetime.fromtimestamp(self._start.timestamp() + self.monotonic(), self._start.tzinfo)

    def monotonic(self) -> float:
        """Seconds since the start, the jumps included."""
        return self._loop.time() - self._began + self._jumped

    def is_synchronised(self) -> bool:
        """Always."""
        return True

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds, or with the jump that brings them."""
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            await self.wait(asyncio.Event(), seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, at most so many seconds; whether it was set."""
        if event.is_set() or seconds <= 0:
            return event.is_set()
        alarm: asyncio.Future[None] = self._loop.create_future()
        self._waits[alarm] = self.monotonic() + seconds
        either: list[asyncio.Future[Any]] = [alarm, asyncio.ensure_future(event.wait())]
        try:
            while not (event.is_set() or alarm.done()):
                left = self._waits[alarm] - self.monotonic()
                await asyncio.wait(either, timeout=max(left, 0.0), return_when=asyncio.FIRST_COMPLETED)
                if self._waits[alarm] <= self.monotonic():
                    return event.is_set()
        finally:
            del self._waits[alarm]
            for each in either:
                each.cancel()
        return event.is_set()

    def jump(self, seconds: float) -> None:
        """Let so many seconds pass at once."""
        self._jumped += max(seconds, 0.0)
        for alarm, due in self._waits.items():
            if due <= self.monotonic() and not alarm.done():
                alarm.set_result(None)
