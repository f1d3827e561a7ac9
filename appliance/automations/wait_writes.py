"""Writes waits of triggers that must not wait for the next flush."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import islice

from appliance.automations.automation_states import AutomationStates, wait_record_key
from appliance.automations.environment import Environment
from appliance.errors import StoreFailed
from appliance.store.records import is_changed
from appliance.tasks import SharedRun, Tasks

MAX_WRITTEN_AT_ONCE = 256
"""Maximum number of automations and devices whose waits are encoded in one turn of the event loop."""


class WaitWrites:
    """The writes of waits. Waits that begin or end together are written together."""

    def __init__(self, states: AutomationStates, environment: Environment) -> None:
        self._states = states
        self._storage = environment.storage
        self._registry = environment.registry
        self._record = environment.record
        self._unwritten: dict[tuple[str, str], None] = {}
        """The automation ids and device ids of the waits for the next write."""
        self._with_state: set[str] = set()
        """The ids of the devices whose states belong to the next write."""
        self._tasks = Tasks()
        self._writing = SharedRun(self._write, self._tasks, "write of waits")

    async def aclose(self) -> None:
        await self._tasks.__aexit__()

    def write(self, id_: str, device_id: str, *, with_state: bool = False) -> asyncio.Task[None]:
        """Begin to store the automation's waits for the device now, or that no wait is left. If `with_state` is true,
        store them together with the device's state."""
        self._unwritten[id_, device_id] = None
        if with_state:
            self._with_state.add(device_id)
        return self._writing.start()

    def remove(self, id_: str, device_id: str, key: str) -> asyncio.Task[None] | None:
        """Remove an ended wait from memory. If the wait may be stored or is being written, return a task that has not
        begun yet, and that removes the wait from storage. Waits that end together share this task."""
        record = wait_record_key(id_, device_id)
        is_on_its_way = self._storage.is_being_flushed(record) or self._writing.is_busy
        is_stored = self._storage.get(record) is not None
        self._states.store_wait(id_, device_id, key, None)
        if not is_stored and not is_on_its_way:
            return None
        return self.write(id_, device_id)

    async def _write(self) -> None:
        while self._unwritten:
            await self._write_some()

    async def _write_some(self) -> None:
        unwritten = [*islice(self._unwritten, MAX_WRITTEN_AT_ONCE)]
        ids = self._with_state.intersection(device_id for _, device_id in unwritten)
        self._with_state -= ids
        for each in unwritten:
            del self._unwritten[each]
        waits = {
            wait_record_key(id_, device_id): self._states.of(id_).waits.get(device_id) for id_, device_id in unwritten
        }
        unstored = {
            key: each
            for key, each in waits.items()
            if self._storage.is_being_flushed(key) or is_changed(self._storage.get(key), each)
        }
        with contextlib.suppress(StoreFailed):  # the next flush tries again
            await self._record(filter(None, map(self._registry.find_device, ids)), unstored)
