"""Reads an attribute's past values from memory and card: every value, or one value per minute, hour, or day."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from itertools import groupby
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from appliance.clock import Clock, from_millis, to_millis
from appliance.computing import compute_alone
from appliance.history.card_history import HISTORY_THREAD, CardHistory, CardValues, PartHour
from appliance.history.card_lines import ValueChange
from appliance.history.device_history import AttributeEntry, DeviceHistory, Resolution, list_entries
from appliance.history.hours import Hour, NumberHours, join_all, join_number, merge
from appliance.history.period import MILLISECOND, Period
from appliance.history.series import HOUR_MS, MINUTE_MS, Series, ValueParts, split_number

MAX_HOURS_A_DAY = 25

SPAN_STEP_MS = 15 * MINUTE_MS
"""Hours and days begin at multiples of this time, because each time zone differs from UTC by such a multiple."""

UNBOUNDED = 1 << 30

T = TypeVar("T")


class AttributeValues(Struct, frozen=True, kw_only=True):
    """Entries, newest first, and the resolution of the coarsest entry. Numbers from the card are hours."""

    resolution: Resolution
    entries: list[AttributeEntry]


class AttributeReader:
    """Reads values of attributes. `card` is None if the card stores no history. Days begin at midnight in `zone`.
    Hours begin at the offset `grid_ms`, as on the card."""

    def __init__(
        self, devices: DeviceHistory, card: CardHistory | None, clock: Clock, zone: tzinfo, grid_ms: int
    ) -> None:
        self._devices = devices
        self._card = card
        self._clock = clock
        self._zone = zone
        self._grid_ms = grid_ms

    async def list_values(
        self, device_id: str, attribute: str, period: Period, resolution: Resolution
    ) -> AttributeValues:
        if resolution in (Resolution.HOUR, Resolution.DAY):
            return AttributeValues(
                resolution=resolution,
                entries=await self._list_spans(device_id, attribute, period, is_by_day=resolution is Resolution.DAY),
            )
        return await self._list_raw(device_id, attribute, period, resolution)

    async def _list_spans(
        self, device_id: str, attribute: str, period: Period, *, is_by_day: bool
    ) -> list[AttributeEntry]:
        """Return one entry per hour or day from the card or, if the card has no values, from memory."""

        def summarize(known: CardValues) -> list[AttributeEntry] | None:
            if not known.hours and not known.changes:
                return None
            span_of = self._day_of if is_by_day else self._hour_of
            return _newest(_in_spans(known, self._day_of if is_by_day else int, span_of), period)

        hours = MAX_HOURS_A_DAY if is_by_day else 1
        steps = HOUR_MS // SPAN_STEP_MS
        entries = await self._read_card(device_id, attribute, period, summarize, hours, SPAN_STEP_MS, steps)
        if entries is None:
            series, end = self._devices.copy_series(device_id, attribute), _earlier(period.end, self._clock.now())
            entries = await compute_alone(
                HISTORY_THREAD, lambda: summarize(self._hours_and_changes_of(series, period, end))
            )
        return entries or []

    async def _list_raw(
        self, device_id: str, attribute: str, period: Period, resolution: Resolution
    ) -> AttributeValues:
        """Return each value, or the last of each minute. Numbers that are no longer in memory become hours."""
        recent = self._devices.list_values(device_id, attribute, period, resolution)
        since = self._devices.known_since(device_id, attribute)
        is_covered = since is not None and period.start is not None and since <= period.start
        if len(recent) >= period.max_entries or is_covered:
            return AttributeValues(resolution=resolution, entries=recent)
        end = period.end if since is None else _earlier(period.end, since - MILLISECOND)
        before = replace(period, end=end)
        now = self._clock.now()

        def join(known: CardValues) -> AttributeValues:
            older = known.hours if since is None else _without_memory(known.hours, since, now)
            hours = _in_spans(CardValues(hours=older, changes=[]), int, int)
            changes = known.changes
            if resolution:
                by_minute = {at // resolution: (at, value) for at, value in changes}
                for each in recent[-1:]:
                    by_minute.pop(to_millis(each.observed_at) // resolution, None)
                changes = [*by_minute.values()]
            entries = [*recent, *_of_changes(changes), *hours]
            coarsest = Resolution.HOUR if older else resolution
            return AttributeValues(resolution=coarsest, entries=_newest(entries, period))

        return await self._read_card(device_id, attribute, before, join, step_ms=resolution or 1)

    async def _read_card(
        self,
        device_id: str,
        attribute: str,
        period: Period,
        summarize: Callable[[CardValues], T],
        hours: int = 1,
        step_ms: int = 1,
        steps: int = 1,
    ) -> T:
        """Return the summary of enough values from the card for one entry per group of `hours` hours."""
        if self._card is None:
            return summarize(CardValues(hours=[], changes=[]))
        enough = hours * period.max_entries + 1  # `_without_memory` can omit an hour
        return await self._card.read_attribute(
            (device_id, attribute), period, enough, summarize, step_ms=step_ms, steps=steps
        )

    def _hours_and_changes_of(self, series: Series, period: Period, end: datetime) -> CardValues:
        """Return the values of the series in the period. `end` is the end of the last number."""
        entries = list_entries(series, replace(period, limit=UNBOUNDED))
        numbers: list[NumberHours] = []
        changes: list[ValueChange] = []
        for entry in reversed(entries):
            at, split = to_millis(entry.observed_at), split_number(entry.value)
            if split is None:
                changes.append((at, entry.value))
                continue
            if not numbers or numbers[-1].parts != split[0]:
                numbers.append(NumberHours(split[0], self._grid_ms))
            numbers[-1].report(at, split[1], numbers[-1].last)
        hours = [(each.parts, hour) for each in numbers for hour in each.take(to_millis(end))]
        return CardValues(hours=hours, changes=changes)

    def _day_of(self, secs: float) -> int:
        """For the day that contains this time, return the start in seconds since 1970."""
        local = datetime.fromtimestamp(secs, self._zone)
        return int(local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0).timestamp())

    def _hour_of(self, secs: float) -> int:
        """Return the number of full hours between 1970 and this time."""
        return int((secs * 1000 - self._grid_ms) // HOUR_MS)


def _without_memory(hours: list[PartHour], since: datetime, now: datetime) -> list[PartHour]:
    """Omit the last part of the hour in which the values in memory begin. Memory also contains the values of this
    part."""
    for index in reversed(range(len(hours))):
        hour, first = hours[index][1], since.timestamp()
        end = hour.start + HOUR_MS // 1000
        if end > first:
            is_in_memory = hour.secs <= min(end, now.timestamp()) - first + 1
            return [*hours[:index], *hours[index + 1 :]] if is_in_memory else hours
    return hours


def _in_spans(
    known: CardValues, start_of_hours: Callable[[float], int], span_of: Callable[[float], int]
) -> list[AttributeEntry]:
    """Return one entry per hour or day. The entry summarises numbers, or contains the last change of other values."""
    entries: list[AttributeEntry] = []
    ordered = sorted(known.hours, key=lambda each: each[1].start)
    for parts, found in groupby(ordered, lambda each: each[0]):
        hours = merge(hour for _, hour in found)
        for start, each in groupby(hours, lambda hour: start_of_hours(hour.start)):
            entries.append(_entry(parts, join_all(start, each)))
    by_span = {span_of(at / 1000): (at, value) for at, value in sorted(known.changes, key=lambda each: each[0])}
    return [*entries, *_of_changes(by_span.values())]


def _of_changes(changes: Iterable[ValueChange]) -> list[AttributeEntry]:
    return [AttributeEntry(observed_at=from_millis(at), value=value) for at, value in changes]


def _entry(parts: ValueParts, hour: Hour) -> AttributeEntry:
    return AttributeEntry(
        observed_at=datetime.fromtimestamp(hour.start, UTC),
        value=join_number(parts, hour.value),
        low=join_number(parts, hour.low),
        high=join_number(parts, hour.high),
        gain=None if hour.gain is None else join_number(parts, hour.gain),
    )


def _newest(entries: list[AttributeEntry], period: Period) -> list[AttributeEntry]:
    entries.sort(key=lambda entry: entry.observed_at, reverse=True)
    return entries[: period.max_entries]


def _earlier(one: datetime | None, other: datetime) -> datetime:
    return other if one is None else min(one, other)
