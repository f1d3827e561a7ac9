"""The health of adapters, derived from events."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.errors import NotFound
from appliance.home import events
from appliance.home.bus import Bus

log = logging.getLogger("adapters")

MAX_LISTED_DROPS = 200
"""Maximum number of listed dropped attributes per adapter."""

_KINDS = (
    events.AdapterStarted,
    events.AdapterReady,
    events.AdapterAnswered,
    events.AdapterProgressed,
    events.AdapterFileChecked,
    events.AdapterErrored,
)


class AdapterStatus(StrEnum):
    """The state of an adapter; see `AdapterHealth.status`."""

    STARTING = "starting"
    RUNNING = "running"
    DEGRADED = "degraded"


class AdapterHealth(Struct, frozen=True, kw_only=True):
    """The health of one adapter. Times are in UTC, or None if the event never happened.

    - `is_well`: whether the last poll or command succeeded; None before the first result. If an adapter starts
      without a request, `is_well` is true.
    - `file_fault`: the fault in the last saved file of a Lua kind. The hub may still run an older version of the
      file.
    - `answers`, `failures`: counts since the hub's start.
    - `timed_secs`: the total duration of the `timed` measured answers.
    - `dropped`: values that the catalog does not allow, once per device and attribute while the device exists.
    - `operations`: the names of the adapter's operations.
    """

    name: str
    has_started: bool = False
    is_well: bool | None = None
    message: str | None = None
    last_updated: datetime | None = None
    last_success: datetime | None = None
    last_error: str | None = None
    file_fault: str | None = None
    dropped: tuple[events.ObservationDropped, ...] = ()
    answers: int = 0
    failures: int = 0
    timed: int = 0
    timed_secs: float = 0.0
    operations: tuple[str, ...] = ()

    @property
    def status(self) -> AdapterStatus:
        """Return `STARTING` until the first poll ends; then `RUNNING` or `DEGRADED`."""
        if not self.has_started:
            return AdapterStatus.STARTING
        return AdapterStatus.RUNNING if self.is_well else AdapterStatus.DEGRADED


class Health:
    """The health of all enabled adapters, updated by their events."""

    def __init__(self, adapters: Iterable[str], bus: Bus) -> None:
        self._adapters = {name: AdapterHealth(name=name) for name in adapters}
        self._late: set[str] = set()
        bus.listen(self._on_event, *_KINDS)
        bus.listen(self._on_drop, events.ObservationDropped, events.DropEnded, events.DeviceRemoved)

    def list_adapters(self) -> list[AdapterHealth]:
        """Return all adapters, sorted by name."""
        return [self._adapters[name] for name in sorted(self._adapters)]

    def get_adapter(self, name: str) -> AdapterHealth:
        if name not in self._adapters:
            raise NotFound("adapter", name)
        return self._adapters[name]

    def add(self, name: str) -> None:
        """Add an adapter that starts while the hub is running. A hub that is ready remains ready."""
        self._adapters[name] = AdapterHealth(name=name)
        self._late.add(name)

    def remove(self, name: str) -> None:
        self._adapters.pop(name, None)

    def list_missing(self) -> list[str]:
        """Return the adapters whose first poll has not finished. The hub is ready if the list is empty."""
        return [each.name for each in self.list_adapters() if not each.has_started and each.name not in self._late]

    def have_all_started(self) -> bool:
        return not self.list_missing()

    def _on_drop(self, event: events.Event) -> None:
        match event:
            case events.ObservationDropped(adapter=name):
                what = event.attribute  # without a device, `attribute` is the name of a limit
                if event.device_id != name:
                    what = f"{what} of {event.device_id} was dropped"
                log.warning("%s: %s: %s", name, what, event.reason)
                if name in self._adapters:
                    self._forget_drops(name, event.device_id, event.attribute)
                    self._update(name, dropped=(*self._adapters[name].dropped, event)[:MAX_LISTED_DROPS])
            case events.DropEnded(adapter=name, device_id=device_id, attribute=attribute):
                self._forget_drops(name, device_id, attribute)
            case events.DeviceRemoved(device_id=device_id):
                for name in self._adapters:
                    self._forget_drops(name, device_id)

    def _on_event(self, event: events.Event) -> None:
        match event:
            case events.AdapterAnswered(adapter=name, at=at, secs=secs) if known := self._adapters.get(name):
                self._update(
                    name,
                    is_well=True,
                    message=None,
                    last_updated=at,
                    last_success=at,
                    answers=known.answers + 1,
                    timed=known.timed + (secs is not None),
                    timed_secs=known.timed_secs + (secs or 0.0),
                )
            case events.AdapterStarted(adapter=name):
                self._update(name, has_started=True)
            case events.AdapterReady(adapter=name):
                self._update(name, is_well=True, message=None)
            case events.AdapterProgressed(adapter=name, message=message):
                self._update(name, message=message)
            case events.AdapterFileChecked(adapter=name, fault=fault):
                self._update(name, file_fault=fault)
            case events.AdapterErrored(adapter=name, message=message, at=at):
                failures = self._adapters.get(name, AdapterHealth(name=name)).failures + 1
                self._update(
                    name, is_well=False, message=message, last_updated=at, last_error=message, failures=failures
                )

    def _forget_drops(self, name: str, device_id: str, attribute: str | None = None) -> None:
        known = self._adapters[name].dropped if name in self._adapters else ()
        kept = tuple(each for each in known if each.device_id != device_id or attribute not in (None, each.attribute))
        if len(kept) < len(known):
            self._update(name, dropped=kept)

    def _update(self, name: str, **changes: Any) -> None:
        if name in self._adapters:  # a stopped adapter can still publish events
            self._adapters[name] = replace(self._adapters[name], **changes)
