"""Opens the store: the lock of the data directory, the document, the recorder, and the API keys."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial

from msgspec import convert

from appliance.clock import Clock
from appliance.event_loop import in_steps
from appliance.home.bus import Bus
from appliance.home.layout import Layout
from appliance.home.registry import Registry
from appliance.store.adapter_secrets import AdapterSecrets
from appliance.store.clock_trust import ClockTrust, newest_time
from appliance.store.crashes import CrashCounter
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.layout_changes import LayoutChanges
from appliance.store.lock import DirectoryLock, read_boot_id
from appliance.store.month_files import MonthFiles
from appliance.store.record_keys import DOUBTFUL, STATE_PREFIX
from appliance.store.recorder import Recorder
from appliance.store.records import SectionKinds, read_devices, read_layout, read_one, skip
from appliance.store.restore import finish_at_start
from appliance.store.store_thread import StoreThread
from appliance.store.stored_keys import Keys

log = logging.getLogger("store")

CUT_OFF = (
    "the previous hub ended by a power cut, a kill, or a crash: changes of its last %g s may be lost, history "
    "since its last write is lost, and running executions did not finish"
)
"""The log message at a start after an unclean stop."""


class Store:
    """Holds the lock and records changes while the context is open. Entering the context reads the document and
    restores the registry.

    - `sections`: the kinds of the enabled sections at the start. Devices of other sections or kinds are not restored.
    - `unreadable`: sentences about unreadable values.
    - `stopped_at`, `has_crashed`: how the previous hub ended.
    - `is_stored`: whether the stopping hub has stored its whole state.
    """

    thread: StoreThread
    document: Document
    clock_trust: ClockTrust
    recorder: Recorder
    crashes: CrashCounter
    layout_changes: LayoutChanges
    keys: Keys
    stopped_at: datetime | None
    has_crashed: bool

    def __init__(
        self,
        disk: Disk,
        registry: Registry,
        bus: Bus,
        clock: Clock,
        *,
        flush_secs: float,
        sections: SectionKinds,
    ) -> None:
        self.unreadable: list[str] = []
        self._has_failed = False
        self._is_entered = False
        self.is_stored = False
        self.months = MonthFiles(disk)
        self._disk = disk
        self._registry = registry
        self._bus = bus
        self._clock = clock
        self._flush_secs = flush_secs
        self._sections = sections
        self._lock: DirectoryLock | None = None

    async def __aenter__(self) -> Store:
        async with AsyncExitStack() as stack:
            lock = self._lock = DirectoryLock(self._disk.folder)
            self._disk.guard(lock.check_folder)
            stack.callback(self._release, lock)  # call this last: once the lock is released, another hub can start
            self.stopped_at, self.has_crashed = lock.stopped_at, lock.is_crash
            if lock.was_cut_off:
                log.log(logging.WARNING if lock.is_crash else logging.INFO, CUT_OFF, self._flush_secs)
            finish_at_start(self._disk.folder, self._clock.now())
            self.thread = await stack.enter_async_context(StoreThread())
            self.document = await stack.enter_async_context(Document(self._disk, self._clock, self.thread))
            layout = read_layout(self.document, self._ignore_malformed)
            read = partial(read_devices, self.document, layout, self._ignore_malformed, sections=self._sections)
            devices, doubtful = await asyncio.to_thread(read), self._read_doubtful()
            if lock.was_cut_off:
                doubtful |= await asyncio.to_thread(self._read_stopped, layout)
            self._registry.restore(layout, devices, are_doubtful=lock.was_cut_off, doubtful=doubtful)
            self.clock_trust = ClockTrust(self._clock, newest_time(self.document))
            recorder = Recorder(
                self._registry,
                self._bus,
                self.document,
                self._clock,
                self.clock_trust,
                flush_secs=self._flush_secs,
                sections=self._sections,
            )
            self.recorder = await stack.enter_async_context(recorder)
            await recorder.delete_oldest_stopped()
            self.crashes = CrashCounter(self.document, self._clock, read_boot_id())
            layout_changes = LayoutChanges(self._registry, self.document, self._clock)
            self.layout_changes = await stack.enter_async_context(layout_changes)
            self.keys = Keys(self.document, self._bus, self._ignore_malformed)
            self._stack = stack.pop_all()
            self._is_entered = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def restore_section(self, name: str) -> None:
        """Restore the stored devices of an adapter section that starts while the hub runs."""
        layout, sections = self._registry.layout, self.recorder.sections
        read = partial(
            read_devices, self.document, layout, self._ignore_malformed, begin=f"{name}:", sections=sections
        )
        await in_steps(self._clock, self._registry.restore_section(await asyncio.to_thread(read)))

    def _read_doubtful(self) -> dict[str, list[str]]:
        """Return the attributes of stored devices that were doubtful at the last stop."""
        found = read_one(self.document, DOUBTFUL, lambda value: convert(value, dict[str, list[str]]), skip) or {}
        return {each: names for each, names in found.items() if self.document.get(STATE_PREFIX + each) is not None}

    def _read_stopped(self, layout: Layout) -> dict[str, list[str]]:
        """Return the attributes of stored devices whose sections do not run now, except virtual devices."""
        ids = (key.removeprefix(STATE_PREFIX) for key in self.document.list_encoded((STATE_PREFIX,)))
        sections = {each.partition(":")[0] for each in ids}.difference(self._sections)
        read = partial(read_devices, self.document, layout, lambda *_: None)  # the start reports malformed records
        devices = [device for section in sections for device in read(begin=f"{section}:")]
        return {
            each.id: sorted({*each.attributes, *each.last} - {"state"}) for each in devices if not each.is_virtual
        }

    @property
    def has_lost_lock(self) -> bool:
        """Return whether the hub stores nothing until it is restarted; see `LockLost`."""
        return self._lock is not None and self._lock.is_lost

    def secrets_of(self, adapter: str) -> AdapterSecrets:
        return AdapterSecrets(self.document, adapter)

    def record_stop(self) -> None:
        """Record the stop request, so that a later kill is not counted as a crash."""
        if self._lock is not None and not self.is_stored:
            self._lock.record_stop()

    def record_stored(self) -> None:
        """Record that the hub has stopped cleanly, because its whole state is stored. The lock remains held."""
        if self._lock is not None and not self._has_failed:
            self._lock.record_stored(self._stop_time())
            self.is_stored = True

    def record_fault(self) -> None:
        """Record a failure of the hub. The next hub counts this failure as a crash."""
        self._has_failed = True

    def _release(self, lock: DirectoryLock) -> None:
        """Release the lock, and record how the hub ended."""
        if not self._is_entered:
            lock.release()
        elif self._has_failed:
            lock.release_after_fault()
        else:
            lock.release_after_stop(self._stop_time())

    def _stop_time(self) -> datetime | None:
        """Return the time for the next hub, or None if the clock is not trusted."""
        return self._clock.now() if self.clock_trust.is_trusted() else None

    def _ignore_malformed(self, key: str, error: Exception) -> None:
        """Record that a stored value is malformed. The value is ignored and remains on the card."""
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        note = f"{key} is invalid ({reason}); it is ignored, but not deleted"
        log.warning("%s", note)
        self.unreadable.append(note)
