"""Device history: what each attribute showed and when, for every device, within a budget of bytes.

The values of one attribute over time are a series: columns of numbers, so that an entry costs 18 bytes.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import IntEnum
from heapq import nlargest
from sys import getsizeof
from typing import Any, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from appliance.clock import Clock, from_millis, to_millis
from appliance.history.period import FIRST_DATED_MS, Period
from appliance.home.bus import Bus
from appliance.home.events import DeviceRoomChanged, DeviceStateChanged, Event
from appliance.home.model import Device

MAX_ENTRIES = 8192
"""Entries of one series, so that thinning it never takes long, and the forms of its values fit into two bytes."""

SERIES_BYTES = 900
"""Bytes of a series in addition to its columns: objects and table entries."""

FORM_BYTES = 150
"""Bytes of one form of a value in addition to its text."""

MINUTE_MS, HOUR_MS = 60_000, 3_600_000

_MAX_EXACT = 1 << 53
"""Integers beyond this are not exact as floats."""

ValueParts = Mapping[str, Any] | None
"""The parts next to the number in a value, such as its unit; None for a number alone."""

_Form = tuple[type[Any], str]
"""The form of a value with a number: its type, and its other parts as JSON. `str` and a JSON text: a constant."""


class Series:
    """Entries in the order of time, in milliseconds since 1970. `size` is their cost in bytes.

    A value of None means an absent attribute.
    """

    __slots__ = ("_constants_bytes", "_forms", "_forms_of", "_index_of", "_numbers", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self._numbers = array("d")
        self._forms_of = array("H")
        self._forms: list[_Form] = []
        self._index_of: dict[_Form, int] = {}
        self._constants_bytes = 0

    def __len__(self) -> int:
        return len(self.times)

    @property
    def size(self) -> int:
        """Bytes of memory that the series takes, its columns and forms included."""
        columns = getsizeof(self.times) + getsizeof(self._numbers) + getsizeof(self._forms_of)
        return columns + self._constants_bytes + SERIES_BYTES

    def append(self, at: int, value: Any) -> None:
        """Add an entry. Entries that claim to be later came from a clock that was set back: they now end here."""
        index = len(self.times) - 1
        while index >= 0 and self.times[index] > at:
            self.times[index] = at
            index -= 1
        form, number = _split(value)
        self.times.append(at)
        self._numbers.append(number)
        self._forms_of.append(self._index(form))

    def value_at(self, index: int) -> Any:
        """Return the value of the entry at this index."""
        return _join(self._forms[self._forms_of[index]], self._numbers[index])

    def last_until(self, at: int) -> int | None:
        """Return the index of the entry that was in force at that time; None if that is not known."""
        index = bisect_right(self.times, at) - 1
        return None if index < 0 else index

    def list_indices(self, first_ms: int, last_ms: int, step_ms: int) -> Iterator[int]:
        """Yield the entries between the two times, both included, newest first; of each step of time the last
        alone."""
        bucket = None
        for index in range(bisect_right(self.times, last_ms) - 1, bisect_left(self.times, first_ms) - 1, -1):
            if step_ms == 0 or bucket != self.times[index] // step_ms:
                yield index
            bucket = self.times[index] // step_ms if step_ms else None

    def thin(self, target: int) -> None:
        """Keep this number of entries at most: the newest in full, older ones per minute, the oldest per hour."""
        recent = target // 12
        edge = len(self) - max(recent, 1)
        by_minute = self._last_of_each(range(edge), MINUTE_MS)
        split = max(0, len(by_minute) - recent)
        by_hour = self._last_of_each(by_minute[:split], HOUR_MS)
        room = target - (len(self) - edge) - (len(by_minute) - split)
        oldest = by_hour[-room:] if room > 0 else []
        self._keep([*oldest, *by_minute[split:], *range(edge, len(self))])

    def _last_of_each(self, indices: range | list[int], step_ms: int) -> list[int]:
        buckets = {self.times[index] // step_ms: index for index in indices}
        return list(buckets.values())

    def _keep(self, indices: list[int]) -> None:
        self.times = array("q", [self.times[index] for index in indices])
        self._numbers = array("d", [self._numbers[index] for index in indices])
        forms, forms_of = self._forms, self._forms_of
        self._forms, self._index_of, self._constants_bytes = [], {}, 0
        self._forms_of = array("H", [self._index(forms[forms_of[index]]) for index in indices])

    def _index(self, form: _Form) -> int:
        """Return the index of the form in the table; a new one is added."""
        index = self._index_of.get(form)
        if index is None:
            index = self._index_of[form] = len(self._forms)
            self._forms.append(form)
            self._constants_bytes += getsizeof(form[1]) + FORM_BYTES
        return index


def split_number(value: Any) -> tuple[ValueParts, int | float] | None:
    """Return a value's number and its other parts; None for a word, a boolean or anything else."""
    if _is_exact(value):
        return None, value
    number = value.get("value") if isinstance(value, Mapping) else None
    if _is_exact(number):
        return {key: each for key, each in value.items() if key != "value"}, number
    return None


