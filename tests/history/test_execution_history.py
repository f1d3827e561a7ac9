"""Past executions and commands of a period are returned newest first. The number of entries is always limited."""

from __future__ import annotations

import random
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from appliance.history.command_audit import CommandAudit
from appliance.history.execution_history import (
    MAX_EXECUTION_HISTORY_BYTES,
    ExecutionEntry,
    ExecutionHistory,
    ExecutionStatus,
)
from appliance.history.period import Period
from appliance.home.bus import Bus
from appliance.home.commands import Command
from appliance.home.events import CommandEnded
from tests.fakes.rows import each_row

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def entry(subject: str, number: int, results: int = 0) -> ExecutionEntry:
    """Return an execution that began this many seconds after noon."""
    return ExecutionEntry(
        subject=subject,
        executed_at=NOON + timedelta(seconds=number, microseconds=900),
        status=ExecutionStatus.OK,
        error=None,
        results=({"target": "x"},) * results,
        duration_ms=number,
    )


def numbers(history: ExecutionHistory, subject: str, period: Period = Period(limit=1000)) -> list[int]:  # noqa: B008
    return [each.duration_ms for each in history.list_runs(subject, period)]


def test_the_newest_result_is_found_without_the_details_of_the_run() -> None:
    history = ExecutionHistory()
    assert history.find_newest_result("x") is None
    for number in range(3):
        history.add(replace(entry("x", number), error=f"no {number}"))
    history.add(entry("other", 5))
    found, newest = history.find_newest_result("x"), history.list_runs("x", Period(limit=1))[0]
    assert found is not None and asdict(found) == {
        "executed_at": newest.executed_at,
        "status": newest.status,
        "error": "no 2",
    }


def test_the_runs_of_one_subject_are_found_without_a_search_in_all_subjects() -> None:
    class Counted(str):
        __slots__ = ()
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    history = ExecutionHistory()
    for number in range(100):
        history.add(entry(f"s{number}", number))
    assert numbers(history, Counted("s7")) == [7]
    assert Counted.compared <= 5


def test_a_period_includes_its_shown_ends() -> None:
    history = ExecutionHistory()
    for number in range(300):
        history.add(entry("x", number))
    start, end = NOON + timedelta(seconds=10), NOON + timedelta(seconds=12)
    assert numbers(history, "x", Period(start=start, end=end)) == [12, 11, 10]
    assert numbers(history, "x", Period(end=end, limit=2)) == [12, 11]
    assert len(numbers(history, "x", Period())) == 200


def test_a_value_without_json_changes_nothing() -> None:
    history = ExecutionHistory(max_bytes=1500)
    with pytest.raises(TypeError):
        history.add(replace(entry("bad", 1), warnings=("\ud800",)))
    for number in range(10):
        history.add(entry("x", number))
    assert 1 <= len(numbers(history, "x")) < 10


def test_the_latest_thousand_executions_of_each_are_kept() -> None:
    history = ExecutionHistory()
    for number in range(2500):
        history.add(entry("x", number))
    assert numbers(history, "x") == [*range(2499, 1499, -1)]
    assert numbers(history, "x", Period(end=NOON + timedelta(minutes=20), limit=1000)) == []


def test_executions_in_any_order_of_times_are_returned_newest_first() -> None:
    history = ExecutionHistory()
    order = random.Random(1).sample(range(500), 500)  # the clock was set back and forward
    for number in order:
        history.add(entry("x", number))
    assert numbers(history, "x") == [*range(499, -1, -1)]
    assert numbers(history, "x", Period(limit=7)) == [*range(499, 492, -1)]
    period = Period(start=NOON + timedelta(seconds=100), end=NOON + timedelta(seconds=300), limit=150)
    assert numbers(history, "x", period) == [*range(300, 150, -1)]


