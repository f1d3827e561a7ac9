"""Writes changed device states only every few minutes, so a power cut can lose the changes of the last few minutes.

Also stores the current time. After a restart, an unsynchronised clock is trusted only if it is later than the stored
time.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from appliance.clock import Clock, timestamp
from appliance.errors import StoreFailed
from appliance.event_loop import in_steps
from appliance.home import events
from appliance.home.bus import Bus, Rank
from appliance.home.model import ONLINE, Device
from appliance.home.registry import Registry
from appliance.home.values import number_in
from appliance.store.clock_trust import ClockTrust, forgetting, newest_time
from appliance.store.document import Document, encode_values
from appliance.store.file_format import EncodedChanges
from appliance.store.record_keys import CARD, DEVICE_PREFIX, STATE_PREFIX
from appliance.store.records import encode_device, is_changed
from appliance.store.storage import DocumentReader
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

log = logging.getLogger("store")


class CardDay(Struct, frozen=True):
    """A date in UTC, and the number of bytes written before that date."""

    date: str = ""
    began_at_bytes: int = 0


class CardCounts(Struct, frozen=True, kw_only=True):
    """The number of writes in all runs, and the newest trusted time."""

    bytes_written: int
    syncs: int
    since: str
    day: CardDay = CardDay()
    at: str | None = None


class Recorder:
    """Writes changed device states and the document's overlay every `flush_secs`, and when the context is left. Every
    `COMPLETE_FLUSHES`th flush also writes minor values, and new numbers of devices whose earlier numbers have already
    been written. `trust` decides whether the clock is trusted.

    Only the last flush writes whether a device is offline, because an outage alone does not justify a write. The next
    run uses this state to find the beginning of the outage.
    """

    def __init__(self, registry: Registry, bus: Bus, document: Document, clock: Clock, *, flush_secs: float) -> None:
        self._registry = registry
        self._bus = bus
        self._document = document
        self._clock = clock
        self._flush_secs = flush_secs
        self._dirty: set[str] = set()
        self._measured: set[str] = set()
        """Devices whose new numbers wait for the next complete flush."""
        self._has_numbers: set[str] = set()
        """Devices whose numbers were written by the last complete flush or after it."""
        self._offline: set[str] = set()
        self._stopped: set[str] = set()
        """Devices that are absent only because their section was stopped."""
        self._is_last = False
        self._is_flush_free = asyncio.Lock()
        self._unencodable: set[str] = set()
        self._tasks = Tasks()
        self._after_flush: list[Callable[[], Awaitable[None]]] = []

    async def __aenter__(self) -> Recorder:
        self._unlisten = self._bus.listen(
            self._mark, events.DeviceStateChanged, events.DeviceUpdated, events.DeviceRemoved, rank=Rank.RECORD
        )
        nothing = CardCounts(bytes_written=0, syncs=0, since=timestamp(self._clock.now()))
        self._before = read_card_counts(self._document) or nothing
        self._day = self._before.day
        self._day = self._day_of(self._before.bytes_written)
        self.trust = ClockTrust(self._clock, newest_time(self._document))
        self._is_forgotten = False
        self._tasks.start(self._flush_later(), "recorder")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unlisten()
        await self._tasks.__aexit__()
        self._is_last = True
        self._dirty |= self._offline
        await self.flush()

    def after_flush(self, do: Callable[[], Awaitable[None]]) -> None:
        """Await the function after each regular flush. The function must not raise."""
        self._after_flush.append(do)

    async def flush(self) -> None:
        """Write the changes since the last flush. If the write fails, the next flush tries again."""
        await self._write(is_complete=True)

    async def _write(self, *, is_complete: bool) -> None:
        if is_complete:
            self._dirty |= self._measured
            self._has_numbers, self._measured = self._measured, set()
        async with self._is_flush_free:
            await self._flush(is_complete=is_complete)

    async def _flush(self, *, is_complete: bool) -> None:
        dirty, self._dirty = self._dirty, set()
        devices = await self._encode_steadily(dirty)
        forgets = self.trust.forgotten is not None and not self._is_forgotten

        def prepare(later: Mapping[str, Any], before: EncodedChanges) -> EncodedChanges:
            values = {key: value for key, value in later.items() if self._is_json(key, value)}
            get = self._document.get
            changes = {key: value for key, value in values.items() if is_changed(before.get(key, get(key)), value)}
            if forgets:
                changes |= forgetting(self.trust, self._clock.now())
            if not changes and not devices:
                return {}
            return {**devices, **encode_values({**changes, CARD: to_builtins(self._count())})}

        try:
            await self._document.flush(prepare, is_complete=is_complete)
            self._is_forgotten = self._is_forgotten or forgets
        except asyncio.CancelledError:  # the hub is stopping; the last flush writes the changes
            self._dirty |= dirty
            raise
        except Exception as error:  # an exception must not end the recorder
            self._dirty |= dirty
            if not isinstance(error, StoreFailed):  # the document has logged the failure
                log.error("changes cannot be recorded: %s: %s", type(error).__name__, error)

    async def _encode_steadily(self, dirty: set[str]) -> dict[str, bytes | None]:
        """Return the present records of the devices. Devices that change meanwhile are encoded again."""
        devices: dict[str, bytes | None] = {}
        changed = dirty
        try:
            for _ in range(MAX_ENCODINGS):
                await in_steps(self._clock, self._encoding(changed, devices))
                changed = dirty & (self._dirty | self._measured)
                if len(changed) <= MAX_ENCODED_AT_ONCE:
                    break
                self._dirty -= changed
                self._measured -= changed
        except asyncio.CancelledError:  # the hub is stopping; the last flush writes the changes
            self._dirty |= dirty
            raise
        for _ in self._encoding(changed, devices):
            pass
        return devices

    def _encoding(self, device_ids: Iterable[str], encoded: dict[str, bytes | None]) -> Iterator[None]:
        """Encode the changed records of devices, one device per step."""
        for device_id in device_ids:
            for key, value in self._record_device(device_id).items():
                encoded.pop(key, None)
                if self._is_json(key, value) and is_changed(self._document.get(key), value):
                    encoded |= encode_values({key: value})
            yield

    async def record(self, devices: Iterable[Device]) -> None:
        """Store these device states instead of the current states. Raise `StoreFailed` on failure."""
        records = (encode_device(device).items() for device in devices)
        await self._document.put_many({key: value for record in records for key, value in record})

    async def list_present(self, prefixes: Iterable[str]) -> dict[str, bytes]:
        """Return the values with these prefixes as JSON, including values that are not written yet."""
        every, changed = tuple(prefixes), dict[str, bytes | None]()
        await in_steps(self._clock, self._encoding(self._dirty | self._measured, changed))
        later = {key: value for key, value in self._document.list_later().items() if self._is_json(key, value)}
        present = {**self._document.list_encoded(every), **changed, **encode_values(later)}
        return {key: value for key, value in present.items() if value is not None and key.startswith(every)}

    async def trust_clock(self) -> None:
        """Trust the clock from now on, even after restarts. Return after the decision is stored, or raise
        `StoreFailed`."""
        now = self._clock.now()
        await self._document.put_many(
            {**forgetting(self.trust, now), CARD: to_builtins(replace(self._count(), at=timestamp(now)))}
        )
        self._is_forgotten = True
        self.trust.trust_now()

    def figures(self) -> dict[str, Any]:
        """Return the number of bytes written today (UTC) and in all recorded runs."""
        count = self._count()
        return {
            "today_bytes": count.bytes_written - count.day.began_at_bytes,
            **{name: getattr(count, name) for name in ("bytes_written", "syncs", "since")},
        }

    def _is_json(self, key: str, value: dict[str, Any] | None) -> bool:
        """Return whether JSON can represent the value. If JSON cannot, log an error once per key."""
        try:
            encode_values({key: value})
        except TypeError as error:
            if key not in self._unencodable:
                self._unencodable.add(key)
                log.error("%s", error)
            return False
        return True

    async def _flush_later(self) -> None:
        for number in itertools.count(1):
            await self._clock.sleep(self._flush_secs)
            self._day = self._day_of(self._written())
            await self._write(is_complete=number % COMPLETE_FLUSHES == 0)
            for do in self._after_flush:
                await do()

    def _mark(self, event: events.Event) -> None:
        match event:
            case events.DeviceStateChanged(device=Device(id=device_id) as device, changed=changed):
                self._stopped.discard(device_id)
                is_measured = all(number_in(device.attributes.get(name)) is not None for name in changed)
                waits = is_measured and device_id in self._has_numbers
                (self._measured if waits else self._dirty).add(device_id)
                if is_measured:
                    self._has_numbers.add(device_id)
                if device.attributes.get("state") == ONLINE:
                    self._offline.discard(device_id)
                else:
                    self._offline.add(device_id)
            case events.DeviceUpdated(device=Device(id=device_id)):
                self._dirty.add(device_id)
            case events.DeviceRemoved(device_id=device_id, is_kept=is_kept):
                for ids in (self._dirty, self._measured, self._has_numbers, self._offline):
                    ids.discard(device_id)
                if is_kept:
                    self._stopped.add(device_id)
                    return
                is_being_stored = self._is_flush_free.locked() or self._document.is_writing
                if is_being_stored or self._document.get(DEVICE_PREFIX + device_id) is not None:
                    self._dirty.add(device_id)

    def _record_device(self, device_id: str) -> dict[str, Any]:
        found = self._registry.find_devices([device_id])
        if not found and device_id in self._stopped:
            return {}
        has_state = self._is_last and device_id in self._offline
        return (
            encode_device(found[0], has_state=has_state)
            if found
            else {DEVICE_PREFIX + device_id: None, STATE_PREFIX + device_id: None}
        )

    def _count(self) -> CardCounts:
        """Return the counts of all runs, with the current time if the clock is trusted."""
        written = self._written()
        return CardCounts(
            bytes_written=written,
            syncs=self._before.syncs + self._document.figures()["syncs"],
            since=self._before.since,
            day=self._day_of(written),
            at=timestamp(self._clock.now() if self.trust.is_trusted() else self.trust.newest),
        )

    def _written(self) -> int:
        """Return the number of bytes that all runs have written."""
        return int(self._before.bytes_written + self._document.figures()["bytes_written"])

    def _day_of(self, written: int) -> CardDay:
        """Return today's date, with the number of bytes written before today."""
        today = self._clock.now().date().isoformat()
        return self._day if self._day.date == today else CardDay(date=today, began_at_bytes=written)


def read_card_counts(document: DocumentReader) -> CardCounts | None:
    """Return the stored counts, or None if they are missing or malformed."""
    stored = next((value for key, value in document.items(CARD) if key == ""), None)
    try:
        return convert(stored, CardCounts)
    except ValidationError:
        return None
