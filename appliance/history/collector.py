"""Collects hours of numbers, changes, commands, and executions from the bus until they are written to the card."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import Any

from msgspec import Struct, field

from appliance.clock import to_millis
from appliance.history.card_lines import (
    ValueChange,
    encode_command,
    encode_execution,
    fit_for_card,
    month_of,
)
from appliance.history.entry_lines import EntryLines
from appliance.history.execution_history import ExecutionEntry, ExecutionStatus
from appliance.history.hours import Hour, NumberHours
from appliance.history.packed_records import PackedRecords
from appliance.history.series import SERIES_BYTES, Series, ValueParts, split_number
from appliance.home.bus import Bus, Rank
from appliance.home.events import CommandEnded, DeviceRemoved, DeviceStateChanged, Event
from appliance.home.model import AWAY
from appliance.shrinking import shrunk

MAX_ATTRIBUTES = 8192
"""Maximum number of attributes on the card. The history of further attributes is only in memory."""

MAX_UNTRACKED = 1000

MAX_ENDED = 2000
"""Maximum number of waiting parts of hours that ended because the unit changed. The oldest parts are dropped first,
because a device may change its unit with every report."""

MAX_CHANGES = 2000
"""For each attribute, the maximum number of changes that wait for the card. Above this limit, only one change per
minute is kept, then one per hour."""

MAX_CHANGES_BYTES = 2 << 20
"""The total size of all changes that wait for the card. Above this size, a device that reports a further change loses
older changes of its attribute with the most changes."""

MAX_PACKED_BYTES = 1 << 20
"""For removed devices, the maximum size of packed data that waits for the card. The oldest data is dropped first."""

MAX_ENTRIES_WAITING, MAX_ENTRY_BYTES_WAITING = 4000, 1 << 20
"""Maximum number and total size of commands and executions that wait for the card. The oldest entries are dropped
first."""

AttributeKey = tuple[str, str]


class Importance(IntEnum):
    """The importance of an entry. If the daily budget is too small, less important entries are dropped first."""

    SKIPPED = 0
    EXECUTION = 1
    COMMAND = 2


class CardEntry(Struct, frozen=True, gc=False):
    """The line for a command or an execution, and its time in milliseconds since 1970."""

    at: int
    importance: Importance
    body: bytes


class CollectedHours(Struct, frozen=True, kw_only=True):
    """An attribute's hours, and the number of readings in these hours."""

    key: AttributeKey
    parts: ValueParts
    hours: list[Hour]
    reports: int


class Collected(Struct, kw_only=True):
    """Data that the collector has handed over for a write."""

    hours: list[CollectedHours] = field(default_factory=list)
    changes: dict[AttributeKey, list[ValueChange]] = field(default_factory=dict)
    entries: list[CardEntry] = field(default_factory=list)

    def by_month(self) -> dict[str, Collected]:
        """Return the collected data by month, oldest first."""
        months: dict[str, Collected] = {}

        def of(secs: float) -> Collected:
            return months.setdefault(month_of(secs), Collected())

        for each in self.hours:
            for month in dict.fromkeys(month_of(hour.start) for hour in each.hours):
                hours = [hour for hour in each.hours if month_of(hour.start) == month]
                kept = CollectedHours(key=each.key, parts=each.parts, hours=hours, reports=each.reports)
                of(hours[0].start).hours.append(kept)
        for key, changes in self.changes.items():
            for change in changes:
                of(change[0] / 1000).changes.setdefault(key, []).append(change)
        for entry in self.entries:
            of(entry.at / 1000).entries.append(entry)
        return dict(sorted(months.items()))


