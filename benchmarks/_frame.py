"""The parts of a measure: rows, the samples of its rounds, their targets, and the table of all measures."""

from __future__ import annotations

import json
import operator
import os
import platform
import re
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, to_builtins

TABLE = Path(__file__).with_name("RESULTS.md")
ROUNDS = TABLE.parent.parent / "build" / "bench"

HEAD = """\
# What was measured

Written by `python3 build.py bench`; each round's figures are in `build/bench/`. Each measure runs in a process of its
own, the hub as `lares run` in another, its limit in the same rounds, one after the other. A figure is the median of
the rounds, the least and the most in brackets; a ratio is taken round by round. Times hold for a row's machine and
day only, ratios for longer. A run replaces the rows that it has measured, and no others.

| measure | what | Lares | limit | ratio | target | | measured |
|---|---|---|---|---|---|---|---|
"""


class Skipped(Exception):
    """Raised by a measure, or by one of its rounds, that this machine cannot run; its text is the reason."""


class Row(Struct, frozen=True, kw_only=True):
    """A line of the table. With a limit next to it, its target is a ratio to that; without, a value in its unit."""

    label: str
    unit: str = ""
    beside: str = ""
    at_most: float | None = None
    at_least: float | None = None

    def sample(self, value: float, limit: float | None = None) -> Sample:
        """Return the sample of one round: the hub's value, and the limit's of the same round."""
        return self, value, limit


Sample = tuple[Row, float, float | None]


class Result(Struct, frozen=True):
    """All rounds of a row."""

    row: Row
    values: list[float]
    limits: list[float]

    def cells(self) -> Iterator[str]:
        """Yield the row's cells between the name of its measure and the day."""
        row = self.row
        ratios = [value / limit for value, limit in zip(self.values, self.limits, strict=False) if limit]
        yield f"{row.label}, {row.unit}".rstrip(", ")
        yield _shown(self.values)
        yield f"{_shown(self.limits)}: {row.beside}" if self.limits else ""
        yield _shown(ratios)
        unit, judged = (" times", ratios) if row.beside else (f" {row.unit}".rstrip(), self.values)
        for sign, bound, is_met in (("≤", row.at_most, operator.le), ("≥", row.at_least, operator.ge)):
            if bound is not None:
                yield f"{sign} {bound:g}{unit}"
                yield "" if not judged else "met" if is_met(statistics.median(judged), bound) else "**missed**"
                return
        yield from ("", "")


def gather(samples: Sequence[Sample]) -> list[Result]:
    """Return the samples by their rows."""
    results: dict[str, Result] = {}
    for row, value, limit in samples:
        result = results.setdefault(row.label, Result(row, [], []))
        result.values.append(value)
        result.limits.extend([] if limit is None else [limit])
    return [*results.values()]


def write(name: str, results: Sequence[Result]) -> None:
    """Keep the figures of every round, and replace the measure's rows in the table."""
    ROUNDS.mkdir(parents=True, exist_ok=True)
    (ROUNDS / f"{name}.json").write_text(json.dumps(to_builtins(results), indent=1) + "\n")
    before = TABLE.read_text() if TABLE.exists() else ""
    rows = dict(map(_named, re.findall(r"^\| (?!measure)\w+ \| .*\|$", before, re.MULTILINE)))
    rows |= dict(_named(f"| {name} | {' | '.join(each.cells())} | {_describe_machine()} |") for each in results)
    TABLE.write_text(HEAD + "\n".join(_in_order(rows)) + "\n")


def _in_order(rows: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Return the lines by measure, in their order."""
    return (rows[key] for key in sorted(rows, key=lambda key: key[0]))


def _named(line: str) -> tuple[tuple[str, str], str]:
    """Return the measure and the label of a line of the table, and the line."""
    _, measure, label, _ = (each.strip() for each in line.split("|", 3))
    return (measure, label), line


def _describe_machine() -> str:
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    day, python = time.strftime("%Y-%m-%d", time.gmtime()), platform.python_version()
    model = models[0] if models else platform.machine()
    return f"{day}, {os.cpu_count()} cores ({model}), load {os.getloadavg()[1]:.1f}, Python {python}"


def _shown(figures: Sequence[float]) -> str:
    """Median, and in brackets the least and the most."""
    if not figures:
        return ""
    middle = _number(statistics.median(figures))
    return middle if len(figures) == 1 else f"{middle} ({_number(min(figures))} to {_number(max(figures))})"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