def test_a_reader_that_stops_early_decompresses_only_the_newest_entries() -> None:
    history = ExecutionHistory()
    for number in range(400):
        history.add(replace(entry("x", number), error="x" * 100_000))
    tracemalloc.start()
    try:
        runs = history.iterate_runs("x", Period(limit=1000))
        newest = [next(runs).duration_ms for _ in range(3)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert newest == [399, 398, 397] and peak < 2_000_000


def test_a_reader_of_the_commands_of_all_devices_needs_little_memory() -> None:
    bus = Bus()
    audit = CommandAudit(bus, 4 << 20)
    for number in range(6_000):
        send(bus, number, f"x:{number % 2000}")
    tracemalloc.start()
    try:
        newest = [each["device_id"] for each in audit.iterate_commands(Period(limit=10))]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert newest == [f"x:{number % 2000}" for number in range(5_999, 5_989, -1)] and peak < 200_000


@pytest.mark.slow
def test_the_executions_of_hundreds_of_automations_use_less_memory_than_the_limit() -> None:
    history = ExecutionHistory()
    tracemalloc.start()
    try:
        for number in range(100):
            for automation in range(500):
                history.add(entry(f"a{automation}", number, results=2))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < MAX_EXECUTION_HISTORY_BYTES
    assert all(len(numbers(history, f"a{automation}")) > 30 for automation in range(500))


def test_histories_share_a_limit_and_the_largest_loses_first() -> None:
    history = ExecutionHistory(max_bytes=6000)
    history.add(entry("quiet", 1))
    for number in range(400):
        history.add(entry("busy", number))
    kept = numbers(history, "busy")
    assert numbers(history, "quiet") == [1] and 20 < len(kept) < 200 and kept == [*range(399, 399 - len(kept), -1)]
    history.add(replace(entry("great", 1), error=random.Random(1).randbytes(9000).hex()))
    assert numbers(history, "great") == [] and numbers(history, "quiet") == [1]


@each_row("field", ["error", "results", "trigger_payload", "trace", "warnings"])
def test_every_part_of_an_entry_counts_by_size_and_is_returned_unchanged(field: str) -> None:
    text = random.Random(1).randbytes(40 << 10).hex()  # compresses to half of its length
    reported: dict[str, Any] = {
        "error": text,
        "results": [{"target": text}],
        "trigger_payload": {"text": text},
        "trace": [{"step": "log", "message": text}],
        "warnings": [text],
    }
    history = ExecutionHistory(max_bytes=100 << 10)
    for number in range(5):
        history.add(entry("small", number))
        history.add(replace(entry("large", number), **{field: reported[field]}))
    assert numbers(history, "large") == [4, 3] and len(numbers(history, "small")) == 5
    shown = getattr(history.list_runs("large", Period())[0], field)
    assert (list(shown) if isinstance(shown, tuple) else shown) == reported[field]


def send(bus: Bus, second: int, device_id: str, message: str | None = None) -> None:
    """Publish that a command to the device ended this many seconds after noon."""
    at, sent = NOON + timedelta(seconds=second), Command(capability="brightness", action="set", value=40)
    ended = {"source": "device", "room_id": "hall", "device_id": device_id, "command": sent, "message": message}
    bus.publish(CommandEnded(at=at, status="ok" if message is None else "error", **ended))  # type: ignore[arg-type]


def test_commands_are_newest_first_and_the_most_commanded_device_loses_first() -> None:
    bus = Bus()
    audit = CommandAudit(bus, 100_000)
    for number in range(2000):
        send(bus, number % 60, "busy:1")
        if number % 200 == 0:
            send(bus, 1, "quiet:1")
    figures = audit.figures()
    assert figures["bytes"] <= 100_000 and figures["recorded"] == 2010
    everything = Period(limit=1000)
    assert len([*audit.iterate_commands(everything, "quiet:1")]) == 10
    times = [entry["recorded_at"] for entry in audit.iterate_commands(everything, "busy:1")]
    assert len(times) > 100 and times == sorted(times, reverse=True)
    send(bus, 1, "huge:1", message="x" * 200_000)
    assert audit.figures()["bytes"] <= 100_000