def _split(value: Any) -> tuple[_Form, float]:
    """Return the form of a value (its type and other parts), and its number."""
    if (split := split_number(value)) is None:
        return (str, _encode(value)), 0.0
    parts, number = split
    return (type(number), "" if parts is None else _encode(parts)), number


def _encode(value: Any) -> str:
    """Return the value as JSON; other values become text."""
    return json.dumps(value, default=str)


def _is_exact(value: Any) -> TypeGuard[int | float]:
    """Return whether it is a number, not a boolean, that a float holds exactly."""
    return type(value) in (int, float) and abs(value) <= _MAX_EXACT


def _join(form: _Form, number: float) -> Any:
    kind, parts = form
    if kind is str:
        return json.loads(parts)
    return {"value": kind(number), **json.loads(parts)} if parts else kind(number)


MIN_SHARE_BYTES = 2048
"""The minimum share of a series; it limits the number of series."""

_ROOM = ""
"""The series of a device's room; no attribute has this name."""


class Resolution(IntEnum):
    """Milliseconds per entry; 0 keeps every entry."""

    RAW = 0
    MINUTE = MINUTE_MS
    HOUR = HOUR_MS
    DAY = 24 * HOUR_MS


class AttributeEntry(Struct, frozen=True, kw_only=True):
    """The value of an attribute from this moment on.

    If the entry summarises an hour or a day, `value` is a number's mean, `low` and `high` its bounds, and `gain` the
    amount that a meter counted; all have the form of the value.
    """

    observed_at: datetime
    value: Any
    low: Any = None
    high: Any = None
    gain: Any = None


class DeviceEntry(Struct, frozen=True, kw_only=True):
    """The state of a device from this moment on."""

    observed_at: datetime
    device: Device


