"""Finds the lines of keys and headers in a TOML text without a full parser."""

from __future__ import annotations

import re
from collections.abc import Callable

from appliance.tables.fields import Path

_WORD = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
DOTTED_KEY = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
"""The pattern of a key, such as `adapters."my lamp".port`."""

_HEADER = re.compile(rf"\[\[?\s*({DOTTED_KEY})\s*\]\]?\s*(?:#.*)?\Z")
_ASSIGNMENT = re.compile(rf"({DOTTED_KEY})\s*=")


def split_key(dotted: str) -> tuple[str, ...]:
    """Split a dotted key into its parts, without quotes."""
    return tuple(word.strip("\"'") for word in re.findall(_WORD, dotted))


def line_finder(text: str) -> Callable[[Path], int]:
    """Return a function that finds the line of a section or key. Lines begin at 1. The function returns 0 if only a
    full parser could find the line."""
    lines: dict[Path, int] = {}
    section: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line.strip()):
            section = path = _in_arrays(split_key(header[1]), counts, is_item=line.strip().startswith("[["))
        elif key := _ASSIGNMENT.match(line.strip()):
            path = (*section, *split_key(key[1]))
        else:
            continue
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], number)
    return lambda path: lines.get(path, 0)


def _in_arrays(path: Path, counts: dict[Path, int], *, is_item: bool) -> Path:
    """Return a header's path, including the table's position in each array of tables."""
    found: Path = ()
    for at, word in enumerate(path, 1):
        found = (*found, word)
        if is_item and at == len(path):
            counts[found] = counts.get(found, 0) + 1
        if found in counts:
            found = (*found, counts[found])
    return found
