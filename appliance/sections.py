"""Sections of keys: the tables of a TOML file read against the keys that they may hold, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_NEAREST_CHARS = 100

_WORD = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\[\[?\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?\Z")
_ASSIGNMENT = re.compile(rf"({_DOTTED})\s*=")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the check that types its value, and the value it has when left out (None: it must be given).

    A check raises `ValueError` with the rest of a sentence: "must be …, not …".
    """

    check: Callable[[Any], Any]
    default: Any = None
    optional: bool = False


class Reader:
    """Walks a parsed file against tables of keys. `faults` gathers what is wrong, each with its line (0: unknown).

    `elsewhere` are all keys that exist, as dotted names, for those who put one into the wrong section.
    """

    def __init__(self, raw: dict[str, Any], text: str, elsewhere: Iterable[str] = ()) -> None:
        self._raw = raw
        self._lines = _lines_of(text)
        self._elsewhere = _unmistakable(elsewhere)
        self.faults: list[tuple[int, str]] = []

    def line_of(self, path: tuple[str, ...]) -> int:
        """The line of the key, or of the nearest section around it that has one; 0 if there is none."""
        return next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 0)

    def fault(self, path: tuple[str, ...], message: str) -> None:
        """Note what is wrong with this key."""
        self.faults.append((self.line_of(path), f"{_dotted(path)} {message}"))

    def refuse_unknown(self, path: tuple[str, ...], table: dict[str, Any], known: Iterable[str]) -> None:
        """Note every key of the table that is not a known one, with the nearest that is."""
        siblings = list(known)
        for key in table:
            if key not in siblings:
                self.fault((*path, key), f"is not a key of Lares; {self._hint(path, key, siblings)}")

    def section(
        self, path: tuple[str, ...], keys: Mapping[str, Key], *, needed: bool = True, inner: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The section's values, typed, with defaults; a key without one is a fault when the section is needed.

        `inner` are the sections that it may hold beside its keys; they are read by themselves.
        """
        table: Any = self._raw
        for step in path:
            table = table.get(step, {}) if isinstance(table, dict) else {}
        if not isinstance(table, dict):
            self.fault(path, f"must be a section, [{_dotted(path)}], not {shown(table)}")
            return {name: key.default for name, key in keys.items()}
        self.refuse_unknown(path, table, [*keys, *inner])
        return {name: self._value((*path, name), key, table, needed) for name, key in keys.items()}

    def _value(self, path: tuple[str, ...], key: Key, table: dict[str, Any], needed: bool) -> Any:
        if path[-1] not in table:
            if needed and key.default is None and not key.optional:
                self.fault(path, "is missing")
            return key.default
        try:
            return key.check(table[path[-1]])
        except ValueError as fault:
            self.fault(path, str(fault))
            return key.default

    def _hint(self, path: tuple[str, ...], key: str, siblings: list[str]) -> str:
        near = nearest(key, siblings, 0.6)
        if near is None and (far := nearest(key, self._elsewhere, 0.8)) is not None:
            return f"did you mean {self._elsewhere[far]}"
        near = near or nearest(key, siblings, 0.4)
        lead, names = ("there are", siblings) if near is None else ("did you mean", [near])
        return f"{lead} {', '.join(_dotted((*path, name)) for name in names)}"


def line_of(text: str, path: tuple[str, ...]) -> int:
    """The line of a key in a TOML text, counted from 1; 0 if it cannot be found."""
    return _lines_of(text).get(path, 0)


def nearest(word: str, words: Iterable[str], likeness: float = 0.6) -> str | None:
    """The word that is most like the given one, if any is at least so like it (1 is the same).

    None for a word of more than 100 characters: comparing takes the square of its length.
    """
    if len(word) > MAX_NEAREST_CHARS:
        return None
    import difflib  # only a fault asks for it

    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=likeness)), None)


def string(value: Any) -> str:
    """A check: any string."""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {shown(value)}")
    return value


def boolean(value: Any) -> bool:
    """A check: `true` or `false`."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {shown(value)}")
    return value


def whole(low: int, high: int) -> Callable[[Any], int]:
    """A check: a whole number from `low` to `high`, written without a decimal point."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}, not {shown(value)}")
        return value

    return check


def number(low: float, high: float) -> Callable[[Any], float]:
    """A check: a number from `low` to `high`, whole or not."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"must be a number from {low} to {high}, not {shown(value)}")
        return float(value)

    return check


def listed(each: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A check: an array whose every item passes the check given."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"must be an array, not {shown(value)}")
        return tuple(each(item) for item in value)

    return check


def one_of(*words: str) -> Callable[[Any], str]:
    """A check: one of these strings."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {shown(value)}")
        return value

    return check


def shown(value: Any) -> str:
    """A TOML value as a sentence shows it, never longer than a line bears."""
    if isinstance(value, dict | list):
        return "a section" if isinstance(value, dict) else "an array"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(name if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name) else shown(name) for name in path)


def _unmistakable(names: Iterable[str]) -> dict[str, str]:
    """The dotted names by their last part, without those that share it."""
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    return {last: among[0] for last, among in by_last.items() if len(among) == 1}


def _lines_of(text: str) -> dict[tuple[str, ...], int]:
    """The line of each section header and key, as far as one can tell without a second TOML parser."""
    lines: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line.strip()):
            section = path = _path(header[1])
        elif key := _ASSIGNMENT.match(line.strip()):
            path = (*section, *_path(key[1]))
        else:
            continue
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], number)
    return lines


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(word.strip("\"'") for word in re.findall(_WORD, dotted))