class DeviceHistory:
    """Listens to the bus and keeps what devices showed. It never takes more than `max_bytes`.

    Without room, the largest series is thinned: a device that reports often keeps less detail, and the values of
    others stay.
    """

    def __init__(self, bus: Bus, clock: Clock, max_bytes: int) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._devices: dict[str, dict[str, Series]] = {}
        self._sizes: dict[tuple[str, str], int] = {}  # the least recently changed first
        self._bytes = 0
        bus.listen(self._on_event, DeviceStateChanged, DeviceRoomChanged)

    def list_values(
        self, device_id: str, attribute: str, period: Period, resolution: Resolution = Resolution.RAW
    ) -> list[AttributeEntry]:
        """Return the attribute's values in the period, newest first; empty if none are known."""
        series = self._devices.get(device_id, {}).get(attribute, Series())
        entries: list[AttributeEntry] = []
        for index in series.list_indices(*period.bounds_ms(), resolution):
            if len(entries) == period.max_entries:
                break
            if (value := series.value_at(index)) is not None:
                entries.append(AttributeEntry(observed_at=from_millis(series.times[index]), value=value))
        return entries

    def known_since(self, device_id: str, attribute: str) -> datetime | None:
        """Return the time of the attribute's oldest entry with a plausible time; otherwise None."""
        series = self._devices.get(device_id, {}).get(attribute)
        times = () if series is None else series.times[bisect_left(series.times, FIRST_DATED_MS) :]
        return from_millis(times[0]) if times else None

    def list_states(
        self, device: Device, period: Period, resolution: Resolution = Resolution.RAW
    ) -> list[DeviceEntry]:
        """Return the device's states in the period, newest first: one for each change of an attribute."""
        known = self._devices.get(device.id, {})
        times: set[int] = set()
        for name, series in known.items():
            if name != _ROOM:
                times.update(_latest(series, period, resolution))
        by_step = {at // (resolution or 1): at for at in sorted(times)}
        return [_entry_at(device, known, at) for at in nlargest(period.max_entries, by_step.values())]

    def figures(self) -> dict[str, int]:
        """Return the number of kept entries, and their bytes within the budget."""
        entries = sum(len(series) for known in self._devices.values() for series in known.values())
        return {"bytes": self._bytes, "max_bytes": self._max_bytes, "series": len(self._sizes), "entries": entries}

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceStateChanged):
            device, at = event.device, to_millis(event.device.updated_at)
            for name, value in self._changes(event):
                self._append(device.id, name, at, value)
        elif isinstance(event, DeviceRoomChanged) and event.device_id in self._devices:
            self._append(event.device_id, _ROOM, to_millis(self._clock.now()), event.room_id)

    def _changes(self, event: DeviceStateChanged) -> list[tuple[str, Any]]:
        """Return the attributes that differ from the kept values; None for a missing one."""
        device, known = event.device, self._devices.get(event.device.id, {})
        changes = [] if known else [(_ROOM, device.room_id)]
        changes += [
            (name, value) for name, value in device.attributes.items() if name not in known or name in event.changed
        ]
        return changes + [(name, None) for name in event.gone if name in known]

    def _append(self, device_id: str, name: str, at: int, value: Any) -> None:
        series = self._devices.setdefault(device_id, {}).setdefault(name, Series())
        series.append(at, value)
        if len(series) > MAX_ENTRIES:
            series.thin(MAX_ENTRIES * 15 // 16)
        key = device_id, name
        self._measure(key, series)
        self._sizes[key] = self._sizes.pop(key)
        if len(self._sizes) > self._max_bytes // MIN_SHARE_BYTES:
            self._drop(next(iter(self._sizes)))
        while self._bytes > self._max_bytes:
            self._shrink()

    def _shrink(self) -> None:
        """Drop a sixteenth of the largest series' entries."""
        key = max(self._sizes, key=self._sizes.__getitem__)
        series = self._devices[key[0]][key[1]]
        if len(series) <= 1:
            self._drop(key)
            return
        series.thin(len(series) * 15 // 16)
        self._measure(key, series)

    def _drop(self, key: tuple[str, str]) -> None:
        device_id, name = key
        self._bytes -= self._sizes.pop(key)
        del self._devices[device_id][name]
        if not self._devices[device_id]:
            del self._devices[device_id]

    def _measure(self, key: tuple[str, str], series: Series) -> None:
        size = series.size
        self._bytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size


def _latest(series: Series, period: Period, resolution: Resolution) -> Iterator[int]:
    """Return the newest times of the series in the period, at most as many as the period allows."""
    indices = series.list_indices(*period.bounds_ms(), resolution)
    return (series.times[index] for index, _ in zip(indices, range(period.max_entries), strict=False))


def _entry_at(device: Device, known: dict[str, Series], at: int) -> DeviceEntry:
    """Return the device at that time; unknown attributes are left out, the room is not."""
    indices = {name: series.last_until(at) for name, series in known.items()}
    shown = {name: known[name].value_at(index) for name, index in indices.items() if index is not None}
    room_id = shown.pop(_ROOM, device.room_id)
    attributes = {name: shown[name] for name in sorted(shown) if shown[name] is not None}
    instant = from_millis(at)
    then = replace(device, room_id=room_id, attributes=attributes, updated_at=instant, last_seen=instant)
    return DeviceEntry(observed_at=instant, device=then)
