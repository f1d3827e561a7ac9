"""Matches the replies on one connection to the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from appliance.clock import Clock
from appliance.errors import AdapterFailed


class _Waiting:
    """A request that waits for its reply."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.reply: Any = None
        self.error: AdapterFailed | None = None


class Replies:
    """One connection's requests that wait for replies. Methods may be called concurrently."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_number = 0
        self._waiting: dict[int, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def request(self, send: Callable[[int], Awaitable[None]], secs: float) -> Any:
        """Send a request with a new number, and return the reply.

        Raise `TimeoutError` if no reply arrives within `secs`. Also raise the error that was passed to `fail`, and
        the errors of `send`. The caller must limit the time of `send`.
        """
        self._last_number += 1
        number = self._last_number
        waiting = self._waiting[number] = _Waiting()
        try:
            await send(number)
            is_over = await self._clock.wait(waiting.is_over, secs)
        finally:
            del self._waiting[number]
        if waiting.error is not None:
            try:
                raise waiting.error
            finally:
                del waiting  # otherwise, this frame and the exception's traceback would keep each other in memory
        if not is_over:
            raise TimeoutError
        return waiting.reply

    def take(self, number: int, reply: Any) -> bool:
        """Pass a reply to its request. Return False if no request waits for the reply, because the reply is late
        or unrequested."""
        waiting = self._waiting.get(number)
        if waiting is None or waiting.is_over.is_set():
            return False
        waiting.reply = reply
        waiting.is_over.set()
        return True

    def fail(self, error: AdapterFailed) -> None:
        """Fail all waiting requests, because the connection has ended."""
        for waiting in self._waiting.values():
            if not waiting.is_over.is_set():
                waiting.error = error
                waiting.is_over.set()
