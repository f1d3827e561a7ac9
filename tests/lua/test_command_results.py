"""The newest command results of an execution are kept within both limits, in little memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

from appliance.adapters.dispatch import Status
from appliance.lua.running.command_results import MAX_RESULT_BYTES, MAX_RESULTS, CommandResults
from appliance.lua.running.packed_rows import RowMemory
from tests.fakes.rows import each_row


def result(number: int, message: str | None) -> dict[str, Any]:
    return {"target": f"lamp:{number}", "status": "error", "message": message}


@each_row("count", [0, 1, 31, 32, 33, 64, 999, 1000, 1001, 1031, 1032, 1033, 5000])
def test_the_newest_results_are_kept_in_order(count: int) -> None:
    results = CommandResults(RowMemory())
    for number in range(count):
        results.add(f"lamp:{number}", Status.ERROR, None)
    assert results.to_list() == [result(number, None) for number in range(max(0, count - MAX_RESULTS), count)]


@each_row("size", [500, 10_000, 100_000, 200_000])
def test_large_results_are_kept_up_to_a_size(size: int) -> None:
    results, message = CommandResults(RowMemory()), "\ud800" + "x" * size
    for number in range(700):
        results.add(f"lamp:{number}", Status.ERROR, message)
    kept = results.to_list()
    assert kept == [result(number, message) for number in range(700 - len(kept), 700)]
    assert MAX_RESULT_BYTES - size - 200 < sum(64 + size + 9 for _ in kept) <= MAX_RESULT_BYTES


def test_the_results_of_a_running_execution_need_little_memory() -> None:
    tracemalloc.start()
    try:
        results = CommandResults(RowMemory())
        for number in range(400):
            name = f"{number}{'n' * 250}"
            results.add(name, Status.ERROR, f"device '{name}' not found")
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(results.to_list()) == 400 and used < 40_000
