"""The recorder: state that may be lost for some minutes is written every few minutes, if it changed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson

from appliance.clock import Clock, ClockTrust, timestamp
from appliance.errors import StoreFailed
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import ONLINE, Registry
from appliance.store.document import Document, encode_values
from appliance.store.records import CARD, DEVICE_PREFIX, STATE_PREFIX, encode_device
from appliance.store.times import CLOCK, forgetting, newest_time
from appliance.tasks import Tasks

log = logging.getLogger("store")


class Recorder:
    """Writes what changed every `flush_secs`, and a last time when its context is left: devices, and what others
    hand it. `trust` is that of the clock. `on_beat` is awaited after each writing; it must not raise.

    That a device is offline is written only with the last flush, since an outage is worth no write; the next run
    reads from it since when.
    """

    def __init__(self, registry: Registry, bus: Bus, document: Document, clock: Clock, *, flush_secs: float) -> None:
        self._registry = registry
        self._bus = bus
        self._document = document
        self._clock = clock
        self._flush_secs = flush_secs
        self._dirty: set[str] = set()
        self._lost: set[str] = set()
        self._is_last = False
        self._handed: dict[str, Any] = {}
        self._flushing: dict[str, Any] = {}
        self._puts = 0
        self._putting: Counter[str] = Counter()
        self._void: dict[str, tuple[int, Any]] = {}
        self._unencodable: set[str] = set()
        self._tasks = Tasks()
        self.on_beat: Callable[[], Awaitable[None]] | None = None

    async def __aenter__(self) -> Recorder:
        self._unlisten = self._bus.listen(
            self._mark, events.DeviceStateChanged, events.DeviceUpdated, events.DeviceRemoved
        )
        stored = self._document.get(CARD)
        nothing: dict[str, Any] = {"bytes_written": 0, "syncs": 0, "since": timestamp(self._clock.now())}
        self._before: dict[str, Any] = nothing if stored is None else orjson.loads(stored)
        unknown_day = {"date": "", "began_at_bytes": 0}
        self._day: dict[str, Any] = self._before.get("day", unknown_day)
        self._day = self._day_of(int(self._before["bytes_written"]))
        self.trust = ClockTrust(self._clock, newest_time(self._document))
        self._is_forgotten = False
        self._tasks.start(self._flush_later(), "recording of devices")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unlisten()
        await self._tasks.__aexit__()
        self._is_last = True
        self._dirty |= self._lost
        await self.flush()

    async def flush(self) -> None:
        """Write what changed since the last time. What cannot be stored now is tried again with the next."""
        dirty, self._dirty = self._dirty, set()
        handed, self._handed = self._handed, {}
        values = {key: value for device_id in dirty for key, value in self._record_device(device_id).items()} | handed
        values = {key: value for key, value in values.items() if self._is_json(key, value)}
        changes = {key: value for key, value in values.items() if self._differs(key, value)}
        if self.trust.forgotten is not None and not self._is_forgotten:
            changes |= forgetting(self.trust, self._clock.now())
        if not changes:
            return
        self._flushing = handed
        try:
            await self._document.put_many({**changes, CARD: self._count()})
            self._is_forgotten = self._is_forgotten or CLOCK in changes
        except StoreFailed:
            self._keep(dirty, handed)
        except asyncio.CancelledError:  # the hub stops, and the last flush writes it
            self._keep(dirty, handed)
            raise
        except Exception as error:  # no exception may end the recording
            self._keep(dirty, handed)
            log.error("changes cannot be recorded: %s: %s", type(error).__name__, error)
        finally:
            self._flushing = {}

    async def put(self, changes: Mapping[str, Any]) -> None:
        """As `Document.put_many`; what was remembered of these keys before the call is void, unless this fails."""
        self._puts += 1
        number = self._puts
        for key in changes:
            self._putting[key] += 1
            for handed in (self._flushing, self._handed):
                if key in handed:
                    self._void[key] = (number, handed.pop(key))
        try:
            await self._document.put_many(changes)
            for key in changes:
                if self._void.get(key, (number + 1, None))[0] <= number:
                    del self._void[key]
        finally:
            self._end_put(changes)

    def _end_put(self, keys: Iterable[str]) -> None:
        """Remember again what a put that failed had made void, once no other put of the key is under way."""
        for key in keys:
            self._putting[key] -= 1
            if not self._putting[key]:
                del self._putting[key]
                if key in self._void:
                    self._handed.setdefault(key, self._void.pop(key)[1])

    async def record(self, devices: Iterable[Device]) -> None:
        """Store these devices as they are handed in, whatever the home shows; raises `StoreFailed`."""
        await self.put({key: value for device in devices for key, value in encode_device(device).items()})

    def remember(self, key: str, value: dict[str, Any] | None) -> None:
        """Have the value written with the next flush if it differs from what is stored; None removes the key."""
        self._handed[key] = value

    def is_being_flushed(self, key: str) -> bool:
        """Whether a flush that is under way writes the key, so that the document does not show it yet."""
        return key in self._flushing

    def list_present(self, prefixes: Iterable[str]) -> dict[str, Any]:
        """What the document would hold under the prefixes if all were written now."""
        stored = {prefix + key: value for prefix in prefixes for key, value in self._document.items(prefix)}
        devices = [self._record_device(device_id) for device_id in self._dirty]
        unwritten = {key: value for each in (*devices, self._handed) for key, value in each.items()}
        found = {key: value for key, value in unwritten.items() if key.startswith(tuple(prefixes))}
        return {key: value for key, value in {**stored, **found}.items() if value is not None}

    async def trust_clock(self) -> None:
        """Trust the clock from now on, over restarts too; returns once that is stored, or raises `StoreFailed`."""
        now = self._clock.now()
        await self._document.put_many({**forgetting(self.trust, now), CARD: {**self._count(), "at": timestamp(now)}})
        self._is_forgotten = True
        self.trust.trust_now()

    def figures(self) -> dict[str, Any]:
        """What was written to the card: today (UTC), and by all runs together, as far as it was noted."""
        count = self._count()
        return {
            "today_bytes": count["bytes_written"] - count["day"]["began_at_bytes"],
            **{name: count[name] for name in ("bytes_written", "syncs", "since")},
        }

    def _is_json(self, key: str, value: dict[str, Any] | None) -> bool:
        """Whether the value can be stored; one that cannot is logged once and left out."""
        try:
            encode_values({key: value})
        except TypeError as error:
            if key not in self._unencodable:
                self._unencodable.add(key)
                log.error("%s", error)
            return False
        return True

    def _keep(self, dirty: set[str], handed: dict[str, Any]) -> None:
        self._dirty |= dirty
        self._handed = handed | self._handed

    async def _flush_later(self) -> None:
        while True:
            await self._clock.sleep(self._flush_secs)
            self._day = self._day_of(self._written())
            await self.flush()
            if self.on_beat is not None:
                await self.on_beat()

    def _mark(self, event: events.Event) -> None:
        match event:
            case events.DeviceStateChanged(device=Device(id=device_id) as device):
                self._dirty.add(device_id)
                if device.attributes.get("state") == ONLINE:
                    self._lost.discard(device_id)
                else:
                    self._lost.add(device_id)
            case events.DeviceUpdated(device=Device(id=device_id)):
                self._dirty.add(device_id)
            case events.DeviceRemoved(device_id=device_id):
                self._dirty.add(device_id)
                self._lost.discard(device_id)

    def _record_device(self, device_id: str) -> dict[str, Any]:
        found = self._registry.find_devices([device_id])
        has_state = self._is_last and device_id in self._lost
        return (
            encode_device(found[0], has_state=has_state)
            if found
            else {DEVICE_PREFIX + device_id: None, STATE_PREFIX + device_id: None}
        )

    def _count(self) -> dict[str, Any]:
        """What this run and those before it asked of the card, as far as it was noted; and the time, if believed."""
        written = self._written()
        return {
            "bytes_written": written,
            "syncs": self._before["syncs"] + self._document.figures()["syncs"],
            "since": self._before["since"],
            "day": self._day_of(written),
            "at": timestamp(self._clock.now() if self.trust.is_trusted() else self.trust.newest),
        }

    def _written(self) -> int:
        """Bytes that this run and those before it have written."""
        return int(self._before["bytes_written"] + self._document.figures()["bytes_written"])

    def _day_of(self, written: int) -> dict[str, Any]:
        """The present day and how many bytes had been written when it began, as far as that was seen."""
        today = self._clock.now().date().isoformat()
        return self._day if self._day["date"] == today else {"date": today, "began_at_bytes": written}

    def _differs(self, key: str, value: dict[str, Any] | None) -> bool:
        """Whether the stored value differs, `at` aside: a change and its reverse need no write."""
        stored = self._document.get(key)
        if stored is None or value is None:
            return stored is not None or value is not None
        return _without_time(orjson.loads(stored)) != _without_time(orjson.loads(orjson.dumps(value)))


def _without_time(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != "at"}
