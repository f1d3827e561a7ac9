"""Changes of rooms, groups and places: each is checked, stored, and only then in force."""

from __future__ import annotations

from appliance.errors import LaresError, StoreFailed
from appliance.home.layout import Change, Layout
from appliance.home.registry import Registry
from appliance.store.batch_queue import BatchQueue
from appliance.store.document import Document
from appliance.store.records import layout_changes


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
