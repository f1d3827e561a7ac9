"""Finds headers and assignments in the lines of a TOML text, even if the text is invalid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from appliance.tables.fields import Path

_QUOTED = r"\"[^\"]*\"|'[^']*'"
_WORD = rf"(?:[A-Za-z0-9_-]+|{_QUOTED})"
DOTTED_KEY = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
"""The pattern of a key, such as `adapters."my lamp".port`."""

HEADER = re.compile(rf"\s*(\[\[?)((?:{_QUOTED}|[^\"'\[\],=#])+)\]\]?(?!\s*[,\]}}])")
"""Matches the header of a section or of an array's table, even if its name is invalid."""

ASSIGNMENT = re.compile(rf"\s*({DOTTED_KEY})\s*=\s*(.*)")
"""Matches a line with a key and the beginning of its value."""


class TomlLine(NamedTuple):
    """A header or an assignment.

    - `path`: includes the section, and the positions (starting at 1) in arrays of tables.
    - `key`: the name in this line.
    - `value`: the text after the equals sign; None for a header.
    - `start`: the offset of `value`, or of a header's line (`line_start`), in the whole text.
    """

    number: int
    path: Path
    key: tuple[str, ...]
    value: str | None
    start: int
    line_start: int


MAX_KEY_PARTS = 100
"""Maximum number of parts in a key. Lares uses at most five."""


def split_key(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in re.findall(_WORD, dotted))


def scan_lines(text: str) -> Iterator[TomlLine]:
    """Yield the headers and assignments. A line inside a multi-line string or array can be mistaken for an
    assignment."""
    section: Path = ()
    counts: dict[Path, int] = {}
    number, start = 1, 0
    for line in text.splitlines(keepends=True):
        if (header := HEADER.match(line)) and 0 < len(key := split_key(header[2])) <= MAX_KEY_PARTS:
            section = add_positions(key, counts, is_item=header[1] == "[[")
            yield TomlLine(number, section, key, None, start, start)
        elif (assignment := ASSIGNMENT.match(line)) and len(key := split_key(assignment[1])) <= MAX_KEY_PARTS:
            value = assignment[2].rstrip()
            yield TomlLine(number, (*section, *key), key, value, start + assignment.start(2), start)
        number += line.endswith("\n")
        start += len(line)


def line_finder(text: str) -> Callable[[Path], int]:
    """Return a function that finds the line of a section or key, counted from 1. The function returns 0 if only a
    full parser could find the line."""
    lines: dict[Path, int] = {}
    for line in scan_lines(text):
        for length in range(1, len(line.path) + 1):
            lines.setdefault(line.path[:length], line.number)
    return lambda path: lines.get(path, 0)


def add_positions(key: Path, counts: dict[Path, int], *, is_item: bool) -> Path:
    """Return a header's path, including the table's position in each array of tables, counted from 1. `counts`
    contains the number of tables in each array so far."""
    path: Path = ()
    for at, word in enumerate(key, 1):
        path = (*path, word)
        if is_item and at == len(key):
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
