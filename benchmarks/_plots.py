"""A plot of a measure as SVG: for each row with a target, its rounds beside the target."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks._frame import Outcome, Result

WIDTH, LEFT, ROW_HEIGHT = 860, 440, 26
GOOD, BAD, INK = "#1a7f5a", "#c0392b", "#444"
DOUBLINGS = 3
"""How far the axis goes to either side of the target: factors of 2 to this power."""


def draw(outcome: Outcome, file: Path) -> bool:
    """Draw the rows of the measure that have a target; whether there is any."""
    rows = [each for each in outcome.results if each.is_met is not None]
    if not rows:
        return False
    height = ROW_HEIGHT * (len(rows) + 2)
    middle = _x(0.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}"><rect width="100%" height="100%" fill="white"/>',
        f'<rect x="{LEFT}" width="{middle - LEFT}" height="{height - ROW_HEIGHT}" fill="{GOOD}" opacity="0.07"/>',
    ]
    for power in range(-DOUBLINGS, DOUBLINGS + 1):
        at = _x(float(power))
        name = "target" if power == 0 else f"×{2.0**power:g}"
        parts.append(f'<line x1="{at}" x2="{at}" y2="{height - ROW_HEIGHT}" stroke="#ccc"/>')
        parts.append(f'<text x="{at}" y="{height - 8}" text-anchor="middle">{name}</text>')
    for number, each in enumerate(rows):
        parts += _row(each, ROW_HEIGHT * (number + 0.9))
    file.write_text("\n".join([*parts, "</svg>\n"]))
    return True


def _row(result: Result, y: float) -> list[str]:
    """The label, a line from the best to the worst round, and a point for the median."""
    distances = sorted(_distance(result, each) for each in result.judged)
    colour = GOOD if result.is_met else BAD
    first, last, middle = _x(distances[0]), _x(distances[-1]), _x(statistics.median(distances))
    return [
        f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(result.row.label)}</text>',
        f'<line x1="{first}" x2="{last}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3" opacity="0.5"/>',
        f'<circle cx="{middle}" cy="{y}" r="5" fill="{colour}"/>',
    ]


def _distance(result: Result, figure: float) -> float:
    """How many doublings worse than its target a figure is; below zero where it is better."""
    row = result.row
    goal = row.at_most if row.at_most is not None else row.at_least
    assert goal is not None
    if figure <= 0 or goal <= 0:
        return -DOUBLINGS if result.is_met else DOUBLINGS
    return math.log2(figure / goal) * (1 if row.at_most is not None else -1)


def _x(distance: float) -> float:
    """Where on the axis so many doublings lie; what is beyond its ends is drawn at them."""
    held = min(max(distance, -DOUBLINGS), DOUBLINGS)
    return round(LEFT + 20 + (WIDTH - LEFT - 40) * (held + DOUBLINGS) / (2 * DOUBLINGS), 1)
