"""History: the newest first, within a period, and bounded whatever happens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from appliance.history.execution_history import RunEntry, RunHistory, RunStatus
from appliance.history.period import Period

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def entry(subject: str, number: int, results: int = 0, given: int | None = None) -> RunEntry:
    """One that ran so many seconds after noon."""
    return RunEntry(
        subject=subject,
        executed_at=NOON + timedelta(seconds=number, microseconds=900),
        status=RunStatus.OK,
        error=None,
        results=({"target": "x"},) * results,
        duration_ms=number,
        trigger_payload=None if given is None else {"text": "x" * given},
    )


def numbers(history: RunHistory, subject: str, period: Period = Period(limit=1000)) -> list[int]:  # noqa: B008
    """Which entries there are."""
    return [each.duration_ms for each in history.list_runs(subject, period)]


def test_entries_come_newest_first_in_whatever_order_they_ended() -> None:
    history = RunHistory()
    for number in (2, 1, 3):
        history.add(entry("x", number))
    history.add(entry("y", 9))
    assert numbers(history, "x") == [3, 2, 1]
    assert numbers(history, "nobody") == []


def test_a_period_includes_its_ends_as_they_are_shown() -> None:
    history = RunHistory()
    for number in range(300):
        history.add(entry("x", number))
    start, end = NOON + timedelta(seconds=10), NOON + timedelta(seconds=12)
    assert numbers(history, "x", Period(start=start, end=end)) == [12, 11, 10]
    assert numbers(history, "x", Period(end=end, limit=2)) == [12, 11]
    assert len(numbers(history, "x", Period())) == 200


def test_of_each_only_the_latest_are_kept() -> None:
    history = RunHistory(max_runs=3)
    for number in range(10):
        history.add(entry("x", number))
    history.add(entry("y", 1))
    assert numbers(history, "x") == [9, 8, 7] and numbers(history, "y") == [1]


def test_of_all_only_so_many_entries_and_results_are_kept_and_the_longest_unheard_of_goes_first() -> None:
    history = RunHistory(max_weight=10)
    for number in range(4):
        history.add(entry("quiet", number))
    for number in range(6):
        history.add(entry("busy", number))
    assert (len(numbers(history, "quiet")), len(numbers(history, "busy"))) == (4, 6)
    history.add(entry("quiet", 4, results=2))
    assert (len(numbers(history, "quiet")), numbers(history, "busy")) == (5, [5, 4, 3])
    history.add(entry("great", 1, results=50))
    assert numbers(history, "great") == [1]
    assert numbers(history, "quiet") == numbers(history, "busy") == []


def test_what_runs_were_given_counts_by_its_size() -> None:
    history = RunHistory(max_weight=100)
    for number in range(50):
        history.add(entry("small", number, given=300))
    assert len(numbers(history, "small")) == 50
    for number in range(5):
        history.add(entry("large", number, given=48 << 10))
    assert numbers(history, "large") == [4, 3] and numbers(history, "small") == []
