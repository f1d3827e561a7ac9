"""The rows of running executions are compressed, and limited for all executions together."""

from __future__ import annotations

import random
import tracemalloc

from appliance.clock import Clock
from appliance.lua.running.command_results import CommandResults
from appliance.lua.running.context import TOO_LARGE, Context
from appliance.lua.running.packed_rows import MAX_ROW_BYTES, PackedRows, RowMemory
from appliance.lua.running.trace import MAX_LOG_STEPS, MAX_TRACE_STEPS
from tests.fakes.rows import each_row


@each_row("keep", [1, 7, 200])
def test_the_newest_rows_are_kept_in_order(keep: int) -> None:
    rows = PackedRows(RowMemory())
    for number in range(1000):
        rows.add((number, "x" * (number % 300)), keep)
        kept = [each for each, _ in rows.list_newest(keep)]
        assert kept == list(range(max(0, number + 1 - keep), number + 1))


def test_the_longest_rows_lose_their_oldest_rows() -> None:
    memory = RowMemory(max_bytes=100_000)
    small, large = PackedRows(memory), PackedRows(memory)
    source = random.Random(1)
    for number in range(10):
        small.add((number, source.randbytes(1000)), 1000)
    for number in range(1000):
        large.add((number, source.randbytes(1000)), 1000)
    assert small.size + large.size <= 100_000
    assert [number for number, _ in small.list_newest(1000)] == list(range(10))
    kept = [number for number, _ in large.list_newest(1000)]
    assert 50 < len(kept) < 100 and kept == list(range(1000 - len(kept), 1000))


def test_ended_rows_make_room() -> None:
    memory = RowMemory(max_bytes=100_000)
    source = random.Random(1)
    for _ in range(10):
        rows = PackedRows(memory)
        for number in range(80):
            rows.add((number, source.randbytes(1000)), 1000)
        assert len(rows.list_newest(1000)) == 80


def fill(context: Context, source: random.Random) -> None:
    def text() -> str:
        return source.randbytes(400).decode("utf-16", errors="replace")

    for _ in range(MAX_TRACE_STEPS):
        context.trace.add("command", device_id=text(), message=text(), status="error")
    for _ in range(MAX_LOG_STEPS):
        context.trace.add("log", level="info", message=text())


def test_many_large_executions_need_little_memory_and_their_entries_name_what_is_missing() -> None:
    memory, source = RowMemory(), random.Random(1)
    usual = Context(Clock(), "scene", "usual", {}, memory=memory)
    usual.trace.add("sleep", secs=1)
    tracemalloc.start()
    try:
        contexts = [Context(Clock(), "scene", str(number), {}, memory=memory) for number in range(30)]
        for each in contexts:
            fill(each, source)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1.5 * MAX_ROW_BYTES
    for each in contexts:
        missing = MAX_TRACE_STEPS - len(each.trace.list_steps())
        assert each.warnings == [f"trace: the oldest {missing} are missing ({TOO_LARGE})"]
    assert usual.warnings == [] and len(usual.trace.list_steps()) == 1


def test_an_execution_within_the_limits_has_no_warning() -> None:
    context = Context(Clock(), "scene", "usual", {})
    fill(context, random.Random(1))
    assert context.warnings == [] and len(context.trace.list_steps()) == MAX_TRACE_STEPS


def test_missing_results_are_counted() -> None:
    memory = RowMemory(max_bytes=10_000)
    results = CommandResults(memory)
    for _ in range(300):
        results.add(random.Random(1).randbytes(50).hex(), "error", None)
    assert results.count_missing() == 0
    source = random.Random(2)
    for _ in range(300):
        results.add(source.randbytes(50).hex(), "error", None)
    assert results.count_missing() == 600 - len(results.to_list()) > 0
