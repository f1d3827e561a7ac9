"""The recorder: what may be lost for some minutes is gathered, and written rarely, and only if it changed."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Any

import orjson

from appliance.clock import Clock, Trust, timestamp
from appliance.errors import StoreFailed
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.store.document import Document
from appliance.store.records import CARD, DEVICE, STATE, encode_device
from appliance.tasks import Tasks
from appliance.version import MADE_AT

log = logging.getLogger("store")


class Recorder:
    """Writes what changed every `flush_secs`, and a last time when its context is left: devices, and what others
    hand it. `trust` is that of the clock."""

    def __init__(self, registry: Registry, bus: Bus, document: Document, clock: Clock, *, flush_secs: float) -> None:
        self._registry = registry
        self._bus = bus
        self._document = document
        self._clock = clock
        self._flush_secs = flush_secs
        self._dirty: set[str] = set()
        self._handed: dict[str, Any] = {}
        self._tasks = Tasks()

    async def __aenter__(self) -> Recorder:
        self._unlisten = self._bus.listen(self._mark)
        stored = self._document.get(CARD)
        nothing = {"bytes_written": 0, "syncs": 0, "since": timestamp(self._clock.now())}
        self._before: dict[str, Any] = nothing if stored is None else orjson.loads(stored)
        newest = datetime.fromisoformat(str(self._before.get("at", MADE_AT)))
        self.trust = Trust(self._clock, max(MADE_AT, newest))
        self._tasks.start(self._beat(), "recording of devices")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._unlisten()
        await self._tasks.__aexit__()
        await self.flush()

    async def flush(self) -> None:
        """Write what changed since the last time. What cannot be stored now is tried again with the next."""
        dirty, self._dirty = self._dirty, set()
        handed, self._handed = self._handed, {}
        told = {key: value for device_id in dirty for key, value in self._tell(device_id).items()} | handed
        changes = {key: value for key, value in told.items() if self._differs(key, value)}
        if not changes:
            return
        try:
            await self._document.put_many({**changes, CARD: self._count()})
        except StoreFailed:
            self._keep(dirty, handed)
        except asyncio.CancelledError:  # the hub stops, and the last flush must not take this one's word for it
            self._keep(dirty, handed)
            raise
        except Exception as error:  # one that nobody foresaw must not end the recording
            self._keep(dirty, handed)
            log.error("changes cannot be recorded: %s: %s", type(error).__name__, error)

    def remember(self, key: str, value: dict[str, Any] | None) -> None:
        """Have the value written with the next flush if it differs from what is stored; None removes the key."""
        self._handed[key] = value

    def _keep(self, dirty: set[str], handed: dict[str, Any]) -> None:
        self._dirty |= dirty
        self._handed = handed | self._handed

    async def _beat(self) -> None:
        while True:
            await self._clock.sleep(self._flush_secs)
            await self.flush()

    def _mark(self, event: events.Event) -> None:
        match event:
            case events.DeviceStateChanged(device=Device(id=device_id)) | events.DeviceRemoved(device_id=device_id):
                self._dirty.add(device_id)

    def _tell(self, device_id: str) -> dict[str, Any]:
        found = self._registry.find_devices([device_id])
        return encode_device(found[0]) if found else {DEVICE + device_id: None, STATE + device_id: None}

    def _count(self) -> dict[str, Any]:
        """What this run and those before it asked of the card, as far as it was noted; and the time, if believed."""
        figures = self._document.figures()
        return {
            "bytes_written": self._before["bytes_written"] + figures["bytes_written"],
            "syncs": self._before["syncs"] + figures["syncs"],
            "since": self._before["since"],
            "at": timestamp(self._clock.now() if self.trust.is_given() else self.trust.since),
        }

    def _differs(self, key: str, value: dict[str, Any] | None) -> bool:
        """Whether the document tells something else, times aside: a change and its reverse need no write."""
        stored = self._document.get(key)
        if stored is None or value is None:
            return stored is not None or value is not None
        return _without_time(orjson.loads(stored)) != _without_time(orjson.loads(orjson.dumps(value)))


def _without_time(value: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key != "at"}
