"""A queue of changes: each is made even if its caller is cancelled, and every caller gets an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from appliance.errors import LaresError, StoreFailed
from appliance.tasks import Tasks

Item = TypeVar("Item")
Result = TypeVar("Result")

log = logging.getLogger("store")


class BatchQueue(Generic[Item, Result]):
    """Hands the items to `work`, in the order they came; those that wait at the same time are one batch.

    `work` returns for each item its result, or the error to raise where it was asked for. If it raises any
    other exception, its batch gets `StoreFailed`, the traceback is logged, and the next batch is worked on.
    """

    def __init__(self, work: Callable[[list[Item]], Awaitable[Sequence[Result | LaresError]]], name: str) -> None:
        self._work = work
        self._name = name
        self._tasks = Tasks()
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._running: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """Wait until the item was worked on; its result, or its error is raised. Cancelling ends only the waiting."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done))
        if self._running is None:
            self._running = self._tasks.start(self._run(), self._name)
        return await done

    async def close(self) -> None:
        """Return once nothing waits any more."""
        if self._running is not None:
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                self._answer(batch, await self._results_of([item for item, _ in batch]))
        finally:  # also when the loop is torn down in the middle of it
            self._running = None
            left, self._waiting = [*batch, *self._waiting], []
            self._answer(left, [self._internal_error()] * len(left))

    async def _results_of(self, items: list[Item]) -> Sequence[Result | LaresError]:
        try:
            return await self._work(items)
        except Exception as error:
            log.error("%s failed: %s: %s", self._name, type(error).__name__, error, exc_info=error)
            return [self._internal_error()] * len(items)

    def _internal_error(self) -> StoreFailed:
        return StoreFailed("the change was not made; the log says why")

    @staticmethod
    def _answer(batch: list[tuple[Item, asyncio.Future[Result]]], results: Sequence[Result | LaresError]) -> None:
        for (_, done), result in zip(batch, results, strict=True):
            if done.done():
                continue
            if isinstance(result, LaresError):
                done.set_exception(result)
                done.exception()  # the caller may be cancelled; then asyncio must not log it
            else:
                done.set_result(result)
