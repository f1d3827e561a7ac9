"""Stores the time at which a comparison began to hold, for conditions with `for_secs`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import convert

from appliance.automations.requirement import Requirement
from appliance.clock import ClockSteps, from_millis, to_millis
from appliance.home.bus import Bus
from appliance.home.events import DeviceRemoved, DeviceStateChanged, Event
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import same
from appliance.store.record_keys import CHANGED_PREFIX
from appliance.store.records import OnFault, read_all, skip
from appliance.store.storage import DocumentReader, Storage


class Comparison(NamedTuple):
    """A condition's comparison of one attribute."""

    attribute: str
    requirement: Requirement

    @property
    def key(self) -> str:
        """Return the storage key of the comparison's time."""
        return f"{self.attribute} {self.requirement}" if self.requirement.is_range else self.attribute

    def begins(self, event: DeviceStateChanged) -> bool:
        """Return whether the comparison begins to hold, or the compared value changes. Gaps in the values are
        ignored."""
        value = event.device.attributes.get(self.attribute)
        if self.attribute not in event.changed or not self.requirement.is_usable(value):
            return False
        previous = self.requirement.last_usable(event.known_before(self.attribute))
        return (
            self.requirement.is_entered(value, previous) if self.requirement.is_range else not same(value, previous)
        )


class _Time(NamedTuple):
    """The time at which a comparison began to hold. `is_corrected` is true if the time is corrected when the clock is
    set, because this run of the hub observed it."""

    at: datetime
    is_corrected: bool


class ChangeTimes:
    """For each comparison given to `watch`, stores the time at which the comparison began to hold. The times survive
    restarts.

    If a comparison has neither `above` nor `below`, the stored time is the time of the attribute's last change. When
    the clock is set, times from this run of the hub are corrected.
    """

    def __init__(self, storage: Storage, registry: Registry, bus: Bus, steps: ClockSteps) -> None:
        self._registry = registry
        self._steps = steps
        self._storage = storage
        self._watched: Mapping[str, Collection[Comparison]] = {}
        self._times = read_change_times(storage)
        steps.listen(self._correct_times)
        bus.listen(self._on_event, DeviceRemoved, DeviceStateChanged)

    def watch(self, comparisons: Mapping[str, Collection[Comparison]]) -> None:
        """Store the times of these comparisons, and no others. The keys are device ids or aliases."""
        self._watched = comparisons
        watched = {self._registry.id_of(each) for each in comparisons}
        for device_id in [each for each in self._times if each not in watched]:
            self._forget(device_id)

    def get(self, device: Device, comparison: Comparison) -> datetime:
        """Return the time at which the comparison began to hold.

        If the hub did not observe that time, return the time of the device's last change.
        """
        self._steps.poll()
        time = self._times.get(device.id, {}).get(comparison.key)
        return device.updated_at if time is None else time.at

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceRemoved) and not event.is_kept and event.device_id in self._times:
            self._forget(event.device_id)
        if not isinstance(event, DeviceStateChanged) or event.previous is None:
            return
        device = event.device
        for each in (*self._watched.get(device.id, ()), *self._watched.get(device.alias or "", ())):
            if each.begins(event):
                self._note(device.id, each.key)
            elif each.key not in self._times.get(device.id, {}):
                self._note(device.id, each.key, event.previous.updated_at)

    def _correct_times(self, step: timedelta) -> None:
        for device_id, times in self._times.items():
            for key in [key for key, time in times.items() if time.is_corrected]:
                self._keep(device_id, key, self._steps.redate(times[key].at, step))

    def _note(self, device_id: str, key: str, at: datetime | None = None) -> None:
        now = self._steps.now()
        self._keep(device_id, key, now if at is None else at)

    def _keep(self, device_id: str, key: str, at: datetime) -> None:
        times = self._times.setdefault(device_id, {})
        times[key] = _Time(at, is_corrected=True)
        stored = {each: to_millis(time.at) for each, time in times.items()}
        self._storage.put_later(CHANGED_PREFIX + device_id, stored)

    def _forget(self, device_id: str) -> None:
        del self._times[device_id]
        self._storage.put_later(CHANGED_PREFIX + device_id, None)


def read_change_times(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, dict[str, _Time]]:
    """Decode the stored times by device id and by the comparison's key."""
    return read_all(stored, CHANGED_PREFIX, _decode_times, on_fault)


def _decode_times(_: str, raw: Any) -> dict[str, _Time]:
    return {key: _Time(from_millis(at), is_corrected=False) for key, at in convert(raw, dict[str, int]).items()}
