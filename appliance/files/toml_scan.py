"""Finds the positions of values and section headers in a TOML text, so that a change preserves the rest of the
text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from appliance.tables.fields import Path
from appliance.tables.toml_lines import MAX_KEY_PARTS, add_positions

MAX_DEPTH = 32

_WORD = r"[A-Za-z0-9_-]+"
_BASIC = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = r"'[^'\n]*'"
_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_COMMENT = re.compile(r"#[^\n]*")
_KEY = re.compile(rf"({_WORD}|{_BASIC}|{_LITERAL})[ \t]*")
_STRING = re.compile(rf'"""(?:[^\\]|\\.)*?"{{3,5}}|\'\'\'.*?\'{{3,5}}|{_BASIC}|{_LITERAL}', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")
_HEADER = re.compile(r"\[\[?[ \t]*")


class TomlPart(Struct, frozen=True):
    """A value, a header, or a comment, with its path and its position in the text. The path contains the names of
    sections and keys, and indices in arrays, starting at 1."""

    path: Path
    start: int
    end: int


class TomlScanner:
    """Finds the parts of a TOML text. Raises `ValueError` if the text is not TOML.

    `position` is the end of the text that was read. `headers` and `comments` are complete after a call of `values`.
    The path of a comment is the path of its section.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.position = len(text) - len(text.removeprefix("\ufeff"))
        self._counts: dict[Path, int] = {}
        self._section: Path = ()
        self.headers: list[TomlPart] = []
        self.comments: list[TomlPart] = []

    def values(self) -> Iterator[TomlPart]:
        """Yield all values, including tables, arrays, and the values in them."""
        self._skip_space()
        while self.position < len(self._text):
            if self._text[self.position] == "[":
                self._section = self._read_header()
            else:
                yield from self._read_assignment(self._section, 0)
            self._skip_space()

    def values_at(self, path: Path, start: int) -> list[TomlPart]:
        """Return the value at this position, preceded by the values in it. Raise `ValueError` if the value is
        invalid."""
        self.position = start
        return [*self._read_value(path, 0)]

    def _read_header(self) -> Path:
        start, is_item = self.position, self._text.startswith("[[", self.position)
        self._skip(_HEADER)
        path = self._read_keys()
        self._take("]]" if is_item else "]")
        found = add_positions(path, self._counts, is_item=is_item)
        self.headers.append(TomlPart(found, start, self.position))
        return found

    def _read_keys(self) -> Path:
        words = [self._read_key()]
        while self._text.startswith(".", self.position):
            self.position += 1
            self._skip(_BLANK)
            words.append(self._read_key())
            if len(words) > MAX_KEY_PARTS:
                raise ValueError("a key has too many parts")
        return tuple(words)

    def _read_key(self) -> str:
        found = _KEY.match(self._text, self.position)
        if found is None:
            raise ValueError("no key")
        self.position = found.end()
        word = found[1]
        return str(json.loads(word)) if word.startswith('"') else word.strip("'")

    def _read_assignment(self, section: Path, depth: int) -> Iterator[TomlPart]:
        path = (*section, *self._read_keys())
        self._take("=")
        self._skip(_BLANK)
        yield from self._read_value(path, depth)

    def _read_value(self, path: Path, depth: int) -> Iterator[TomlPart]:
        start, first = self.position, self._text[self.position : self.position + 1]
        if depth > MAX_DEPTH:
            raise ValueError("too deep")
        if first == "[":
            yield from self._read_items(path, depth, "]")
        elif first == "{":
            yield from self._read_items(path, depth, "}")
        else:
            found = (_STRING if first in ("'", '"') else _SCALAR).match(self._text, self.position)
            if found is None:
                raise ValueError("no value")
            self.position = found.start() + len(found[0].rstrip())
        yield TomlPart(path, start, self.position)

    def _read_items(self, path: Path, depth: int, end: str) -> Iterator[TomlPart]:
        self.position += 1
        number = 1
        self._skip_space()
        while not self._text.startswith(end, self.position):
            if end == "]":
                yield from self._read_value((*path, number), depth + 1)
            else:
                yield from self._read_assignment(path, depth + 1)
            number += 1
            self._skip_space()
            if not self._text.startswith(end, self.position):
                self._take(",")
                self._skip_space()
        self._take(end)

    def _skip_space(self) -> None:
        start = self.position
        self._skip(_SPACE)
        if "#" in self._text[start : self.position]:
            found = _COMMENT.finditer(self._text, start, self.position)
            self.comments += [TomlPart(self._section, each.start(), each.end()) for each in found]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self.position)
        self.position = self.position if found is None else found.end()

    def _take(self, word: str) -> None:
        self._skip(_BLANK)
        if not self._text.startswith(word, self.position):
            raise ValueError(f"no {word}")
        self.position += len(word)