class Collector:
    """Collects history from the bus until `close`. Call all methods on the event loop. The methods never block.

    - `grid_ms`: the offset of full hours in the home's time zone, for example 30 minutes in some zones.
    - `lost`: the number of hours, changes, and entries dropped because of the limits.
    """

    def __init__(self, bus: Bus, grid_ms: int) -> None:
        self._grid_ms = grid_ms
        self._numbers: dict[str, dict[str, NumberHours]] = {}
        self._ended: deque[tuple[AttributeKey, NumberHours]] = deque()
        self._changes: dict[str, dict[str, Series]] = {}
        self._changed = 0
        self._changes_bytes = 0
        self._entries = EntryLines()
        self._packed = PackedRecords()
        self._count = 0
        self.lost = 0
        self._untracked = array("q")
        """The sorted hashes of at most `MAX_UNTRACKED` attributes beyond `MAX_ATTRIBUTES`. The keys themselves would
        be small objects, and after a burst of devices, each would keep a page in use."""
        self._stop_listening = bus.listen(
            self._on_event, DeviceStateChanged, DeviceRemoved, CommandEnded, rank=Rank.RECORD
        )

    def close(self) -> None:
        self._stop_listening()

    def note_execution(self, kind: str, entry: ExecutionEntry) -> None:
        """Record an execution of a scene or automation, or the reason why it did not run."""
        is_skipped = entry.status in (ExecutionStatus.SKIPPED, ExecutionStatus.DROPPED)
        importance = Importance.SKIPPED if is_skipped else Importance.EXECUTION
        at = to_millis(entry.executed_at)
        self._add_entry(at, importance, encode_execution(kind, entry, at))

    def take(self, taken: Collected, now: Callable[[], int]) -> Iterator[None]:
        """Move all collected data to `taken`, one device or entry per step. `now` returns the milliseconds since
        1970."""
        entries, self._entries = self._entries, EntryLines()
        for at, importance, body in entries:
            taken.entries.append(CardEntry(at, Importance(importance), body))
            yield
        for record in self._packed.take_all():
            self._unpack_record(*record)
        ended, self._ended = self._ended, deque()
        for key, numbers in ended:
            self._take_hours(key, numbers, now(), taken)
            yield
        for device_id in [*(self._numbers | self._changes)]:
            at, attributes = now(), self._numbers.pop(device_id, {})
            for name, numbers in attributes.items():
                self._take_hours((device_id, name), numbers, at, taken)
            if holding := {name: each for name, each in attributes.items() if each.is_holding}:
                self._numbers[device_id] = holding
            self._count -= len(attributes) - len(holding)
            changes = self._changes.pop(device_id, {})
            self._discount(changes)
            taken.changes.update(((device_id, name), [*_changes_of(series)]) for name, series in changes.items())
            yield

    def _take_hours(self, key: AttributeKey, numbers: NumberHours, at: int, taken: Collected) -> None:
        reports, hours = numbers.reports, numbers.take(at)
        self.lost += numbers.take_lost()
        if hours:
            taken.hours.append(CollectedHours(key=key, parts=numbers.parts, hours=hours, reports=reports))

    def put_back(self, taken: Collected) -> Iterator[None]:
        """Put back data that was taken but could not be written, one attribute per step."""
        for each in taken.hours:
            self._unpack(each.key[0])
            numbers = self._find_numbers(each.key, each.parts)
            if numbers is not None:
                numbers.put_back(each.hours)
            yield
        for key, changes in taken.changes.items():
            later = [*self.peek_changes(key)]
            if later:
                self._discount({key[1]: self._changes[key[0]].pop(key[1])})
            for change in (*changes, *later):
                self._add_change(key, *change)
            yield
        newer, self._entries = self._entries, EntryLines()
        for entry in taken.entries:
            self._add_entry(entry.at, entry.importance, entry.body)
        for at, importance, body in newer:
            self._add_entry(at, importance, body)

    def peek_hours(self, key: AttributeKey, at: int) -> list[tuple[ValueParts, Hour]]:
        """Return the attribute's collected hours, including the unfinished hour. The hours remain in the
        collector."""
        self._unpack(key[0])
        known = self._numbers.get(key[0], {}).get(key[1])
        numbers = [*(each for ended, each in self._ended if ended == key), *([] if known is None else [known])]
        return [(each.parts, hour) for each in numbers for hour in each.peek(at)]

    def peek_changes(self, key: AttributeKey) -> Iterator[ValueChange]:
        """Yield the attribute's collected changes, sorted by time. The changes remain in the collector. The iterator
        reads a copy, so another thread may use it."""
        self._unpack(key[0])
        series = self._changes.get(key[0], {}).get(key[1])
        return iter(()) if series is None else _changes_of(series.copy())

    def pack(self, device_id: str) -> None:
        """Pack the data of a removed device to save memory. The data is unpacked on demand."""
        numbers, changes = self._numbers.pop(device_id, {}), self._changes.pop(device_id, {})
        if numbers or changes:
            self._numbers, self._changes = shrunk(self._numbers), shrunk(self._changes)
            self._count -= len(numbers)
            self._discount(changes)
            packed = [[(name, each.pack()) for name, each in part.items()] for part in (numbers, changes)]
            self._packed.add((device_id, *packed))
        while self._packed.size > MAX_PACKED_BYTES:
            _, numbers, changes = self._packed.take_oldest()
            self.lost += len(numbers) + len(changes)

    def _unpack(self, device_id: str) -> None:
        is_known = device_id in self._numbers or device_id in self._changes
        if not is_known and (record := self._packed.take(device_id)):
            self._unpack_record(*record)

    def _unpack_record(self, device_id: str, numbers: list[Any], changes: list[Any]) -> None:
        self._count += len(numbers)
        if numbers:
            self._numbers[device_id] = {name: NumberHours.unpack(each) for name, each in numbers}
        if changes:
            unpacked = self._changes[device_id] = {name: Series().unpack(each) for name, each in changes}
            self._changed += len(unpacked)
            self._changes_bytes += _bytes_of(unpacked)

    def figures(self) -> dict[str, int]:
        """Return the numbers of waiting and lost entries."""
        lost = self.lost + sum(each.lost for _, each in self._list_numbers())
        changes = sum(len(series) for attributes in self._changes.values() for series in attributes.values())
        waiting = changes + len(self._entries) + len(self._packed)
        return {"numbers": self._count, "waiting": waiting, "lost": lost, "untracked": len(self._untracked)}

    def _on_event(self, event: Event) -> None:
        if isinstance(event, DeviceStateChanged):
            self._on_change(event)
        elif isinstance(event, DeviceRemoved):
            self._unpack(event.device_id)
            for numbers in self._numbers.get(event.device_id, {}).values():
                numbers.pause(numbers.known_until)
        elif isinstance(event, CommandEnded):
            at = to_millis(event.at)
            self._add_entry(at, Importance.COMMAND, encode_command(event, at))

    def _on_change(self, event: DeviceStateChanged) -> None:
        device = event.device
        self._unpack(device.id)
        at, before = to_millis(device.updated_at), {} if event.previous is None else event.previous.attributes
        is_away = device.attributes.get("state") in AWAY
        is_back = not is_away and before.get("state") in AWAY
        for name, value in device.attributes.items() if is_back else event.new_values.items():
            is_changed = name in event.changed
            if not self._report(device.id, name, at, value, before.get(name)) and is_changed:
                self._add_change((device.id, name), at, fit_for_card(value))
        for name in event.gone:
            self._end_attribute((device.id, name), at)
        if is_away:
            for numbers in self._numbers.get(device.id, {}).values():
                numbers.pause(at)

    def _report(self, device_id: str, name: str, at: int, value: Any, before: Any) -> bool:
        """Record a value with a number. Return False for any other value."""
        split = split_number(value)
        if split is None:
            return False
        numbers = self._find_numbers((device_id, name), split[0])
        if numbers is not None:
            known = split_number(before) if numbers.is_meter else None
            numbers.report(at, split[1], None if known is None or known[0] != split[0] else known[1])
        return True

    def _end_attribute(self, key: AttributeKey, at: int) -> None:
        numbers = self._numbers.get(key[0], {}).get(key[1])
        if numbers is None:
            self._add_change(key, at, None)
        else:
            numbers.pause(at)

    def _find_numbers(self, key: AttributeKey, parts: ValueParts) -> NumberHours | None:
        """Return the attribute's `NumberHours`. If the unit has changed, return new `NumberHours`. Return None if
        there are too many attributes."""
        device = self._numbers.setdefault(key[0], {})
        numbers = device.get(key[1])
        if numbers is None or numbers.parts != parts:
            if numbers is not None:
                self._ended.append((key, numbers))
                if len(self._ended) > MAX_ENDED:
                    self._ended.popleft()
                    self.lost += 1
            elif self._count >= MAX_ATTRIBUTES:
                self._note_untracked(key)
                return None
            else:
                self._count += 1
            numbers = device[key[1]] = NumberHours(parts, self._grid_ms)
        return numbers

    def _add_change(self, key: AttributeKey, at: int, value: Any) -> None:
        changes = self._changes.get(key[0], {})
        series = changes.get(key[1])
        if series is None:
            if self._changed >= MAX_ATTRIBUTES:
                self._note_untracked(key)
                return
            self._changed += 1
            series = changes[key[1]] = Series()
            self._changes[key[0]] = changes
            self._changes_bytes += series.size
        before = series.size
        series.append(at, value)
        self._changes_bytes += series.size - before
        if len(series) > MAX_CHANGES:
            self._thin(series, MAX_CHANGES * 15 // 16)
        if self._changes_bytes > MAX_CHANGES_BYTES + SERIES_BYTES * self._changed:
            longest = max(changes.values(), key=len)
            self._thin(longest, max(len(longest) // 2, 1))

    def _thin(self, series: Series, target: int) -> None:
        size, count = series.size, len(series)
        series.thin(target)
        self._changes_bytes -= size - series.size
        self.lost += count - len(series)

    def _discount(self, changes: Mapping[str, Series]) -> None:
        """Count these changes no longer, because they were removed."""
        self._changed -= len(changes)
        self._changes_bytes -= _bytes_of(changes)

    def _note_untracked(self, key: AttributeKey) -> None:
        place = bisect_left(self._untracked, hashed := hash(key))
        if len(self._untracked) < MAX_UNTRACKED and self._untracked[place : place + 1] != array("q", [hashed]):
            self._untracked.insert(place, hashed)

    def _add_entry(self, at: int, importance: int, body: bytes) -> None:
        self._entries.add(at, importance, body)
        while len(self._entries) > MAX_ENTRIES_WAITING or self._entries.size > MAX_ENTRY_BYTES_WAITING:
            self._entries.drop_oldest()
            self.lost += 1

    def _list_numbers(self) -> Iterator[tuple[AttributeKey, NumberHours]]:
        for device_id, attributes in self._numbers.items():
            for name, numbers in attributes.items():
                yield (device_id, name), numbers


def _bytes_of(changes: Mapping[str, Series]) -> int:
    return sum(series.size for series in changes.values())


def _changes_of(series: Series) -> Iterator[ValueChange]:
    return ((series.time_at(index), series.value_at(index)) for index in range(len(series)))
