"""Reads of a long history on the card: they read only the needed part of a month, and keep only the needed rows."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from errno import EIO
from pathlib import Path
from typing import Any

import orjson
import pytest

from appliance.clock import from_millis, to_millis
from appliance.history.card_lines import (
    MAX_CARD_VALUE_BYTES,
    MAX_CHANGES_PER_LINE,
    WRITTEN,
    attribute_beginning,
    command_beginning,
    decode_changes,
    encode_changes,
    encode_written,
    execution_beginning,
)
from appliance.history.device_history import Resolution
from appliance.history.newest_rows import NewestRows
from appliance.history.period import Period
from appliance.store.month_files import MAX_LINE_BYTES, FoundLine, MonthFiles
from tests.history.test_card_history import MONDAY, Box

MINUTE_MS = 60_000
PER_WRITE = 40


class Counted(MonthFiles):
    """Files that count the decoded lines, except the last lines of writes."""

    decoded = 0

    def find(self, month: str, beginning: bytes, start: int = 0, end: int | None = None) -> Iterator[FoundLine]:
        for line in super().find(month, beginning, start, end):
            self.decoded += beginning != WRITTEN
            yield line


class Unsteady(MonthFiles):
    """Files whose next read fails after three lines if `fails` is true."""

    fails = False

    def find(self, month: str, beginning: bytes, start: int = 0, end: int | None = None) -> Iterator[FoundLine]:
        for number, line in enumerate(super().find(month, beginning, start, end)):
            if number == 3 and self.fails:
                self.fails = False
                raise OSError(EIO, "Input/output error")
            yield line


class Row:
    """A row that can be referenced weakly."""


def command(at: int) -> bytes:
    rest = {"t": at, "s": "room", "r": None, "c": {"capability": "power", "action": "on"}, "o": "ok", "m": None}
    return command_beginning("lamp") + orjson.dumps(rest)[1:]


def execution(at: int) -> bytes:
    return execution_beginning("scene", "evening") + orjson.dumps({"t": at, "o": "ok", "ms": 1, "e": None})[1:]


def write(box: Box, times: Sequence[int], at: int) -> None:
    """Write a command, an execution, and a change at each time."""
    changes = [(each, f"at {each}") for each in times]
    lines = [body for _, body in encode_changes("lamp", "power", changes)]
    lines += [body for each in times for body in (command(each), execution(each))]
    MonthFiles(box.disk).append(f"{from_millis(at):%Y-%m}", [*lines, encode_written(at, 1, 1)])


def write_month(box: Box) -> list[int]:
    """Write four times per day for 20 days. Return the times of all entries."""
    times: list[int] = []
    for quarter in range(80):
        first = to_millis(MONDAY) + quarter * 360 * MINUTE_MS
        times += (added := [first + number * MINUTE_MS for number in range(PER_WRITE)])
        write(box, added, first + 359 * MINUTE_MS)
    box.pass_time(days=21)
    return times


async def times_of(box: Box, period: Period) -> dict[str, list[int]]:
    """Return the times of the commands, executions, and changes."""
    commands = await box.card.older_commands([], period, None)
    executions = await box.card.older_executions([], period, "scene", "evening")
    found = await box.history.attributes.list_values("lamp", "power", period, Resolution.RAW)
    return {
        "commands": [to_millis(datetime.fromisoformat(each["recorded_at"])) for each in commands],
        "executions": [to_millis(each.executed_at) for each in executions],
        "changes": [to_millis(each.observed_at) for each in found.entries],
    }


@pytest.mark.parametrize("limit", [1, 10, PER_WRITE, PER_WRITE + 1])
async def test_a_read_decodes_only_the_writes_that_its_limit_needs(tmp_path: Path, limit: int) -> None:
    box = Box(tmp_path)
    times = write_month(box)
    box.months = files = Counted(box.disk)
    async with box.run():
        for name, found in (await times_of(box, Period(start=MONDAY, limit=limit))).items():
            assert found == times[::-1][:limit], name
        writes = 1 + (limit - 1) // PER_WRITE
        assert files.decoded <= 2 * writes * PER_WRITE + 2 * (writes + 1)


async def test_a_failed_read_repeats_no_entries_later(tmp_path: Path) -> None:
    box = Box(tmp_path)
    times = write_month(box)
    box.months = files = Unsteady(box.disk)
    async with box.run():
        period, files.fails = Period(start=MONDAY, limit=len(times)), True
        assert await box.card.older_commands([], period, None) == [] and not files.fails
        for name, found in (await times_of(box, period)).items():
            assert found == times[::-1], name


async def test_entries_after_the_period_do_not_count(tmp_path: Path) -> None:
    box = Box(tmp_path)
    times = write_month(box)
    end = MONDAY + timedelta(minutes=5)
    january = to_millis(datetime(2027, 1, 1, tzinfo=UTC))
    write(box, [january + number for number in range(50)], january + 50)
    async with box.run():
        for limit in (3, 10):
            expected = times[5::-1][:limit]
            for name, found in (await times_of(box, Period(end=end, limit=limit))).items():
                assert found == expected, name
        first_of_january = Period(end=from_millis(january), limit=3)
        for name, found in (await times_of(box, first_of_january)).items():
            assert found == [january, *times[:-3:-1]], name


async def test_the_newest_entries_are_found_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    box = Box(tmp_path)
    first = to_millis(MONDAY)
    writes = [range(0, 60, 2), range(11, 31, 2), range(15, 25, 5), range(100, 110)]
    for minutes in writes:
        write(box, [first + each * MINUTE_MS for each in minutes], first + (max(minutes) + 1) * MINUTE_MS)
    box.pass_time(days=1)
    expected = sorted((first + each * MINUTE_MS for minutes in writes for each in minutes), reverse=True)
    async with box.run():
        for limit in (5, 10, 15, 30, 1000):
            for name, found in (await times_of(box, Period(limit=limit))).items():
                assert found == expected[:limit], (name, limit)


async def test_hours_with_many_changes_fill_the_limit_over_months(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.pass_time(days=23)
    async with box.run():
        for number in range(2 * 24 * 10 * 6):  # from 30 December to 9 January
            if number % 36 == 0:
                await box.card.beat()
            box.show(power=f"on{number}")
            box.pass_time(minutes=10)
    async with box.run():
        for resolution, limit in ((Resolution.HOUR, 200), (Resolution.DAY, 8)):
            period = Period(end=datetime(2027, 1, 8, tzinfo=UTC), limit=limit)
            assert len(await box.values("power", resolution, period=period)) == limit


async def test_hours_that_end_as_unknown_have_their_last_known_value(tmp_path: Path) -> None:
    for box in (Box(tmp_path), Box(tmp_path / "memory", keep_days=0)):
        async with box.run():
            for hour in range(30):
                box.show(power=f"on{hour}")
                box.pass_time(minutes=50)
                box.show(power=None)
                box.pass_time(minutes=10)
            assert await box.values("power", Resolution.HOUR, period=Period(limit=3)) == ["on29", "on28", "on27"]
            assert await box.values("power", Resolution.DAY) == ["on29", "on23"]
    async with (box := Box(tmp_path)).run():
        box.pass_time(days=3)
        for resolution in (Resolution.RAW, Resolution.HOUR):
            assert await box.values("power", resolution, period=Period(limit=3)) == ["on29", "on28", "on27"]


def test_only_the_newest_rows_are_kept() -> None:
    alive: weakref.WeakSet[Row] = weakref.WeakSet()
    peak = 0

    def make(times: Sequence[int]) -> Iterator[tuple[int, Row]]:
        nonlocal peak
        for at in times:
            alive.add(row := Row())
            yield at, row
            del row
            peak = max(peak, len(alive))

    rows = NewestRows[Row](10)
    for number, times in enumerate([range(1000), range(1000, 0, -1), range(500, 1500)]):
        rows.add(make(times), ("2026-11", number))
    assert peak <= 3 * 10 + 2, "rows with equal times are kept together"
    assert rows.is_full_since(1489) and not rows.is_full_since(1490)
    assert len(rows.take_oldest_first()) == 10 and not rows.take_oldest_first()


def test_rows_with_equal_times_keep_the_order_in_which_they_were_written() -> None:
    rows = NewestRows[str](2)
    rows.add([(7, "c"), (7, "d"), (8, "e")], ("2026-11", 900))
    rows.add([(6, "-"), (7, "a"), (7, "b")], ("2026-11", 100))
    assert rows.take_oldest_first() == ["a", "b", "c", "d", "e"]


async def test_hours_with_many_restarts_fill_the_limit(tmp_path: Path) -> None:
    box = Box(tmp_path)
    for minute in range(5 * 60):
        async with box.run():
            box.show(brightness=minute)
            box.pass_time(minutes=1)
    async with box.run():
        end = Period(end=box.clock.now() - timedelta(minutes=1), limit=3)
        for resolution in (Resolution.HOUR, Resolution.RAW):
            lowest = [entry[0] for entry in await box.values("brightness", resolution, period=end)]
            assert lowest == [240, 180, 120], resolution


def test_a_line_contains_a_bounded_number_of_changes() -> None:
    value = {"text": "x" * (MAX_CARD_VALUE_BYTES - 20)}
    changes: list[tuple[int, Any]] = [(to_millis(MONDAY) + number, value) for number in range(8192)]
    lines = [body for _, body in encode_changes("lamp", "custom.list", changes)]
    assert len(lines) == -(-8192 // MAX_CHANGES_PER_LINE) and max(map(len, lines)) < MAX_LINE_BYTES
    assert [each for line in lines for each in decode_changes(orjson.loads(line))] == changes


async def test_long_lines_of_earlier_versions_are_read(tmp_path: Path) -> None:
    box = Box(tmp_path)
    first = to_millis(MONDAY)
    rest = {"t": first, "c": [[number * 1000, number] for number in range(8000)]}
    MonthFiles(box.disk).append("2026-12", [attribute_beginning("lamp", "custom.n") + orjson.dumps(rest)[1:]])
    box.pass_time(days=1)
    async with box.run():
        assert await box.values("custom.n", period=Period(limit=3)) == [7999, 7998, 7997]
        assert await box.values("custom.n", Resolution.HOUR) == [7999, 7199, 3599]


async def test_minutes_that_are_no_longer_in_memory_are_minutes_or_hours(tmp_path: Path) -> None:
    box = Box(tmp_path)
    async with box.run():
        for second in range(0, 600, 20):
            if second % 100 == 0:
                await box.card.write()
            box.show(power=f"on{second}", brightness=second)
            box.pass_time(seconds=20)
    async with box.run():
        for limit, expected in ((200, [*range(580, 0, -60)]), (3, [580, 520, 460])):
            period = Period(limit=limit)
            assert await box.values("power", Resolution.MINUTE, period=period) == [f"on{each}" for each in expected]
        found = await box.history.attributes.list_values("lamp", "power", Period(), Resolution.MINUTE)
        assert found.resolution is Resolution.MINUTE
        found = await box.history.attributes.list_values("lamp", "brightness", Period(), Resolution.MINUTE)
        assert (len(found.entries), found.resolution) == (1, Resolution.HOUR)
        box.show(power="off")
        box.pass_time(seconds=1)
        box.show(power="on")
        box.pass_time(minutes=1)
        box.show(power="off")
        assert await box.values("power", Resolution.MINUTE, period=Period(limit=3)) == ["off", "on", "on580"]
    async with box.run():
        box.show(power="same minute")
        assert await box.values("power", Resolution.MINUTE, period=Period(limit=2)) == ["same minute", "on"]
