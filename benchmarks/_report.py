"""The table of all measures: printed, written to RESULTS.md beside its plots, and kept as JSON for the next check."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks._frame import Outcome, Result
from benchmarks._plots import draw

FOLDER = Path(__file__).parent
TABLE, JSON, PLOTS = FOLDER / "RESULTS.md", FOLDER / "results.json", FOLDER / "plots"

HEAD = """\
# What was measured

Written by `python3 build.py bench`; `python3 build.py bench --check` compares ratios with this table. Each measure
runs in a process of its own, the hub as `lares run` in another, its limit in the same rounds, one after the other.
A figure is the median of the rounds, the least and the most in brackets; a ratio is taken round by round. Times hold
for this machine and day only, ratios for longer. What was found and changed stands in [NOTES.md](NOTES.md).
"""


def lines_of(outcome: Outcome) -> Iterator[str]:
    """The rows of a measure, for a terminal."""
    if outcome.skipped:
        yield f"  not measured: {outcome.skipped}"
    for each in outcome.results:
        beside = f" · {each.row.beside} {_shown(each.limits)} · ratio {_shown(each.ratios)}" if each.ratios else ""
        goal = f" · {each.row.target}: {_verdict(each)}" if each.row.target else ""
        yield f"  {each.row.label}: {_shown(each.values)} {each.row.unit}{beside}{goal}"
    yield f"  ({outcome.seconds:.0f} s)"


def read_last() -> list[Outcome]:
    """What the last table holds; nothing where there is none."""
    if not JSON.exists():
        return []
    measures = json.loads(JSON.read_text())["measures"]
    return [Outcome.of_json(name, data) for name, data in measures.items()]


def write(outcomes: Sequence[Outcome], kept: Sequence[Outcome]) -> None:
    """Write table, JSON and plots; of the measures that were not run, what is `kept`."""
    merged = {each.name: each for each in (*kept, *outcomes)}
    ordered = [merged[name] for name in sorted(merged)]
    machine = describe_machine()
    measures = {each.name: each.to_json() for each in ordered}
    JSON.write_text(json.dumps({"machine": machine, "measures": measures}, indent=1, ensure_ascii=False) + "\n")
    PLOTS.mkdir(exist_ok=True)
    for old in PLOTS.glob("*.svg"):
        old.unlink()
    drawn = {each.name: PLOTS / f"{each.name}.svg" for each in ordered if draw(each, PLOTS / f"{each.name}.svg")}
    TABLE.write_text("\n".join(_page(ordered, machine, drawn)) + "\n")


def describe_machine() -> str:
    """A sentence about this machine."""
    text = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in text if line.startswith("model name")), "processor unknown"
    )
    cores = sum(line.startswith("processor") for line in text)
    lines = Path("/proc/meminfo").read_text().splitlines()
    memory = int(next(line.split()[1] for line in lines if line.startswith("MemTotal"))) / 1e6
    given = ["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(given, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return (
        f"{cores} cores ({model}), {memory:.0f} GB of memory, Linux {platform.release()}, "
        f"load {os.getloadavg()[1]:.1f}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}"
    )


def _page(outcomes: Sequence[Outcome], machine: str, drawn: dict[str, Path]) -> Iterator[str]:
    results = [each for outcome in outcomes for each in outcome.results if each.is_met is not None]
    yield HEAD
    yield f"Machine: {machine}.\n"
    yield f"Targets met: {sum(each.is_met is True for each in results)} of {len(results)}."
    for outcome in outcomes:
        yield f"\n## {outcome.name}\n\n{outcome.title}\n"
        if outcome.skipped:
            yield f"Not measured: {outcome.skipped}.\n"
        if outcome.results:
            yield "| | Lares | limit | ratio | target | |\n|---|---|---|---|---|---|"
        for each in outcome.results:
            beside = f"{_shown(each.limits)}: {each.row.beside}" if each.limits else ""
            cells = (f"{each.row.label}, {each.row.unit}".rstrip(", "), _shown(each.values), beside)
            yield f"| {' | '.join((*cells, _shown(each.ratios), each.row.target, _verdict(each)))} |"
        missed = [each for each in outcome.results if each.is_met is False]
        for each in missed:
            yield f"\nMissed, {each.row.label}: {each.row.why or 'the reason is not known yet'}."
        if outcome.name in drawn:
            yield f"\n![{outcome.name}](plots/{drawn[outcome.name].name})"


def _verdict(result: Result) -> str:
    return {True: "met", False: "**missed**", None: ""}[result.is_met]


def _shown(figures: Sequence[float]) -> str:
    """Median, and in brackets the least and the most."""
    if not figures:
        return ""
    middle = _number(statistics.median(figures))
    return middle if len(figures) == 1 else f"{middle} ({_number(min(figures))} to {_number(max(figures))})"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
