"""Checks the names in files against the current home, and stores the past names of devices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import chain
from typing import Literal

from msgspec import convert
from msgspec.structs import replace

from appliance.automations.definition import AutomationDefinition
from appliance.automations.names.home_names import HomeNames, NearNames, PastNames, RemovedDevice
from appliance.clock import Clock, to_millis
from appliance.computing import compute_alone
from appliance.errors import Fault
from appliance.history.packed_records import PackedRecords
from appliance.home.bus import Bus
from appliance.home.events import (
    AdapterAnswered,
    CatalogReloaded,
    DeviceEvent,
    DeviceRemoved,
    DeviceStateChanged,
    Event,
)
from appliance.log_limit import log_warnings
from appliance.lua.files.catalog import LoadedFile
from appliance.store.record_keys import REMOVED_PREFIX, SENT_PREFIX
from appliance.store.records import OnFault, read_all, skip
from appliance.store.storage import DocumentReader, Storage
from appliance.tasks import SharedRun, Tasks

log = logging.getLogger("automations")

NAMES_THREAD = "names"
"""The thread that checks names."""

SETTLING_SECS = 60.0
"""Delay in seconds between the hub's start and the first check of names. Earlier, some devices are still unknown."""

TOLERANCE_SECS = 0.5
"""Additional delay of the event loop's timer, because the loop's clock can run ahead of the hub's clock."""

MAX_PAST_NAMES = 100
"""Maximum number of stored event names per device. The same limit applies to attribute names."""

MAX_PAST_BYTES = 2 << 20
"""Maximum total size of the event and attribute names of all devices. Above this size, new names are not stored."""

NAME_OVERHEAD_BYTES = 100
"""Memory overhead of a stored name in bytes."""

MAX_REMOVED_DEVICES = 500
"""Maximum number of stored removed devices. The oldest are deleted first."""


def read_past(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, PastNames]:
    """Decode the stored events and attributes by device id."""
    return read_all(stored, SENT_PREFIX, lambda _, value: convert(value, PastNames), on_fault)


def read_removed(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, RemovedDevice]:
    """Decode the stored removed devices by id."""
    return read_all(stored, REMOVED_PREFIX, lambda _, value: convert(value, RemovedDevice), on_fault)


