"""The queue of changes that must outlive a power cut: each is checked, stored, and only then true."""

from __future__ import annotations

import asyncio

from appliance.errors import LaresError, StoreFailed
from appliance.home.changes import Change, Order
from appliance.home.registry import Registry
from appliance.store.document import Document
from appliance.store.records import order_changes
from appliance.tasks import Tasks

Waiting = list[tuple[Change, "asyncio.Future[Order]"]]


class Changes:
    """Makes changes in the order they come; those that wait at the same time share one sync.

    Each is checked against the order that those before it leave. Until it is stored nobody sees it; if it cannot be
    stored, nobody ever does. One that was asked for is made even if who asked goes away.
    """

    def __init__(self, registry: Registry, document: Document) -> None:
        self._registry = registry
        self._document = document
        self._tasks = Tasks()
        self._waiting: Waiting = []
        self._working: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Changes:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._working is not None:
            await asyncio.wait({self._working})
        await self._tasks.__aexit__()

    async def make(self, change: Change) -> Order:
        """Make the change; the order right after it. Raises `NotFound`, `Invalid`, or `StoreFailed`."""
        done: asyncio.Future[Order] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._working is None:
            self._working = self._tasks.start(self._work(), "making of changes")
        return await asyncio.shield(done)

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    await self._make_all(batch)
                finally:
                    _end_all(batch)
        finally:
            self._working = None

    async def _make_all(self, batch: Waiting) -> None:
        """Store what is allowed of the batch; then, and not before, it comes true, and each is told its verdict."""
        before = self._registry.order
        verdicts = self._check_all(batch, before)
        after = next((each for each in reversed(verdicts) if isinstance(each, Order)), before)
        try:
            await self._document.put_many(order_changes(before, after))
        except StoreFailed as error:
            for change, done in batch:
                _fail(done, self._fault_of(change) or error)
            return
        for (_, done), verdict in zip(batch, verdicts, strict=True):
            if isinstance(verdict, LaresError):
                _fail(done, verdict)
            else:
                self._registry.arrange(verdict)
                done.set_result(verdict)

    def _check_all(self, batch: Waiting, order: Order) -> list[Order | LaresError]:
        """The order after each change of the batch that is allowed; for the others, why they are not."""
        verdicts: list[Order | LaresError] = []
        for change, _ in batch:
            try:
                order = self._registry.propose(change, order)
            except LaresError as error:
                verdicts.append(error)
            else:
                verdicts.append(order)
        return verdicts

    def _fault_of(self, change: Change) -> LaresError | None:
        """What is wrong with the change by the order in force, now that those before it have come to nothing."""
        try:
            self._registry.propose(change, self._registry.order)
        except LaresError as error:
            return error
        return None


def _fail(done: asyncio.Future[Order], error: LaresError) -> None:
    done.set_exception(error)
    done.exception()  # who asked may be gone; then nobody else looks at it


def _end_all(batch: Waiting) -> None:
    """Let nobody wait for ever where something unforeseen came in between."""
    for _, done in batch:
        if not done.done():
            _fail(done, StoreFailed("the change was not made; the log says why"))
