"""What the bench says of figures: whether a target is met, whether a ratio is worse than the last, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import _report
from benchmarks._frame import Outcome, Result, Row, Sample, find_worse

FAST = Row(label="GET", unit="requests/s", beside="bare", at_least=0.9, why="keys are checked")
SLOW = Row(label="command", unit="ms", beside="bare", at_most=1.5)
ALONE = Row(label="memory", unit="MB", at_most=60)
PLAIN = Row(label="p99", unit="ms", beside="bare")
COUNT = Row(label="threads", at_most=4)


def result(row: Row, *rounds: tuple[float, float | None]) -> Result:
    """The row with these rounds."""
    made = Result(row=row)
    for value, limit in rounds:
        made.add(row.sample(value, limit))
    return made


def outcome(*results: Result, skipped: str = "") -> Outcome:
    """What became of a measure of that name."""
    return Outcome(name="some", title="Something.", seconds=1.0, results=[*results], skipped=skipped)


@pytest.mark.parametrize(
    ("made", "is_met"),
    [
        (result(FAST, (9.0, 10.0)), True),
        (result(FAST, (8.9, 10.0)), False),
        (result(FAST, (8.0, 10.0), (9.5, 10.0), (9.6, 10.0)), True),
        (result(SLOW, (15.0, 10.0)), True),
        (result(SLOW, (15.1, 10.0)), False),
        (result(ALONE, (60.0, None)), True),
        (result(ALONE, (60.1, None)), False),
        (result(PLAIN, (99.0, 1.0)), None),
        (result(SLOW), None),
    ],
)
def test_the_median_of_the_rounds_meets_the_target_or_not(made: Result, is_met: bool | None) -> None:
    assert made.is_met is is_met


@pytest.mark.parametrize(
    ("now", "last", "is_worse"),
    [
        (result(FAST, (5.0, 10.0)), result(FAST, (9.0, 10.0)), True),
        (result(FAST, (5.0, 10.0), (8.9, 10.0)), result(FAST, (9.0, 10.0)), False),
        (result(FAST, (90.0, 100.0)), result(FAST, (9.0, 10.0)), False),
        (result(SLOW, (20.0, 10.0)), result(SLOW, (14.0, 10.0)), True),
        (result(SLOW, (20.0, 10.0)), result(SLOW, (14.0, 10.0), (20.0, 10.0)), False),
        (result(ALONE, (80.0, None)), result(ALONE, (40.0, None)), False),
    ],
)
def test_a_ratio_beyond_all_rounds_of_the_last_table_is_worse(now: Result, last: Result, is_worse: bool) -> None:
    sentences = find_worse([outcome(now)], [outcome(last)])
    assert [each.split(":")[0] for each in sentences] == (["some"] if is_worse else [])


def test_what_is_new_is_not_worse() -> None:
    assert find_worse([outcome(result(FAST, (1.0, 10.0)))], []) == []


@pytest.mark.parametrize("row", [FAST, SLOW, ALONE, PLAIN, COUNT])
def test_samples_and_results_survive_json(row: Row) -> None:
    sample = row.sample(1.0, 2.0)
    assert Sample.of_json(sample.to_json()) == sample
    made = outcome(result(row, (1.0, 2.0)))
    assert Outcome.of_json("some", made.to_json()) == made


def test_the_page_holds_the_table_the_reason_and_the_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TABLE", "RESULTS.md"), ("JSON", "results.json"), ("PLOTS", "plots")):
        monkeypatch.setattr(_report, name, tmp_path / value)
    other = Outcome(name="other", title="Another.", seconds=1.0, results=[], skipped="there is no broker")
    made = [outcome(result(FAST, (8.0, 10.0), (8.2, 10.0)), result(ALONE, (1234.0, None)))]
    _report.write(made, kept=[other])
    page = (tmp_path / "RESULTS.md").read_text()
    assert "| GET, requests/s | 8.1 (8 to 8.2) | 10 (10 to 10): bare | 0.81 (0.8 to 0.82) | ≥ 0.9 times |" in page
    assert "| memory, MB | 1,234 |  |  | ≤ 60 MB | **missed** |" in page
    assert "Missed, GET: keys are checked." in page
    assert "Not measured: there is no broker." in page
    assert "Targets met: 0 of 2." in page
    assert (tmp_path / "plots" / "some.svg").read_text().count("<circle") == 2
    assert [each.name for each in _report.read_last()] == ["other", "some"]
