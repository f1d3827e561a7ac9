"""Writes changed device states only every few minutes, so a power cut can lose the changes of the last few minutes.

Also stores the current time. After a restart, an unsynchronised clock is trusted only if it is later than the stored
time.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import orjson
from msgspec import to_builtins

from appliance.clock import Clock
from appliance.errors import StoreFailed
from appliance.event_loop import in_steps
from appliance.home import events
from appliance.home.bus import Bus, Rank
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.store.card_counts import CardCounter
from appliance.store.changed_devices import ChangedDevices
from appliance.store.clock_trust import ClockTrust
from appliance.store.document import Document
from appliance.store.file_format import EncodedChanges, encode_values
from appliance.store.record_keys import CARD, DEVICE_PREFIX, DOUBTFUL, STATE_PREFIX
from appliance.store.records import SectionKinds, encode_device, is_changed
from appliance.tasks import Tasks

COMPLETE_FLUSHES = 12
"""Every `COMPLETE_FLUSHES`th flush is complete. All other flushes omit minor values, and devices whose only changes
are repeated changes of numbers. Without this rule, a hundred busy sensors would write 8 MB per day."""

MAX_ENCODINGS = 4
"""Maximum number of passes in which a flush encodes devices in steps. Each further pass encodes the devices that
changed during the previous pass."""

MAX_ENCODED_AT_ONCE = 64
"""If at most this number of devices changed during a pass, the flush encodes these devices in one turn of the event
loop."""

MAX_STOPPED_DEVICES, MAX_STOPPED_BYTES = 2500, 4 << 20
"""Maximum number and total size of the stored devices of stopped sections. Without these limits, the store and the
memory would grow with each new section name."""

_PREFIXES = (DEVICE_PREFIX, STATE_PREFIX)

log = logging.getLogger("store")


class _Ready(NamedTuple):
    """A value that waits for a flush, the stored value, and the encoded change. If the stored value is the same, or
    JSON cannot represent the value, there is no change."""

    value: dict[str, Any] | None
    stored: bytes | None
    changes: EncodedChanges


class Recorder:
    """Writes changed device states and the document's overlay every `flush_secs`, and when the context is left. Every
    `COMPLETE_FLUSHES`th flush also writes minor values, new details, and new numbers of devices whose earlier numbers
    have already been written.

    Only the last flush writes whether a device is offline, because an outage alone does not justify a write. The next
    run uses this state to find the beginning of the outage. `sections` are the kinds of the running sections.
    """

    def __init__(
        self,
        registry: Registry,
        bus: Bus,
        document: Document,
        clock: Clock,
        trust: ClockTrust,
        *,
        flush_secs: float,
        sections: SectionKinds,
    ) -> None:
        self.sections = sections
        self._registry = registry
        self._bus = bus
        self._document = document
        self._clock = clock
        self._trust = trust
        self._flush_secs = flush_secs
        self._changed = ChangedDevices()
        self._is_last = False
        self._has_failed = False
        self._flush_lock = asyncio.Lock()
        self._unencodable: set[str] = set()
        self._tasks = Tasks()
        self._after_flush: list[Callable[[], Awaitable[None]]] = []

    async def __aenter__(self) -> Recorder:
        self._unlisten = self._bus.listen(
            self._on_event,
            events.DeviceStateChanged,
            events.DeviceUpdated,
            events.DeviceDetailsChanged,
            events.DeviceRemoved,
            rank=Rank.RECORD,
        )
        self._counter = CardCounter(self._document, self._clock)
        self._tasks.start(self._keep_flushing(), "recorder")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unlisten()
        await self._tasks.__aexit__()
        await self.flush_at_stop()
        if self._has_failed:
            log.error("the hub stops; the changes of devices and automations since the last flush are lost")

    async def flush_at_stop(self) -> None:
        """Write the changes since the last flush, whether devices are offline, and which stored values are
        doubtful."""
        self._is_last = True
        self._document.put_later(DOUBTFUL, self._registry.list_doubtful() or None)
        self._changed.put_offline()
        await self.flush()

    def after_flush(self, do: Callable[[], Awaitable[None]]) -> None:
        """Await the function after each regular flush. The function must not raise."""
        self._after_flush.append(do)

    async def flush(self, device_ids: Collection[str] = ()) -> None:
        """Write the changes since the last flush, and these devices. If the write fails, the next flush tries
        again."""
        self._changed.put(device_ids)
        await self._write(is_complete=True)

    async def _write(self, *, is_complete: bool) -> None:
        if is_complete:
            self._changed.put_minor()
        async with self._flush_lock:
            await self._flush(is_complete=is_complete)

    async def _flush(self, *, is_complete: bool) -> None:
        ready: dict[str, _Ready] = {}
        await in_steps(self._clock, self._encode_later(ready))
        due = self._changed.take_due()
        devices = await self._encode_steadily(due)
        has_clock_record = self._trust.has_new_record()

        def prepare(later: Mapping[str, Any], before: EncodedChanges) -> EncodedChanges:
            get, changes = self._document.get, dict[str, bytes | None]()
            for key, value in later.items():
                stored, found = before.get(key, get(key)), ready.get(key)
                if found is None or found.value is not value or found.stored is not stored:
                    found = self._make_ready(key, value, stored)
                changes |= found.changes
            if has_clock_record:
                changes |= encode_values(self._trust.record(self._clock.now()))
            if not changes and not devices:
                return {}
            card = self._counter.count(self._trust.time_to_store())
            return {**devices, **changes, **encode_values({CARD: to_builtins(card)})}

        try:
            await self._document.flush(prepare, is_complete=is_complete)
            self._changed.note_flush()
            self._has_failed = False
            if has_clock_record:
                self._trust.note_recorded()
        except asyncio.CancelledError:  # the hub is stopping; the last flush writes the changes
            self._changed.put(due)
            raise
        except Exception as error:  # an exception must not end the recorder
            self._has_failed = True
            self._changed.put(due)
            if not isinstance(error, StoreFailed):  # the document has logged the failure
                log.error("changes cannot be recorded: %s: %s", type(error).__name__, error)

    def _encode_later(self, ready: dict[str, _Ready]) -> Iterator[None]:
        """Encode the values that wait for the flush, one per step, because tens of thousands may wait."""
        for key, value in self._document.list_later().items():
            ready[key] = self._make_ready(key, value, self._document.get(key))
            yield

    def _make_ready(self, key: str, value: dict[str, Any] | None, stored: bytes | None) -> _Ready:
        changes = self._encode(key, value)
        return _Ready(value, stored, changes if changes and is_changed(stored, value) else {})

    async def _encode_steadily(self, due: set[str]) -> dict[str, bytes | None]:
        """Return the present records of the devices. Devices that change meanwhile are encoded again."""
        devices: dict[str, bytes | None] = {}
        changed = due
        try:
            for _ in range(MAX_ENCODINGS):
                await in_steps(self._clock, self._encoding(changed, devices))
                changed = due & self._changed.list_all()
                if len(changed) <= MAX_ENCODED_AT_ONCE:
                    break
                self._changed.discard(changed)
        except asyncio.CancelledError:  # the hub is stopping; the last flush writes the changes
            self._changed.put(due)
            raise
        for _ in self._encoding(changed, devices):
            pass
        return devices

    def _encoding(self, device_ids: Iterable[str], encoded: dict[str, bytes | None]) -> Iterator[None]:
        """Encode the changed records of devices, one device per step."""
        for device_id in device_ids:
            for key, value in self._record_device(device_id).items():
                encoded.pop(key, None)
                change = self._encode(key, value)
                if change and is_changed(self._document.get(key), value):
                    encoded |= change
            yield

    async def record(self, devices: Iterable[Device], more: Mapping[str, Any]) -> None:
        """Store these device states instead of the current states, and `more` values, in one record of the journal.
        Omit unchanged descriptions of devices. Raise `StoreFailed` on failure."""
        records = (encode_device(device, self.sections).items() for device in devices)
        values = {
            key: value
            for record in records
            for key, value in record
            if not key.startswith(DEVICE_PREFIX) or is_changed(self._document.get(key), value)
        }
        await self._document.put_many({**values, **more})

    async def delete_oldest_stopped(self) -> None:
        """Delete stored devices of stopped sections beyond the limits, longest unchanged first. Never raise."""
        excess = await asyncio.to_thread(self._list_oldest_stopped, self.sections)
        with suppress(StoreFailed):  # the document has logged the failure
            await self._document.put_many({prefix + each: None for each in excess for prefix in _PREFIXES})

    def _list_oldest_stopped(self, sections: SectionKinds) -> list[str]:
        values = self._document.list_encoded(_PREFIXES)
        sizes = {
            device_id: len(state) + len(values.get(DEVICE_PREFIX + device_id, b""))
            for key, state in values.items()
            if key.startswith(STATE_PREFIX)
            and (device_id := key.removeprefix(STATE_PREFIX)).partition(":")[0] not in sections
        }
        count, size, excess = len(sizes), sum(sizes.values()), list[str]()
        if count > MAX_STOPPED_DEVICES or size > MAX_STOPPED_BYTES:
            for each in sorted(sizes, key=lambda each: _time_of(values[STATE_PREFIX + each])):
                if count <= MAX_STOPPED_DEVICES and size <= MAX_STOPPED_BYTES:
                    break
                excess.append(each)
                count, size = count - 1, size - sizes[each]
        return excess

    async def list_present(self, prefixes: Iterable[str]) -> dict[str, bytes]:
        """Return the values with these prefixes as JSON, including values that are not written yet."""
        every, changed = tuple(prefixes), dict[str, bytes | None]()
        await in_steps(self._clock, self._encoding(self._changed.list_all(), changed))
        for key, value in self._document.list_later().items():
            changed |= self._encode(key, value)

        def merge() -> dict[str, bytes]:
            present = {**self._document.list_encoded(every), **changed}
            return {key: value for key, value in present.items() if value is not None and key.startswith(every)}

        return await asyncio.to_thread(merge)

    async def trust_clock(self) -> None:
        """Trust the clock from now on, even after restarts. Return after the decision is stored, or raise
        `StoreFailed`."""
        now = self._clock.now()
        await self._document.put_many({**self._trust.record(now), CARD: to_builtins(self._counter.count(now))})
        self._trust.note_recorded()
        self._trust.trust_now()

    def figures(self) -> dict[str, Any]:
        """Return the number of bytes written today (UTC) and in all recorded runs."""
        return self._counter.figures()

    def _encode(self, key: str, value: dict[str, Any] | None) -> EncodedChanges:
        """Return the encoded change. If JSON cannot represent the value, return nothing, and log an error once per
        key."""
        try:
            return encode_values({key: value})
        except TypeError as error:
            if key not in self._unencodable:
                self._unencodable.add(key)
                log.error("%s", error)
            return {}

    async def _keep_flushing(self) -> None:
        for number in itertools.count(1):
            await self._clock.sleep(self._flush_secs)
            self._counter.check_day()
            await self._write(is_complete=number % COMPLETE_FLUSHES == 0)
            for do in self._after_flush:
                await do()

    def _on_event(self, event: events.Event) -> None:
        match event:
            case events.DeviceStateChanged(device=device, changed=changed):
                self._changed.note_change(device, changed)
            case events.DeviceUpdated(device=device):
                self._changed.put([device.id])
            case events.DeviceDetailsChanged(device=device):
                self._changed.note_details(device.id)
            case events.DeviceRemoved(device_id=device_id, is_kept=is_kept):
                is_being_stored = self._flush_lock.locked() or self._document.is_writing
                is_stored = is_being_stored or self._document.get(DEVICE_PREFIX + device_id) is not None
                self._changed.note_removal(device_id, is_deleted=is_stored and not is_kept)

    def _record_device(self, device_id: str) -> dict[str, Any]:
        device = self._registry.find_device(device_id)
        if device is not None:
            has_state = self._is_last and self._changed.is_offline(device_id)
            return encode_device(device, self.sections, has_state=has_state)
        if self._changed.is_removed(device_id):
            return {DEVICE_PREFIX + device_id: None, STATE_PREFIX + device_id: None}
        return {}


def _time_of(state: bytes) -> int:
    """Return the time of the state's last change, or 0 if the stored value is malformed."""
    value = orjson.loads(state)
    at = value.get("at") if isinstance(value, dict) else None
    return at if isinstance(at, int) else 0
