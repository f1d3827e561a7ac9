"""Stores the time at which a comparison began to hold, for conditions with `for_secs`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct, convert, field

from appliance.automations.requirement import Requirement
from appliance.clock import ClockSteps, from_millis, to_millis
from appliance.home.bus import Bus
from appliance.home.events import DeviceRemoved, DeviceStateChanged, Event
from appliance.home.model import Device
from appliance.home.registry import Registry
from appliance.home.values import number_in, same
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


class _Changes:
    """The values of an event's attributes before and after it. Thousands of comparisons may ask for one attribute, so
    the numbers of an attribute are found only once. Gaps in the values are ignored."""

    def __init__(self, event: DeviceStateChanged) -> None:
        self._event = event
        self._numbers: dict[str, tuple[float | None, float | None]] = {}

    def begin(self, comparison: Comparison) -> bool:
        """Return whether the comparison begins to hold, or the compared value changes."""
        name, requirement = comparison
        if name not in self._event.changed:
            return False
        if requirement.is_range:
            number, before = self._numbers.get(name) or self._numbers_of(name)
            is_within = number is not None and requirement.contains(number)
            return is_within and (before is None or not requirement.contains(before))
        value = self._event.device.attributes.get(name)
        return value is not None and not same(value, requirement.last_usable(self._event.known_before(name)))

    def _numbers_of(self, name: str) -> tuple[float | None, float | None]:
        """Return the attribute's number and its last known number."""
        known = map(number_in, self._event.known_before(name))
        before = next((each for each in known if each is not None), None)
        found = self._numbers[name] = number_in(self._event.device.attributes.get(name)), before
        return found


class _Times(Struct):
    """The times by the comparison's key, in milliseconds since 1970. The times of `observed` are corrected when the
    clock is set, because this run of the hub observed them."""

    millis: dict[str, int]
    observed: set[str] = field(default_factory=set)


class ChangeTimes:
    """For each comparison given to `watch`, stores the time at which the comparison began to hold. The times survive
    restarts.

    If a comparison has neither `above` nor `below`, the stored time is the time of the attribute's last change. When
    the clock is set, times from this run of the hub are corrected.

    A change costs a little for each comparison of the device, because thousands of conditions may compare one
    attribute. The record of a device is stored once per change.
    """

    def __init__(self, storage: Storage, registry: Registry, bus: Bus, steps: ClockSteps) -> None:
        self._registry = registry
        self._steps = steps
        self._storage = storage
        self._watched: Mapping[str, Mapping[str, Comparison]] = {}
        self._complete: dict[str, str | None] = {}
        """The devices that have a time for each comparison about them, and the alias in these comparisons."""
        self._times = {id_: _Times(millis) for id_, millis in read_change_times(storage).items()}
        steps.listen(self._correct_times)
        bus.listen(self._on_event, DeviceRemoved, DeviceStateChanged)

    def watch(self, comparisons: Mapping[str, Mapping[str, Comparison]]) -> None:
        """Store the times of these comparisons, and no others. The keys are device ids or aliases, and comparison
        keys."""
        self._watched = comparisons
        self._complete.clear()
        watched = {self._registry.id_of(each) for each in comparisons}
        for device_id in [each for each in self._times if each not in watched]:
            self._forget(device_id)

    def get(self, device: Device, comparison: Comparison) -> datetime:
        """Return the time at which the comparison began to hold.

        If the hub did not observe that time, return the time of the device's last change.
        """
        self._steps.poll()
        times = self._times.get(device.id)
        millis = None if times is None else times.millis.get(comparison.key)
        return device.updated_at if millis is None else from_millis(millis)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceRemoved) and not event.is_kept and event.device_id in self._times:
            self._forget(event.device_id)
        if not isinstance(event, DeviceStateChanged) or event.previous is None:
            return
        device = event.device
        watched = [found for name in (device.id, device.alias) if name and (found := self._watched.get(name))]
        if not watched:
            return
        changed: dict[str, int] = {}
        if self._complete.get(device.id, self) != device.alias:
            known, before = self._times.get(device.id, _Times({})).millis, to_millis(event.previous.updated_at)
            changed.update((key, before) for found in watched for key in found if key not in known)
            self._complete[device.id] = device.alias
        changes = _Changes(event)
        begun = [key for found in watched for key, each in found.items() if changes.begin(each)]
        changed |= dict.fromkeys(begun, to_millis(self._steps.now()) if begun else 0)
        self._store(device.id, changed)

    def _correct_times(self, step: timedelta) -> None:
        for device_id, times in self._times.items():
            observed = {key: from_millis(times.millis[key]) for key in times.observed}
            redated = {key: to_millis(self._steps.redate(at, step)) for key, at in observed.items()}
            self._store(device_id, redated)

    def _store(self, device_id: str, changed: Mapping[str, int]) -> None:
        """Set these observed times, and store the device's record."""
        if not changed:
            return
        times = self._times.setdefault(device_id, _Times({}))
        times.millis = {**times.millis, **changed}
        times.observed.update(changed)
        self._storage.put_later(CHANGED_PREFIX + device_id, times.millis)

    def _forget(self, device_id: str) -> None:
        del self._times[device_id]
        self._complete.pop(device_id, None)
        self._storage.put_later(CHANGED_PREFIX + device_id, None)


def read_change_times(stored: DocumentReader, on_fault: OnFault = skip) -> dict[str, dict[str, int]]:
    """Decode the stored times by device id and by the comparison's key, in milliseconds since 1970."""
    return read_all(stored, CHANGED_PREFIX, _decode_times, on_fault)


def _decode_times(_: str, raw: Any) -> dict[str, int]:
    times = convert(raw, dict[str, int])
    for at in times.values():
        from_millis(at)  # an impossible time is a fault
    return times
