"""Persistent connections: reconnects with back-off, and matches replies to requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from appliance.clock import Clock
from appliance.errors import AdapterFailed
from appliance.tasks import MAX_BACK_OFF_SECS, back_off


async def keep_open(
    clock: Clock,
    session: Callable[[], Awaitable[None]],
    on_end: Callable[[AdapterFailed | None, int], float | None],
    *,
    first_secs: float = 1.0,
    most_secs: float = MAX_BACK_OFF_SECS,
    is_stable: Callable[[], bool] | None = None,
) -> NoReturn:
    """Run one session after another until cancelled. Pauses grow from `first_secs` to `most_secs`.

    `session` connects and works until the connection ends. `session` may raise `AdapterFailed`. After each
    session, `on_end` gets the error and the number of consecutive unstable sessions, and may return another pause.
    A stable session resets that number. If `is_stable` is given, it decides whether a session was stable.
    Otherwise, a session is stable after `most_secs`.
    """
    failures = 0
    while True:
        began, error = clock.monotonic(), None
        try:
            await session()
        except AdapterFailed as failure:
            error = failure
        is_long = clock.monotonic() - began >= most_secs
        failures = 1 if (is_long if is_stable is None else is_stable()) else failures + 1
        pause = on_end(error, failures)
        # Before the pause, release the frames of the attempt, and any socket that a library left open.
        error = None
        await clock.sleep(back_off(failures, first_secs, most_secs) if pause is None else pause)


class _Waiting:
    """A request that waits for its reply."""

    def __init__(self) -> None:
        self.is_over = asyncio.Event()
        self.reply: Any = None
        self.error: AdapterFailed | None = None


class Replies:
    """Requests of one connection that wait for their replies. Methods may be called concurrently."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_number = 0
        self._waiting: dict[int, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def request(self, send: Callable[[int], Awaitable[None]], secs: float) -> Any:
        """Send a request with a new number, and return the reply.

        Raises `TimeoutError` if no reply comes within `secs`. Also raises the error that was passed to `fail`, and
        the errors of `send`. The caller limits the time of `send`.
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
            raise waiting.error
        if not is_over:
            raise TimeoutError
        return waiting.reply

    def take(self, number: int, reply: Any) -> bool:
        """Pass a reply to its request. Return False if no request waits for it, because the reply is late or
        unrequested."""
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
