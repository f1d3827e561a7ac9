"""What a measure is made of: rows, the samples of its rounds, and whether the target of a row is met."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

LEEWAY = 0.05
"""A ratio is worse than the last table's only beyond all of its rounds, and by this part more."""


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
        """The target in words; empty where there is none."""
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

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"row": asdict(self.row), "value": self.value, "limit": self.limit}

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Sample:
        """The sample that `to_json` described."""
        return cls(row=Row(**data["row"]), value=data["value"], limit=data["limit"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All rounds of a row."""

    row: Row
    values: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        """Take in what a round gave."""
        self.values.append(sample.value)
        if sample.limit is not None:
            self.limits.append(sample.limit)

    @property
    def ratios(self) -> list[float]:
        """Value to limit, round by round; empty where the row has no limit."""
        return [value / limit for value, limit in zip(self.values, self.limits, strict=False) if limit]

    @property
    def judged(self) -> list[float]:
        """What the target is about: the ratios, or the values where there is no limit."""
        return self.ratios if self.row.beside else self.values

    @property
    def is_met(self) -> bool | None:
        """Whether the median meets the target; None where there is no target."""
        if not self.judged:
            return None
        middle = statistics.median(self.judged)
        if self.row.at_most is not None:
            return middle <= self.row.at_most
        return None if self.row.at_least is None else middle >= self.row.at_least

    def is_worse_than(self, last: Result) -> bool:
        """Whether every round's ratio is worse than the worst of the last table; times alone never are."""
        if not (self.ratios and last.ratios):
            return False
        if self.row.at_most is not None:
            return min(self.ratios) > max(last.ratios) * (1 + LEEWAY)
        return self.row.at_least is not None and max(self.ratios) < min(last.ratios) * (1 - LEEWAY)

    def to_json(self) -> dict[str, Any]:
        """As plain data, figures with four digits."""
        rounded = {name: [float(f"{each:.4g}") for each in getattr(self, name)] for name in ("values", "limits")}
        return {**{key: value for key, value in asdict(self.row).items() if value not in (None, "")}, **rounded}

    @classmethod
    def of_json(cls, data: dict[str, Any]) -> Result:
        """The result that `to_json` described."""
        row = {key: value for key, value in data.items() if key not in ("values", "limits")}
        return cls(row=Row(**row), values=data["values"], limits=data["limits"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a measure: its results in the order of its rows, or why there are none."""

    name: str
    title: str
    seconds: float
    results: list[Result]
    skipped: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        rows = [each.to_json() for each in self.results]
        return {"title": self.title, "seconds": round(self.seconds), "skipped": self.skipped, "rows": rows}

    @classmethod
    def of_json(cls, name: str, data: dict[str, Any]) -> Outcome:
        """The outcome that `to_json` described."""
        results = [Result.of_json(each) for each in data["rows"]]
        return cls(name=name, title=data["title"], seconds=data["seconds"], results=results, skipped=data["skipped"])


def find_worse(outcomes: list[Outcome], last: list[Outcome]) -> list[str]:
    """A sentence for each row whose ratio is worse than in the last table."""
    before = {(outcome.name, each.row.label): each for outcome in last for each in outcome.results}
    return [
        f"{outcome.name}: {each.row.label}: ratio {statistics.median(each.ratios):.2f}, "
        f"in the last table {statistics.median(then.ratios):.2f}"
        for outcome in outcomes
        for each in outcome.results
        if (then := before.get((outcome.name, each.row.label))) and each.is_worse_than(then)
    ]
