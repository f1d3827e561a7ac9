"""The parts of a measure: rows, samples of its rounds, targets, and the two tables."""

from __future__ import annotations

import json
import operator
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, to_builtins

TABLE = Path(__file__).with_name("RESULTS.md")
"""The name of the table with the figures that users notice."""

DETAILS = TABLE.with_name("DETAILS.md")
"""The table of all other rows."""

ROUNDS = TABLE.parent.parent / "build" / "bench"

HEADS = {
    TABLE: """\
# Figures that users notice

`python3 build.py bench` measures these figures and many others ([DETAILS.md](DETAILS.md)).

The floor is a minimal program that exchanges the same bytes, but manages no home. [Node-RED](https://nodered.org)
runs a flow that does the same task, but has no keys, durable state, or history.
""",
    DETAILS: """\
# All other figures

[RESULTS.md](RESULTS.md) contains the figures that users notice.
""",
}
EXPLANATION = """
Each figure is the median of several rounds. The lowest and the highest figure are in brackets. Each round measures
the hub, the floor, and Node-RED in separate processes, and computes the ratio of the hub's figure to the floor's.

Compare times only if they were measured on the same machine and on the same day. Ratios from different days are also
comparable. The last table contains the start time of Python (`python -c pass`), which shows the machine's speed. A
new run of a measure replaces all of its rows.

| measure | what | Lares | floor | ratio | target | | Node-RED |
|---|---|---|---|---|---|---|---|
"""
MACHINES = """
| measure | measured |
|---|---|
"""


class Skipped(Exception):
    """Raised if a measure or a round cannot run on this machine. The text is the reason."""


class Row(Struct, frozen=True, kw_only=True):
    """One line of a table.

    The floor of a row is the cost of the same work in a minimal program. If a row has a floor, its target is the
    ratio of the hub's figure to the floor, unless `is_absolute` is set. If a row has no floor, its target is a value.
    """

    label: str
    unit: str = ""
    floor: str = ""
    at_most: float | None = None
    at_least: float | None = None
    is_absolute: bool = False
    is_felt: bool = False
    """Whether users notice this figure. RESULTS.md contains the figures that users notice."""

    def sample(self, value: float, floor: float | None = None, node_red: float | None = None) -> Sample:
        """Return the sample of one round: the figures of the hub, of the minimal program for comparison (the floor),
        and of Node-RED if Node-RED can do the same work."""
        return self, value, floor, node_red


Sample = tuple[Row, float, float | None, float | None]


class Result(Struct, frozen=True):
    """All rounds of a row."""

    row: Row
    values: list[float]
    floors: list[float]
    node_red: list[float]

    def cells(self) -> Iterator[str]:
        """Yield the row's cells between the measure's name and the day."""
        row = self.row
        ratios = [value / floor for value, floor in zip(self.values, self.floors, strict=False) if floor]
        yield f"{row.label}, {row.unit}".rstrip(", ")
        yield _shown(self.values)
        yield f"{_shown(self.floors)}: {row.floor}" if self.floors else ""
        yield _shown(ratios)
        is_ratio = row.floor and not row.is_absolute
        yield from self._judge(ratios if is_ratio else self.values, " times" if is_ratio else f" {row.unit}".rstrip())
        yield _shown(self.node_red)

    def _judge(self, figures: Sequence[float], unit: str) -> tuple[str, str]:
        """Return the target, and whether it is met."""
        for sign, bound, is_met in (
            ("≤", self.row.at_most, operator.le),
            ("≥", self.row.at_least, operator.ge),
        ):
            if bound is not None:
                verdict = "" if not figures else "met" if is_met(statistics.median(figures), bound) else "**missed**"
                return f"{sign} {bound:g}{unit}", verdict
        return "", ""


def gather(samples: Sequence[Sample]) -> list[Result]:
    """Group the samples by row."""
    results: dict[str, Result] = {}
    for row, *figures in samples:
        result = results.setdefault(row.label, Result(row, [], [], []))
        for kept, figure in zip((result.values, result.floors, result.node_red), figures, strict=True):
            kept.extend([] if figure is None else [figure])
    return [*results.values()]


def write(name: str, results: Sequence[Result]) -> None:
    """Store the figures of every round, and replace the measure's rows in both tables."""
    ROUNDS.mkdir(parents=True, exist_ok=True)
    (ROUNDS / f"{name}.json").write_text(json.dumps(to_builtins(results), indent=1) + "\n")
    machine = _describe_machine()
    for table, head in HEADS.items():
        before = re.findall(r"^\| (?!measure).*\|$", table.read_text(), re.MULTILINE) if table.exists() else []
        lines = [each for each in before if not each.startswith(f"| {name} |")]
        figures = [each.cells() for each in results if each.row.is_felt == (table == TABLE)]
        lines += [f"| {name} | {' | '.join(each)} |" for each in (*figures, *([machine] for _ in figures[:1]))]
        table.write_text(_format_tables(head, lines))


def _format_tables(head: str, lines: Sequence[str]) -> str:
    """Return the text of RESULTS.md. If a row has only two cells, it belongs to the second table."""
    ordered = sorted(lines, key=lambda line: line.split("|")[1])
    rows, machines = ([each for each in ordered if (each.count("|") == 3) is short] for short in (False, True))
    return "\n".join((head + EXPLANATION + "\n".join(rows), MACHINES + "\n".join(machines), ""))


def _describe_machine() -> str:
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    day, python = time.strftime("%Y-%m-%d", time.gmtime()), platform.python_version()
    model = models[0] if models else platform.machine()
    load = f"load {os.getloadavg()[1]:.1f}"
    return f"{day}, {os.cpu_count()} cores ({model}), {load}, Python {python} starts in {_start_of_python():.0f} ms"


def _start_of_python() -> float:
    times = []
    for _ in range(10):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(1000 * (time.perf_counter() - began))
    return min(times)


def _shown(figures: Sequence[float]) -> str:
    """Format the median, with the minimum and the maximum in brackets."""
    if not figures:
        return ""
    middle = _number(statistics.median(figures))
    return middle if len(figures) == 1 else f"{middle} ({_number(min(figures))} to {_number(max(figures))})"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
