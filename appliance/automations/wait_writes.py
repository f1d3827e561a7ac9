"""Writes waits of triggers that must not wait for the next flush."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable

from appliance.automations.automation_states import AutomationStates, wait_record_key
from appliance.errors import StoreFailed
from appliance.store.records import is_changed
from appliance.store.storage import Storage
from appliance.tasks import SharedRun, Tasks


class WaitWrites:
    """The writes of waits. Waits that begin or end together are written together."""

    def __init__(self, states: AutomationStates, storage: Storage) -> None:
        self._states = states
        self._storage = storage
        self._unwritten: dict[tuple[str, str], None] = {}
        """The automation ids and device ids of the waits for the next write."""
        self._tasks = Tasks()
        self._writing = SharedRun(self._write, self._tasks, "write of waits")

    async def aclose(self) -> None:
        await self._tasks.__aexit__()

    def write(self, id_: str, device_id: str) -> asyncio.Task[None]:
        """Begin to store the automation's waits for the device now, or that no wait is left."""
        self._unwritten[id_, device_id] = None
        return self._writing.start()

    def remove(self, id_: str, device_id: str, key: str) -> Awaitable[None] | None:
        """Remove an ended wait from memory. If the wait may be stored or is being written, return a coroutine that
        removes it from storage. Waits that end together share this coroutine."""
        record = wait_record_key(id_, device_id)
        is_on_its_way = self._storage.is_being_flushed(record) or self._writing.is_busy
        is_stored = self._storage.get(record) is not None
        self._states.store_wait(id_, device_id, key, None)
        if not is_stored and not is_on_its_way:
            return None
        return asyncio.shield(self.write(id_, device_id))

    async def _write(self) -> None:
        unwritten, self._unwritten = self._unwritten, {}
        waits = {
            wait_record_key(id_, device_id): self._states.of(id_).waits.get(device_id) for id_, device_id in unwritten
        }
        unstored = {
            key: each
            for key, each in waits.items()
            if self._storage.is_being_flushed(key) or is_changed(self._storage.get(key), each)
        }
        with contextlib.suppress(StoreFailed):  # the next flush tries again
            await self._storage.put_many(unstored)
