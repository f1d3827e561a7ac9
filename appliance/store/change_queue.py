"""Changes of rooms, groups and places: each is checked, stored, and only then in force; and the queue for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from appliance.errors import LaresError, StoreFailed
from appliance.home.layout import Change, Layout
from appliance.home.registry import Registry
from appliance.store.document import Document
from appliance.store.records import layout_changes
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


class Changes:
    """Makes changes in the order they come; those that wait at the same time share one sync.

    Each is checked against the layout that those before it leave. It is visible only once it is
    stored. One that was begun is finished even if the caller is cancelled.
    """

    def __init__(self, registry: Registry, document: Document) -> None:
        self._registry = registry
        self._document = document
        self._queue = BatchQueue(self._make_all, "making of changes")

    async def __aenter__(self) -> Changes:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._queue.close()

    async def make(self, change: Change) -> Layout:
        """Make the change; the layout with it. Raises `NotFound`, `Invalid`, or `StoreFailed`."""
        return await self._queue.submit(change)

    async def _make_all(self, batch: list[Change]) -> list[Layout | LaresError]:
        """Store what is allowed of the batch, then put it in force. The result of each."""
        before = layout = self._registry.layout
        results = []
        for change in batch:
            results.append(result := self._preview(change, layout))
            layout = result if isinstance(result, Layout) else layout
        try:
            await self._document.put_many(layout_changes(before, layout))
        except StoreFailed as error:
            refused = (self._preview(change, before) for change in batch)
            return [error if isinstance(each, Layout) else each for each in refused]
        for result in results:
            if isinstance(result, Layout):
                self._registry.commit(result)
        return results

    def _preview(self, change: Change, layout: Layout) -> Layout | LaresError:
        """What the change makes of the layout, or why it is refused."""
        try:
            return self._registry.preview(change, layout)
        except LaresError as error:
            return error
