"""Computes a result once for all clients that request it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from appliance.tasks import Tasks

T = TypeVar("T")


class SharedRun(Generic[T]):
    """Runs the work at most once at a time. Callers that arrive during a run share the next run, so that every result
    is newer than its request."""

    def __init__(self, work: Callable[[], Awaitable[T]], name: str) -> None:
        self._work = work
        self._name = name
        self._tasks = Tasks()
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def result(self) -> T:
        """Return the result of a run that has not begun yet. The run continues even if the caller is cancelled."""
        if self._next is None:
            self._next = self._tasks.start(self._run(self._running), self._name)
        return await asyncio.shield(self._next)

    async def _run(self, earlier: asyncio.Task[T] | None) -> T:
        if earlier is not None:
            await asyncio.wait({earlier})
        own, self._next = self._next, None
        self._running = own
        try:
            return await self._work()
        finally:
            if self._running is own:
                self._running = None  # otherwise, the task would keep its result in memory