class NameWatcher:
    """Logs unknown names a minute after the hub's start, or later if an adapter has not answered yet, and after each
    reload.

    Warnings from loading a file are not repeated. `view` returns the current names in the home and the enabled
    automations; call `view` on the event loop. The names of devices' events and attributes survive restarts.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        storage: Storage,
        view: Callable[
            [Mapping[str, PastNames], Mapping[str, RemovedDevice]],
            Awaitable[tuple[HomeNames, list[LoadedFile[AutomationDefinition]]]],
        ],
        has_answered: Callable[[], bool],
    ) -> None:
        self._bus, self._clock = bus, clock
        self._view = view
        self._has_answered = has_answered
        self._tasks = Tasks()
        self._checks = SharedRun(self._report, self._tasks, "check of names")
        self._views = SharedRun(self._collect, self._tasks, "names of the home")
        self._is_due = True
        self._remember = storage.put_later
        self._past = read_past(storage)
        self._past_bytes = sum(map(_bytes_of, self._past.values()))
        self._removed, self._removals = PackedRecords(), PackedRecords()
        """The stored removals, and the removals that are not stored yet, oldest first."""
        for device_id, each in sorted(read_removed(storage).items(), key=lambda item: item[1].at):
            self._removed.add((device_id, each.name, each.at))

    async def find_known(self) -> HomeNames:
        """Return the current names in the home. Simultaneous callers share the names, but not the nearest names."""
        known, _ = await self._views.result()
        return replace(known, near=NearNames())

    async def _collect(self) -> tuple[HomeNames, list[LoadedFile[AutomationDefinition]]]:
        return await self._view(self._past, self.list_removed())

    async def _find(self) -> list[Fault]:
        known, enabled = await self._collect()
        return await compute_alone(NAMES_THREAD, self._list_new_faults, known, enabled)

    @staticmethod
    def _list_new_faults(known: HomeNames, enabled: list[LoadedFile[AutomationDefinition]]) -> list[Fault]:
        if not (found := known.list_faults(enabled)):
            return []
        at_load = HomeNames(
            adapters=known.adapters, rooms=known.rooms, groups=known.groups, called=known.called, near=known.near
        )
        logged = {fault for fault in at_load.list_faults(enabled)}  # noqa: C416 - `set` would block other threads
        return [fault for fault in found if fault not in logged]

    async def __aenter__(self) -> NameWatcher:
        self._settles_at = self._clock.monotonic() + SETTLING_SECS
        kinds = (AdapterAnswered, CatalogReloaded, DeviceEvent, DeviceRemoved, DeviceStateChanged)
        self._forget = self._bus.listen(self._on_event, *kinds)
        # do not use the hub's clock, because simulated time would wait for this call
        self._settling = asyncio.get_running_loop().call_later(SETTLING_SECS + TOLERANCE_SECS, self.recheck)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._settling.cancel()
        self._forget()
        self.store_removals()
        await self._tasks.__aexit__()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceEvent):
            self._note(event.device_id, "events", {event.event})
        elif isinstance(event, DeviceStateChanged):
            if event.previous is None:
                is_waiting = self._removals.take(event.device.id) is not None
                if not is_waiting and self._removed.take(event.device.id) is not None:
                    self._remember(REMOVED_PREFIX + event.device.id, None)
            if gone := event.gone:
                self._note(event.device.id, "attributes", gone)
        elif isinstance(event, DeviceRemoved) and not event.is_kept:
            if (past := self._past.pop(event.device_id, None)) is not None:
                self._past_bytes -= _bytes_of(past)
                self._remember(SENT_PREFIX + event.device_id, None)
            self._removals.add((event.device_id, event.name, to_millis(self._clock.now())))
            if len(self._removals) > MAX_REMOVED_DEVICES:
                self._removals.take_oldest()
        self._is_due = self._is_due or isinstance(event, CatalogReloaded)
        self.recheck()

    def list_removed(self) -> dict[str, RemovedDevice]:
        """Return the removed devices by id, including removals that are not stored yet."""
        records = chain(self._removed, self._removals)
        return {device_id: RemovedDevice(name=name, at=at) for device_id, name, at in records}

    def store_removals(self) -> None:
        """Store the newest removed devices. Call this method regularly, but not while many devices are being
        removed."""
        for device_id, name, at in self._removals.take_all():
            self._removed.take(device_id)
            self._removed.add((device_id, name, at))
            self._remember(REMOVED_PREFIX + device_id, {"name": name, "at": at})
        while len(self._removed) > MAX_REMOVED_DEVICES:
            self._remember(REMOVED_PREFIX + self._removed.take_oldest()[0], None)

    def _note(self, device_id: str, part: Literal["events", "attributes"], names: Collection[str]) -> None:
        past = self._past.get(device_id) or PastNames()
        known: set[str] = getattr(past, part)
        new = sorted(set(names) - known)[: max(0, MAX_PAST_NAMES - len(known))]
        if new and self._past_bytes < MAX_PAST_BYTES:
            self._past[device_id] = past
            self._past_bytes += sum(map(_bytes_of_name, new))
            known.update(new)
            stated = {"events": sorted(past.events), "attributes": sorted(past.attributes)}
            self._remember(SENT_PREFIX + device_id, stated)

    def recheck(self) -> None:
        """Check the names if a check is due and every adapter has answered. A running check ends before the next
        check begins."""
        if self._is_due and self._clock.monotonic() >= self._settles_at and self._has_answered():
            self._is_due = False
            self._checks.start()

    async def _report(self) -> None:
        found = await self._find()
        log_warnings(log, found, len(found))


def _bytes_of(past: PastNames) -> int:
    return sum(map(_bytes_of_name, chain(past.events, past.attributes)))


def _bytes_of_name(name: str) -> int:
    return len(name) + NAME_OVERHEAD_BYTES
