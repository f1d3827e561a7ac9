"""Writes history to the card four times per day and at a stop, and reads it from the card."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from appliance.clock import Clock, from_millis, timestamp, to_millis
from appliance.computing import compute_alone
from appliance.event_loop import in_steps
from appliance.history.card_lines import (
    Faulty,
    ValueChange,
    attribute_beginning,
    command_beginning,
    decode_changes,
    decode_command,
    decode_execution,
    decode_hours,
    execution_beginning,
    month_at,
)
from appliance.history.card_writer import CardWriter
from appliance.history.collector import AttributeKey, Collected, Collector
from appliance.history.day_budget import PERIOD_MS, Written
from appliance.history.execution_history import ExecutionEntry
from appliance.history.hours import Hour
from appliance.history.newest_rows import NewestRows, Place
from appliance.history.period import FIRST_DATED_MS, Period
from appliance.history.series import ValueParts
from appliance.history.writing_index import WritingIndex, WrittenPart
from appliance.home.bus import Bus
from appliance.settings import HistorySettings
from appliance.store.month_files import MonthFiles

MIN_WRITE_PAUSE_SECS = 5 * 3600.0
"""Minimum pause between two writes in one run, except before the write at a stop. The minimum matters only if the
clock is set often."""

RETRY_SECS = 3600.0
"""Seconds between a failed write and the next attempt."""

MAX_NAMED = 20
"""Maximum number of thinned attributes in the diagnostics."""

MAX_BAD_LINES = 10_000
"""Maximum number of remembered damaged lines. The hub remembers damaged lines to count each of them only once."""

HISTORY_THREAD = "history"
"""The thread that reads the card and summarizes values. Only one request at a time occupies it."""

PartHour = tuple[ValueParts, Hour]
"""The parts of a value without its number (for example, the unit), and an `Hour` of values with these parts."""

T = TypeVar("T")

log = logging.getLogger("history")


class CardHistory:
    """Collects history while the context is open, and writes it to the card. Leaving the context writes the remaining
    data.

    `write_on` runs work on the store's thread. `grid_ms` is the offset of full hours in the home's time zone. While
    the clock is not trusted, nothing is written. Entries with times before this version's release are dropped,
    because the clock was wrong. Concurrent reads are allowed.
    """

    def __init__(
        self,
        settings: HistorySettings,
        months: MonthFiles,
        bus: Bus,
        clock: Clock,
        write_on: Callable[[Callable[[], Written]], Awaitable[Written]],
        is_trusted: Callable[[], bool],
        grid_ms: int = 0,
    ) -> None:
        self._months = months
        self._keep_days, self._max_day_bytes = settings.keep_days, settings.card_kb_per_day << 10
        self._writer = CardWriter(months, self._keep_days, self._max_day_bytes)
        self._index = WritingIndex(months)
        self._clock = clock
        self._write_on = write_on
        self._is_trusted = is_trusted
        self._lock = asyncio.Lock()
        self._period = self._now() // PERIOD_MS
        self._tried_at = -MIN_WRITE_PAUSE_SECS
        self._writings = self._failures = self._untimed = 0
        self._bytes = 0
        self._last_writing: str | None = None
        self._failure: str | None = None
        self._is_last = False
        self._thinned: dict[str, Any] | None = None
        self._bad: set[tuple[str, int]] = set()
        self.collector = Collector(bus, grid_ms)

    async def __aenter__(self) -> CardHistory:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.collector.close()
        self._is_last = True
        await self.write()
        if self._failure is not None:
            log.error("the hub stops; the history since the last write is lost: %s", self._failure)

    async def beat(self) -> None:
        """Write if a new quarter of the day (UTC) has begun, or if a failed write is due for a retry."""
        period, pause = self._now() // PERIOD_MS, self._clock.monotonic() - self._tried_at
        is_due = period != self._period and pause >= MIN_WRITE_PAUSE_SECS
        if self._is_trusted() and (is_due or (self._failure is not None and pause >= RETRY_SECS)):
            self._period = period
            await self.write()

    async def write(self) -> None:
        """Write the collected data. If the write fails, keep the data for the next write. Never raise."""
        if not self._is_trusted():
            return
        async with self._lock:
            self._tried_at = self._clock.monotonic()
            taken = Collected()
            await in_steps(self._clock, self.collector.take(taken, self._now))
            now = self._now()
            try:
                written = await self._write_on(partial(self._writer.append, taken, now))
            except Exception as error:
                written = Written(left=[taken], error=error)
            if written.error is not None:
                self._index.forget()
            for left in written.left:
                await in_steps(self._clock, self.collector.put_back(left))
            self._note(written, now)

    async def read_attribute(
        self,
        key: AttributeKey,
        period: Period,
        enough: int,
        summarize: Callable[[CardValues], T],
        *,
        step_ms: int = 1,
        steps: int = 1,
    ) -> T:
        """Return the summary of the attribute's values in the period: the newest `enough` hours and the changes in
        the newest `enough * steps` periods of `step_ms` on the card, and all data that is not on the card yet. Both
        are sorted by time.

        Missing values (None) are omitted. If `step_ms` is not 1, only the last change of each line per `step_ms` is
        included. `summarize` runs on the thread that reads the card.
        """
        now = self._now()
        first, last = period.bounds_ms()

        def select_changes(changes: Iterable[ValueChange]) -> list[ValueChange]:
            known = (each for each in changes if first <= each[0] <= last and each[1] is not None)
            chosen = sorted(known, key=lambda each: each[0])
            return chosen if step_ms == 1 else [*{at // step_ms: (at, value) for at, value in chosen}.values()]

        def select_hours(hours: Iterable[PartHour]) -> list[PartHour]:
            return [each for each in hours if first <= each[1].start * 1000 <= last]

        async with self._lock:  # during a write, entries are neither in the collector nor on the card
            fresh_hours, fresh_changes = self.collector.peek_hours(key, now), self.collector.peek_changes(key)

            def read() -> T:
                hours = NewestRows[PartHour](enough)
                changes = NewestRows[ValueChange](enough * steps, step_ms)

                def add(line: Mapping[str, Any], place: Place) -> None:
                    hours.add(((each[1].start * 1000, each) for each in select_hours(decode_hours(line))), place)
                    changes.add(((each[0], each) for each in select_changes(decode_changes(line))), place)

                def is_full_since(at: int) -> bool:
                    return hours.is_full_since(at) or changes.is_full_since(at)

                self._read(period, attribute_beginning(*key), add, is_full_since)
                fresh = [each for each in fresh_hours if each[1].start * 1000 >= FIRST_DATED_MS]
                changed = [each for each in fresh_changes if each[0] >= FIRST_DATED_MS]
                return summarize(
                    CardValues(
                        hours=[*hours.take_oldest_first(), *select_hours(fresh)],
                        changes=[*changes.take_oldest_first(), *select_changes(changed)],
                    )
                )

            return await compute_alone(HISTORY_THREAD, read)

    async def older_commands(self, known: Sequence[int], period: Period, device_id: str | None) -> list[Any]:
        """Return the period's commands that are no longer in memory, newest first, in the format of `CommandAudit`.
        `known` contains the times of the commands in memory."""
        return await self._read_older(command_beginning(device_id), period, known, decode_command)

    async def older_executions(
        self, known: Sequence[int], period: Period, kind: str, id_: str
    ) -> list[ExecutionEntry]:
        """Return the period's executions that are no longer in memory, newest first. `known` contains the times of
        the executions in memory."""
        return await self._read_older(execution_beginning(kind, id_), period, known, decode_execution)

    async def _read_older(
        self,
        beginning: bytes,
        period: Period,
        known: Sequence[int],
        decode: Callable[[Mapping[str, Any]], T],
    ) -> list[T]:
        """Return entries whose lines begin with `beginning`. Skip entries with `known` times. The returned and the
        known entries together do not exceed the period's limit."""
        if len(known) >= period.max_entries:
            return []
        first, last = period.bounds_ms()
        known_times = {*known}

        def read() -> list[T]:
            rows = NewestRows[T](period.max_entries - len(known))

            def add(line: Mapping[str, Any], place: Place) -> None:
                if first <= line["t"] <= last and line["t"] not in known_times:
                    rows.add([(line["t"], decode(line))], place)

            self._read(period, beginning, add, rows.is_full_since)
            return rows.take_oldest_first()[::-1][: period.max_entries - len(known)]

        async with self._lock:
            return await compute_alone(HISTORY_THREAD, read)

    def figures(self) -> dict[str, Any]:
        """Return the data for `GET /diagnostics`. `bytes` is the number of bytes written since the hub's start."""
        return {
            "keep_days": self._keep_days,
            "day_budget_bytes": self._max_day_bytes,
            "day_bytes": self._writer.day_bytes(self._now()),
            "bytes": self._bytes,
            "files": dict(self._writer.sizes),
            "writings": self._writings,
            "last_writing": self._last_writing,
            "failure": self._failure,
            "failures": self._failures,
            "bad_lines": len(self._bad),
            "thinned": self._thinned,
            "untimed": self._untimed,
            **self.collector.figures(),
        }

    def _read(
        self,
        period: Period,
        beginning: bytes,
        add: Callable[[Mapping[str, Any], Place], None],
        is_full_since: Callable[[int], bool],
    ) -> None:
        """Call `add` with the lines of the period that begin with these bytes, latest write first. Omit invalid
        lines. Stop if `is_full_since` returns True for a time after all unread lines, or if the card is
        unreadable."""
        try:
            for part, month in self._list_parts(period):
                for line in self._months.find(month, beginning, part.start, part.end):
                    if line.fields is None:
                        self._note_bad(month, line.offset)
                        continue
                    with suppress(*Faulty):
                        add(line.fields, (month, line.offset))
                if is_full_since(part.others_until_ms):
                    return
        except OSError as error:
            log.warning("history cannot be read: %s", error.strerror or error)

    def _list_parts(self, period: Period) -> Iterator[tuple[WrittenPart, str]]:
        """Yield the parts of the files that can contain values of the period, with their months, latest first."""
        first, last = _months_of(period)
        sizes = self._writer.read_sizes()
        for month in reversed(sizes):
            if first <= month <= last:
                for part in self._index.list_parts(month, sizes[month], period.bounds_ms()[0]):
                    yield part, month

    def _note_bad(self, month: str, offset: int) -> None:
        if len(self._bad) < MAX_BAD_LINES:
            self._bad.add((month, offset))

    def _note(self, written: Written, now: int) -> None:
        self._bytes += written.bytes
        self._untimed += written.untimed
        if written.error is not None:
            error = written.error
            if isinstance(error, OSError):
                reason = (error.strerror or str(error)).lower()
            else:
                reason = f"{type(error).__name__}: {error}"
            if self._failure is None:
                trace = None if isinstance(error, OSError) else error
                hint = "" if self._is_last else "; the hub keeps the data and retries"
                log.error("history cannot be written: %s%s", reason, hint, exc_info=trace)
            self._failure = reason
            self._failures += 1
            return
        if not written.bytes:
            return
        if self._failure is not None:
            log.info("history can be written again")
        self._failure = None
        self._writings += 1
        self._last_writing = timestamp(from_millis(now))
        if written.coarse or written.omitted or written.omitted_entries:
            self._note_thinned(written)

    def _note_thinned(self, written: Written) -> None:
        if self._thinned is None:
            log.warning(
                "today's history exceeds history.card_kb_per_day; %s; increase the setting to keep more",
                _losses(written),
            )
        self._thinned = {
            "at": self._last_writing,
            "coarse": len(written.coarse),
            "left_out": len(written.omitted),
            "entries_left_out": written.omitted_entries,
            "attributes": ["/".join(key) for key in (*written.omitted, *written.coarse)[:MAX_NAMED]],
        }

    def _now(self) -> int:
        return to_millis(self._clock.now())


class CardValues(Struct, frozen=True, kw_only=True):
    """An attribute's values on the card and in the collector: hourly summaries of numbers, and changes of other
    values."""

    hours: list[PartHour]
    changes: list[ValueChange]


def _months_of(period: Period) -> tuple[str, str]:
    """Return the first and the last month of the period."""
    first = "" if period.start is None else month_at(period.start)
    return first, "~" if period.end is None else month_at(period.end)


def _losses(written: Written) -> str:
    """Name the reduced and the omitted parts of the history."""
    parts = {
        "attributes stored in less detail": len(written.coarse),
        "attributes not stored": len(written.omitted),
        "commands and executions not stored": written.omitted_entries,
    }
    return ", ".join(f"{name}: {count}" for name, count in parts.items() if count)
