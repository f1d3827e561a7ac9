"""The past values of all attributes with their times, in memory within a size limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import IntEnum
from heapq import merge
from itertools import groupby, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.clock import Clock, from_millis, to_millis
from appliance.history.packed_records import PackedRecords
from appliance.history.period import FIRST_DATED_MS, Period
from appliance.history.series import HOUR_MS, MAX_ENTRIES, MINUTE_MS, Series
from appliance.home.bus import Bus, Rank
from appliance.home.events import DeviceRoomChanged, DeviceStateChanged, Event
from appliance.home.model import Device
from appliance.shrinking import shrunk

_ROOM = ""
"""The series name for a device's past rooms. No attribute has this name."""


class Resolution(IntEnum):
    """Milliseconds per entry. At `RAW`, all entries are returned."""

    RAW = 0
    MINUTE = MINUTE_MS
    HOUR = HOUR_MS
    DAY = 24 * HOUR_MS


class AttributeEntry(Struct, frozen=True, kw_only=True):
    """An attribute's value since `observed_at`.

    If the entry summarises an hour or a day, `value` is the mean, and `low` and `high` are the lowest and highest
    numbers. For a meter, `gain` is the counted amount. All these numbers have the attribute's unit.
    """

    observed_at: datetime
    value: Any
    low: Any = None
    high: Any = None
    gain: Any = None


class DeviceEntry(Struct, frozen=True, kw_only=True):
    """A device's state since `observed_at`."""

    observed_at: datetime
    device: Device


class _KeptSeries(Series):
    """An attribute's series. `counted` is the series' size in the memory budget."""

    __slots__ = ("counted", "device_id", "name")

    def __init__(self, device_id: str, name: str) -> None:
        super().__init__()
        self.device_id = device_id
        self.name = name
        self.counted = 0


