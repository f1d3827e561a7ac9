"""What a measure is made of: rows, the samples of its rounds, their targets, and the table of all of them."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("RESULTS.md")

HEAD = """\
# What was measured

Written by `python3 build.py bench`. Each measure runs in a process of its own, the hub as `lares run` in another, its
limit in the same rounds, one after the other. A figure is the median of the rounds, the least and the most in
brackets; a ratio is taken round by round. Times hold for a section's machine and day only, ratios for longer.
"""


class Skipped(Exception):
    """Raised by a measure that this machine cannot run; its text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table. With a limit beside it, its target is a ratio to that; without, a value in its unit.

    `why` is the reason that was found for a target that is missed; it is printed only then.
    """

    label: str
    unit: str = ""
    beside: str = ""
    at_most: float | None = None
    at_least: float | None = None
    why: str = ""

    def sample(self, value: float, limit: float | None = None) -> Sample:
        """What one round gave: the hub's value and, in the same round, that of the limit."""
        return Sample(row=self, value=value, limit=limit)

    @property
    def target(self) -> str:
        """The target in words; empty if there is none."""
        unit = " times" if self.beside else f" {self.unit}".rstrip()
        if self.at_most is not None:
            return f"≤ {self.at_most:g}{unit}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}{unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One round's figures of a row."""

    row: Row
    value: float
    limit: float | None

    def to_json(self) -> str:
        """As a line of text, from the measure's process to the one that started it."""
        return json.dumps({"row": asdict(self.row), "value": self.value, "limit": self.limit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All rounds of a row."""

    row: Row
    values: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def add(self, data: Any) -> None:
        """Take in what a round gave, as `Sample.to_json` put it."""
        self.values.append(data["value"])
        if data["limit"] is not None:
            self.limits.append(data["limit"])

    @property
    def ratios(self) -> list[float]:
        """Value to limit, round by round; empty if the row has no limit."""
        return [value / limit for value, limit in zip(self.values, self.limits, strict=False) if limit]

    @property
    def verdict(self) -> str:
        """Whether the median meets the target; empty if there is none."""
        judged = self.ratios if self.row.beside else self.values
        if not judged or not self.row.target:
            return ""
        middle, row = statistics.median(judged), self.row
        is_met = middle <= row.at_most if row.at_most is not None else middle >= (row.at_least or 0)
        return "met" if is_met else "**missed**"

    def line(self) -> str:
        """The row of the table."""
        beside = f"{_shown(self.limits)}: {self.row.beside}" if self.limits else ""
        name = f"{self.row.label}, {self.row.unit}".rstrip(", ")
        cells = (name, _shown(self.values), beside, _shown(self.ratios), self.row.target, self.verdict)
        return f"| {' | '.join(cells)} |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a measure: its results in the order of its rows, or why there are none."""

    name: str
    title: str
    results: list[Result]
    skipped: str = ""

    def lines(self) -> Iterator[str]:
        """Its section of the table, also for a terminal."""
        yield f"\n## {self.name}\n\n{self.title}\n"
        if self.skipped:
            yield f"Not measured: {self.skipped}."
        if self.results:
            yield "| | Lares | limit | ratio | target | |\n|---|---|---|---|---|---|"
            yield from (each.line() for each in self.results)
        for each in self.results:
            if each.verdict == "**missed**":
                yield f"\nMissed, {each.row.label}: {each.row.why or 'the reason is not known yet'}."


def write(outcomes: Sequence[Outcome]) -> None:
    """Write the table; of the measures that were not run, what stands there already."""
    sections = {}
    if TABLE.exists():
        for text in TABLE.read_text().split("\n## ")[1:]:
            sections[text.split("\n", 1)[0]] = f"\n## {text.rstrip()}"
    machine = f"\nMachine: {_describe_machine()}."
    sections |= {each.name: "\n".join([*each.lines(), machine]) for each in outcomes}
    text = "\n".join([HEAD.rstrip(), *(sections[name] for name in sorted(sections))])
    TABLE.write_text(text + "\n")


def _describe_machine() -> str:
    text = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in text if line.startswith("model name")]
    return (
        f"{os.cpu_count()} cores ({models[0] if models else platform.machine()}), Linux {platform.release()}, "
        f"load {os.getloadavg()[1]:.1f}, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}"
    )


def _shown(figures: Sequence[float]) -> str:
    """Median, and in brackets the least and the most."""
    if not figures:
        return ""
    middle = _number(statistics.median(figures))
    return middle if len(figures) == 1 else f"{middle} ({_number(min(figures))} to {_number(max(figures))})"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"
