"""Writes waits of triggers that must not wait for the next flush."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Collection
from functools import partial

from msgspec import Struct, convert

from appliance.automations.automation_states import AutomationStates, StoredAutomation
from appliance.errors import StoreFailed
from appliance.store.record_keys import AUTOMATION_PREFIX
from appliance.store.records import read_one, skip
from appliance.store.storage import Storage
from appliance.tasks import SharedRun, Tasks


class _Write(Struct, eq=False):
    """The write of an automation's waits. `stored` is the automation's stored state, and `keys` are the keys of the
    waits in this state."""

    writing: SharedRun[None]
    stored: bytes | None = None
    keys: Collection[str] = ()


class WaitWrites:
    """The writes by automation."""

    def __init__(self, states: AutomationStates, storage: Storage) -> None:
        self._states = states
        self._storage = storage
        self._writes: dict[str, _Write] = {}
        self._tasks = Tasks()

    async def aclose(self) -> None:
        await self._tasks.__aexit__()

    def begin(self, id_: str) -> None:
        """Begin to store the automation's waits now."""
        self._of(id_).writing.start()

    def remove(self, id_: str, key: str) -> Awaitable[None] | None:
        """Remove an ended wait from memory. If the wait is stored or is being written, return a coroutine that
        removes it from storage. Waits that end together share this coroutine."""
        write = self._of(id_)
        is_on_its_way = self._storage.is_being_flushed(AUTOMATION_PREFIX + id_) or write.writing.is_busy
        is_stored = key in self._list_keys(id_, write)
        self._states.store_wait(id_, key, None)
        if not is_stored and not is_on_its_way:
            return None
        return asyncio.shield(write.writing.start())

    def _of(self, id_: str) -> _Write:
        if (write := self._writes.get(id_)) is None:
            writing = SharedRun(partial(self._write, id_), self._tasks, f"write of waits of {id_}")
            write = self._writes[id_] = _Write(writing)
        return write

    def _list_keys(self, id_: str, write: _Write) -> Collection[str]:
        """Return the keys of the automation's waits in storage. Decode the stored waits only once, because
        thousands of waits may end together."""
        key = AUTOMATION_PREFIX + id_
        if (stored := self._storage.get(key)) is not write.stored:
            found = read_one(self._storage, key, lambda value: convert(value, StoredAutomation), skip)
            write.stored, write.keys = stored, () if found is None else found.waits.keys()
        return write.keys

    async def _write(self, id_: str) -> None:
        try:
            with contextlib.suppress(StoreFailed):  # the next flush tries again
                await self._storage.put_many({AUTOMATION_PREFIX + id_: self._states.of(id_).encode() or None})
        finally:
            write = self._writes[id_]
            write.stored, write.keys = None, ()