class DeviceHistory:
    """Collects the values of devices from the bus, in at most `max_bytes`.

    When the memory is full, the oldest packed history is dropped. If nothing is packed, one of the largest series is
    thinned out, so that only devices with frequent reports lose detail.
    """

    def __init__(self, bus: Bus, clock: Clock, max_bytes: int) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._devices: dict[str, dict[str, _KeptSeries]] = {}
        # the series of each size class, least recently changed first
        self._by_size: dict[int, dict[_KeptSeries, None]] = {}
        self._bytes = 0
        self._packed = PackedRecords()
        bus.listen(self._on_event, DeviceStateChanged, DeviceRoomChanged, rank=Rank.RECORD)

    def list_values(
        self, device_id: str, attribute: str, period: Period, resolution: Resolution = Resolution.RAW
    ) -> list[AttributeEntry]:
        """Return the attribute's known values in the period, newest first."""
        return list_entries(self._find(device_id).get(attribute, Series()), period, resolution)

    def copy_series(self, device_id: str, attribute: str) -> Series:
        """Return a copy of the attribute's series, which another thread can read."""
        return self._find(device_id).get(attribute, Series()).copy()

    def known_since(self, device_id: str, attribute: str) -> datetime | None:
        """Return the time of the attribute's oldest entry with a plausible time, or None."""
        series = self._find(device_id).get(attribute, Series())
        index = series.first_from(FIRST_DATED_MS)
        return None if index is None else from_millis(series.time_at(index))

    def iterate_states(
        self, device: Device, period: Period, resolution: Resolution = Resolution.RAW
    ) -> Iterator[DeviceEntry]:
        """Yield the device's states in the period, newest first. Each change of an attribute is a separate state."""
        known = self._find(device.id)
        each_times = [_times(series, period, resolution) for name, series in known.items() if name != _ROOM]
        steps = groupby(merge(*each_times, reverse=True), lambda at: at // (resolution or 1))
        for _, times in islice(steps, period.max_entries):
            yield _entry_at(device, known, next(times))

    def pack(self, device_id: str) -> None:
        """Pack the history of a removed device to save memory. The history is unpacked on demand."""
        if known := self._devices.pop(device_id, None):
            self._devices = shrunk(self._devices)
            for series in known.values():
                self._discount(series)
                if same_size := self._by_size.get(size_class := _size_class(series.counted)):
                    self._by_size[size_class] = shrunk(same_size)
            self._packed.add((device_id, [(name, series.pack()) for name, series in known.items()]))

    def figures(self) -> dict[str, int]:
        """Return the memory in use, and the numbers of unpacked series and entries."""
        kept = [series for known in self._devices.values() for series in known.values()]
        entries = sum(map(len, kept))
        kept_bytes = self._bytes + self._packed.size
        return {"bytes": kept_bytes, "max_bytes": self._max_bytes, "series": len(kept), "entries": entries}

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceStateChanged):
            self._append_changes(event)
        elif isinstance(event, DeviceRoomChanged) and (known := self._find(event.device_id)):
            if _ROOM not in known:
                self._append(event.device_id, _ROOM, min(each.time_at(0) for each in known.values()), event.previous)
            self._append(event.device_id, _ROOM, to_millis(self._clock.now()), event.room_id)

    def _append_changes(self, event: DeviceStateChanged) -> None:
        """Add the changed attributes. Add None for each missing attribute."""
        device, attributes = event.device, event.device.attributes
        at, known = to_millis(device.updated_at), self._find(device.id)
        missing = attributes.keys() - known.keys()
        for name in event.changed | missing if missing else event.changed:
            if name in attributes or name in known:
                self._append(device.id, name, at, attributes.get(name))

    def _find(self, device_id: str) -> Mapping[str, _KeptSeries]:
        """Return the device's series by attribute, unpacked."""
        if device_id not in self._devices and (record := self._packed.take(device_id)):
            known = {name: _KeptSeries(device_id, name).unpack(packed) for name, packed in record[1]}
            self._devices[device_id] = known
            for series in known.values():
                self._count(series)
        return self._devices.get(device_id, {})

    def _append(self, device_id: str, name: str, at: int, value: Any) -> None:
        known = self._devices.setdefault(device_id, {})
        series = known.get(name)
        if series is None:
            series = known[name] = _KeptSeries(device_id, name)
        series.append(at, value)
        if len(series) > MAX_ENTRIES:
            series.thin(MAX_ENTRIES * 15 // 16)
        self._count(series)
        while self._bytes + self._packed.size > self._max_bytes:
            if len(self._packed):
                self._packed.take_oldest()
            else:
                self._shrink()

    def _shrink(self) -> None:
        """Among the largest series, thin out the most recently changed one. If that series has only one entry, drop
        the least recently changed one instead."""
        largest = self._by_size[max(self._by_size)]
        series = next(reversed(largest))
        if len(series) > 1:
            series.thin(len(series) * 15 // 16)
            self._count(series)
        else:
            self._drop(next(iter(largest)))

    def _drop(self, series: _KeptSeries) -> None:
        self._discount(series)
        del self._devices[series.device_id][series.name]
        if not self._devices[series.device_id]:
            del self._devices[series.device_id]

    def _count(self, series: _KeptSeries) -> None:
        """Update the series' size in the memory budget, and mark the series as most recently changed."""
        if series.counted:
            self._discount(series)
        series.counted = series.size
        self._bytes += series.counted
        self._by_size.setdefault(_size_class(series.counted), {})[series] = None

    def _discount(self, series: _KeptSeries) -> None:
        self._bytes -= series.counted
        size_class = _size_class(series.counted)
        del self._by_size[size_class][series]
        if not self._by_size[size_class]:
            del self._by_size[size_class]


def _size_class(size: int) -> int:
    """Return a number that increases by one whenever the size grows by a factor of 1.4."""
    return (size * size).bit_length()


def list_entries(series: Series, period: Period, resolution: Resolution = Resolution.RAW) -> list[AttributeEntry]:
    """Return the entries of the series in the period, newest first."""
    entries: list[AttributeEntry] = []
    for index in series.list_indices(*period.bounds_ms(), resolution):
        if len(entries) == period.max_entries:
            break
        if (value := series.value_at(index)) is not None:
            entries.append(AttributeEntry(observed_at=from_millis(series.time_at(index)), value=value))
    return entries


def _times(series: Series, period: Period, resolution: Resolution) -> Iterator[int]:
    """Yield the times of the series in the period, newest first."""
    return map(series.time_at, series.list_indices(*period.bounds_ms(), resolution))


def _entry_at(device: Device, known: Mapping[str, Series], at: int) -> DeviceEntry:
    """Return the device's state at this time, without unknown attributes. If the past room is unknown, use the
    current room."""
    indices = {name: series.last_until(at) for name, series in known.items()}
    shown = {name: known[name].value_at(index) for name, index in indices.items() if index is not None}
    room_id = shown.pop(_ROOM, device.room_id)
    attributes = {name: shown[name] for name in sorted(shown) if shown[name] is not None}
    instant = from_millis(at)
    then = replace(device, room_id=room_id, attributes=attributes, updated_at=instant, last_seen=instant)
    return DeviceEntry(observed_at=instant, device=then)
