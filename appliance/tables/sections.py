"""Sections of a TOML file: the line of each key, and the key that may be meant by one that does not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from appliance.tables.checks import nearest
from appliance.tables.fields import Path

_WORD = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\[\[?\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?\Z")
_ASSIGNMENT = re.compile(rf"({_DOTTED})\s*=")


def hint_of_keys(section: str, elsewhere: Iterable[str]) -> Callable[[str, list[str]], str]:
    """Make the hint for a key that the section does not have: which of its keys may be meant.

    `elsewhere` are the dotted names of all keys of the file, for keys that were put into the wrong section.
    """
    prefix = f"{section}." if section else ""

    def hint(key: str, siblings: list[str]) -> str:
        near = nearest(key, siblings, 0.6)
        if near is None:
            by_last = _unique_by_last_part(elsewhere)
            if (far := nearest(key, by_last, 0.8)) is not None:
                return f"did you mean {by_last[far]}"
        near = near or nearest(key, siblings, 0.4)
        lead, names = ("there are", siblings) if near is None else ("did you mean", [near])
        return f"{lead} {', '.join(prefix + name for name in names)}"

    return hint


def _unique_by_last_part(names: Iterable[str]) -> dict[str, str]:
    """The dotted names by their last part, without those that share it."""
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    return {last: among[0] for last, among in by_last.items() if len(among) == 1}


def line_finder(text: str) -> Callable[[Path], int]:
    """Make the look-up of the line of a section or key, from 1; 0 where only a full TOML parser could find it."""
    lines: dict[Path, int] = {}
    section: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line.strip()):
            section = path = _in_arrays(_path(header[1]), counts, is_item=line.strip().startswith("[["))
        elif key := _ASSIGNMENT.match(line.strip()):
            path = (*section, *_path(key[1]))
        else:
            continue
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], number)
    return lambda path: lines.get(path, 0)


def _in_arrays(path: Path, counts: dict[Path, int], *, is_item: bool) -> Path:
    """The path of a header with the number of the table that it stands in, or is, in each array of tables."""
    found: Path = ()
    for at, word in enumerate(path, 1):
        found = (*found, word)
        if is_item and at == len(path):
            counts[found] = counts.get(found, 0) + 1
        if found in counts:
            found = (*found, counts[found])
    return found


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in re.findall(_WORD, dotted))
