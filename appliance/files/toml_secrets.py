"""Secrets in a TOML text: hide them, and put them back if a text still has the mark. Comments and order stay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

HIDDEN = "***"
"""The mark in place of a secret."""

KeyPath = tuple[str, ...]
"""The names of the sections and keys around a value; items of arrays have their position, from 0."""

IsSecret = Callable[[KeyPath], bool]

MAX_DEPTH = 32

_WORD = r"[A-Za-z0-9_-]+"
_BASIC = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = r"'[^'\n]*'"
_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(rf"({_WORD}|{_BASIC}|{_LITERAL})[ \t]*")
_STRING = re.compile(rf'"""(?:[^\\]|\\.)*?"{{3,5}}|\'\'\'.*?\'{{3,5}}|{_BASIC}|{_LITERAL}', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")
_HEADER = re.compile(r"\[\[?[ \t]*")
_LINE = re.compile(rf"[ \t]*({_WORD})[ \t]*=[ \t]*([^\r\n]*)")


class _Value(Struct, frozen=True):
    """A value of a text: its path and its place."""

    path: KeyPath
    start: int
    end: int


def hide(text: str, is_secret: IsSecret) -> str:
    """Return the text with the mark in place of every secret."""
    for value in reversed(_secrets_in(text, is_secret)):
        text = f'{text[: value.start]}"{HIDDEN}"{text[value.end :]}'
    return text


def put_back(text: str, stored: str, is_secret: IsSecret) -> tuple[str, list[tuple[int, str]]]:
    """Return the text with the secrets of the stored text in place of its marks; a line and a sentence for each
    unknown one.

    A mark means the secret of the same section and key.
    """
    known = {value.path: stored[value.start : value.end] for value in _secrets_in(stored, is_secret)}
    faults = []
    for value in reversed(_secrets_in(text, is_secret)):
        if text[value.start : value.end].strip("\"'") != HIDDEN:
            continue
        if value.path in known:
            text = text[: value.start] + known[value.path] + text[value.end :]
        else:
            line = text.count("\n", 0, value.start) + 1
            key = ".".join(value.path)
            faults.append((line, f"{key} is {HIDDEN}, and no secret is stored there; write the secret"))
    return text, faults[::-1]


def _secrets_in(text: str, is_secret: IsSecret) -> list[_Value]:
    """Return the values that are secrets, in order; each outermost one only."""
    try:
        values = [*_Scanner(text).values()]
    except (ValueError, RecursionError):
        values = [*_values_by_line(text)]
    found: list[_Value] = []
    for value in sorted(values, key=lambda each: (each.start, -each.end)):
        if is_secret(value.path) and (not found or value.start >= found[-1].end):
            found.append(value)
    return found


def _values_by_line(text: str) -> Iterator[_Value]:
    """Yield the values of a text that is not TOML, as far as single lines show them."""
    section: KeyPath = ()
    start = 0
    for line in text.splitlines(keepends=True):
        if (header := re.match(r"[ \t]*\[\[?[ \t]*([^\]\n]+)\]", line)) is not None:
            section = tuple(word.strip(" \t\"'") for word in header[1].split("."))
        elif (found := _LINE.match(line)) is not None and found[2]:
            yield _Value((*section, found[1]), start + found.start(2), start + found.end(2))
        start += len(line)


class _Scanner:
    """Finds the values of a TOML text; raises `ValueError` if it is not TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counts: dict[KeyPath, int] = {}

    def values(self) -> Iterator[_Value]:
        """Yield every value, tables and arrays too, those inside them as well."""
        section: KeyPath = ()
        self._skip(_SPACE)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                section = self._read_header()
            else:
                yield from self._read_assignment(section, 0)
            self._skip(_SPACE)

    def _read_header(self) -> KeyPath:
        is_item = self._text.startswith("[[", self._at)
        self._skip(_HEADER)
        path = self._read_keys()
        self._take("]]" if is_item else "]")
        if is_item:
            self._counts[path] = self._counts.get(path, -1) + 1
        found: KeyPath = ()
        for word in path:
            found = (*found, word)
            if found in self._counts:
                found = (*found, str(self._counts[found]))
        return found

    def _read_keys(self) -> KeyPath:
        words = [self._read_key()]
        while self._text.startswith(".", self._at):
            self._at += 1
            self._skip(_BLANK)
            words.append(self._read_key())
        return tuple(words)

    def _read_key(self) -> str:
        found = _KEY.match(self._text, self._at)
        if found is None:
            raise ValueError("no key")
        self._at = found.end()
        word = found[1]
        return str(json.loads(word)) if word.startswith('"') else word.strip("'")

    def _read_assignment(self, section: KeyPath, depth: int) -> Iterator[_Value]:
        path = (*section, *self._read_keys())
        self._take("=")
        self._skip(_BLANK)
        yield from self._read_value(path, depth)

    def _read_value(self, path: KeyPath, depth: int) -> Iterator[_Value]:
        start, first = self._at, self._text[self._at : self._at + 1]
        if depth > MAX_DEPTH:
            raise ValueError("too deep")
        if first == "[":
            yield from self._read_items(path, depth, "]")
        elif first == "{":
            yield from self._read_items(path, depth, "}")
        else:
            found = (_STRING if first in ("'", '"') else _SCALAR).match(self._text, self._at)
            if found is None:
                raise ValueError("no value")
            self._at = found.start() + len(found[0].rstrip())
        yield _Value(path, start, self._at)

    def _read_items(self, path: KeyPath, depth: int, end: str) -> Iterator[_Value]:
        self._at += 1
        number = 0
        self._skip(_SPACE)
        while not self._text.startswith(end, self._at):
            if end == "]":
                yield from self._read_value((*path, str(number)), depth + 1)
            else:
                yield from self._read_assignment(path, depth + 1)
            number += 1
            self._skip(_SPACE)
            if not self._text.startswith(end, self._at):
                self._take(",")
                self._skip(_SPACE)
        self._take(end)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = self._at if found is None else found.end()

    def _take(self, word: str) -> None:
        self._skip(_BLANK)
        if not self._text.startswith(word, self._at):
            raise ValueError(f"no {word}")
        self._at += len(word)
