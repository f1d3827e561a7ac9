"""Changes of rooms, groups and places: each is checked, stored, and only then in force."""

from __future__ import annotations

from appliance.errors import LaresError, StoreFailed
from appliance.home.changes import Change
from appliance.home.layout import Draft, Edit
from appliance.home.registry import Registry
from appliance.store.batch_queue import BatchQueue
from appliance.store.document import Document
from appliance.store.records import edit_changes


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

    async def make(self, change: Change) -> Edit:
        """Make the change; what it made different. Raises `NotFound`, `Invalid`, or `StoreFailed`."""
        return await self._queue.submit(change)

    async def _make_all(self, batch: list[Change]) -> list[Edit | LaresError]:
        """Store what is allowed of the batch, then put it in force. The result of each."""
        draft = Draft(self._registry.layout)
        results = [self._preview(change, draft) for change in batch]
        try:
            await self._document.put_many(edit_changes(draft.edit, self._registry.layout))
        except StoreFailed as error:
            return [self._fault_of(change) or error for change in batch]
        for result in results:
            if isinstance(result, Edit):
                self._registry.commit(result)
        return results

    def _preview(self, change: Change, draft: Draft) -> Edit | LaresError:
        """What the change makes different after those before it, which the draft takes in; or why it is refused."""
        try:
            edit = self._registry.preview(change, draft)
        except LaresError as error:
            return error
        draft.add(edit)
        return edit

    def _fault_of(self, change: Change) -> LaresError | None:
        """What is wrong with the change by the layout in force, now that those before it were not made."""
        try:
            self._registry.preview(change, self._registry.layout)
        except LaresError as error:
            return error
        return None
