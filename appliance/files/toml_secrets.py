"""Replaces the secrets in a TOML text with marks, and replaces marks with secrets. The rest of the text remains
unchanged."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from appliance.files.toml_scan import TomlPart, TomlScanner
from appliance.tables.fields import Path, dotted
from appliance.tables.toml_lines import HEADER, scan_lines, split_key

HIDDEN = "***"
"""The mark that replaces a secret."""

IsSecret = Callable[[Path], bool]

ANY_SECTION = ""
"""Replaces the section's name in the path of a key in a comment, because the comment may apply to any section."""

_NAME = r"[A-Za-z0-9_-]+"
_COMMENT = re.compile(r"#[^\r\n]*")
_REST = re.compile(r"[ \t]*(?:#|[\r\n]|\Z)")
_IN_COMMENT = re.compile(
    rf"""(?<![\w-])["']?({_NAME})["']?[ \t]*=[ \t]*(\"\"\"|\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\[|\{{|[^\s#]+)"""
)
_AS_YAML = re.compile(rf"#[ \t]*({_NAME})[ \t]*:[ \t]*(\S+)")
_HASH = re.compile("#")
_CLOSERS = {'"""': '"""', "'''": "'''", "[": "]", "{": "}"}


class _Secret(Struct, frozen=True):
    """A secret in a text. For a secret in a comment, `number` is the comment's position among the comments with the
    same path, starting at 1. For an active value, `number` is 0."""

    path: Path
    start: int
    end: int
    number: int = 0


def hide(text: str, is_secret: IsSecret) -> str:
    """Replace all secrets in the text with marks."""
    for value in reversed(_secrets_in(text, is_secret)):
        text = f'{text[: value.start]}"{HIDDEN}"{text[value.end :]}'
    return text


def put_back(text: str, stored: str, is_secret: IsSecret) -> tuple[str, list[tuple[int, str]]]:
    """Replace the marks in the text with the secrets of the stored text. Also return a line and a sentence for each
    unknown mark.

    A mark represents the secret of the same section and key, active or in a comment. An unknown mark in a comment
    remains unchanged.
    """
    known = {(each.path, each.number): stored[each.start : each.end] for each in _secrets_in(stored, is_secret)}
    faults = []
    for value in reversed(_secrets_in(text, is_secret)):
        if text[value.start : value.end].strip("\"'") != HIDDEN:
            continue
        if (secret := _find(known, value)) is not None:
            text = text[: value.start] + secret + text[value.end :]
        elif value.number == 0:
            line = text.count("\n", 0, value.start) + 1
            faults.append(
                (line, f"{dotted(value.path)} is {HIDDEN}, but no secret is stored for it; enter the secret")
            )
    return text, faults[::-1]


def _find(known: Mapping[tuple[Path, int], str], value: _Secret) -> str | None:
    """Return the stored secret for a mark. If a person has commented out the line, or removed its comment sign,
    use the secret of the previous line."""
    return next((known[value.path, n] for n in (value.number, 0, 1) if (value.path, n) in known), None)


def _secrets_in(text: str, is_secret: IsSecret) -> list[_Secret]:
    """Return the outermost secret values in text order."""
    scanner = TomlScanner(text)
    try:
        values, comments = [*scanner.values()], scanner.comments
    except (ValueError, RecursionError):
        values, comments = _parts_by_line(text)
    secrets = [_Secret(each.path, each.start, each.end) for each in values if is_secret(each.path)]
    secrets += _Comments(text, is_secret).find(comments)
    found: list[_Secret] = []
    for secret in sorted(secrets, key=lambda each: (each.start, -each.end)):
        if not found or secret.start >= found[-1].end:
            found.append(secret)
    return found


class _Comments:
    """Finds the values of secret keys in comments, including values with several lines."""

    def __init__(self, text: str, is_secret: IsSecret) -> None:
        self._text = text
        self._is_secret = is_secret
        self._counts: dict[Path, int] = {}
        self._section: Path = ()
        self._path: Path = ()
        self._closer = ""

    def find(self, comments: list[TomlPart]) -> Iterator[_Secret]:
        """Yield the secrets in text order."""
        before = TomlPart((), 0, -1)
        for comment in comments:
            if comment.path != before.path or self._text[before.end : comment.start].strip():
                self._section, self._closer = comment.path, ""
            before, line = comment, self._text[comment.start : comment.end].rstrip("\r")
            if self._closer:
                yield from self._inside(comment.start + len(line) - len(line.lstrip("# \t")), comment.start, line)
            elif (header := HEADER.match(line[1:])) is not None:
                self._section = split_key(header[2])
            else:
                yield from self._stated(comment.start, line)

    def _stated(self, start: int, line: str) -> Iterator[_Secret]:
        for stated in [*_IN_COMMENT.finditer(line), *_find_yaml(line)]:
            self._path = (*self._section, stated[1])
            if not (self._is_secret(self._path) or self._is_secret((ANY_SECTION, stated[1]))):
                continue
            if stated[2] in _CLOSERS:
                self._closer = _CLOSERS[stated[2]]
                yield from self._inside(start + stated.end(2), start, line)
                return
            yield self._count(start + stated.start(2), start + stated.end(2))

    def _inside(self, at: int, start: int, line: str) -> Iterator[_Secret]:
        """Yield the remaining lines of a commented value, beginning with the line at `start`."""
        end = line.rfind(self._closer, at - start)
        content = line[at - start : None if end < 0 else end].strip()
        self._closer = self._closer if end < 0 else ""
        if content:
            at = start + line.index(content, at - start)
            yield self._count(at, at + len(content))

    def _count(self, start: int, end: int) -> _Secret:
        number = self._counts[self._path] = self._counts.get(self._path, 0) + 1
        return _Secret(self._path, start, end, number)


def _find_yaml(line: str) -> Iterator[re.Match[str]]:
    """Yield the assignment `# name: value` at the end of the line, if the value is one word.

    In a line with thousands of `#name:`, a regular expression that searches from the start would take hours.
    """
    text = line.rstrip(" \t\r")
    word_start = len(text) - len((text.split() or [""])[-1])
    starts = [text.rfind("#", 0, word_start), *(each.start() for each in _HASH.finditer(text, word_start))]
    for start in starts:
        if start >= 0 and (stated := _AS_YAML.match(text, start)) is not None and stated.end() == len(text):
            yield stated
            return


def _parts_by_line(text: str) -> tuple[list[TomlPart], list[TomlPart]]:
    """Return the values and comments of an invalid TOML text, line by line. A value that is invalid or too long to
    parse ends before the next key or section."""
    values: list[TomlPart] = []
    lines = [*scan_lines(text)]
    sections = [(-1, ()), *((line.start, line.path) for line in lines if line.value is None)]
    scanner, end, budget = TomlScanner(text), 0, len(text)
    for line, next_start in zip(lines, [*(each.line_start for each in lines[1:]), len(text)], strict=False):
        if not line.value or line.start < end:
            continue
        found = _parse(scanner, line.path, line.start) if budget > 0 else []
        budget -= 0 if found else scanner.position - line.start
        if found and _REST.match(text, found[-1].end):
            values += found
            end = found[-1].end
            continue
        end = line.start + len(line.value)
        if line.value.startswith(("[", "{")):
            end = max(end, next_start)
        elif line.value.startswith(('"""', "'''")):
            later = bisect(sections, (line.start,))
            end = sections[later][0] if later < len(sections) else len(text)
        end = line.start + len(text[line.start : end].rstrip())
        values.append(TomlPart(line.path, line.start, end))
        for number, inner in enumerate(_IN_COMMENT.finditer(text, line.start, end), 1):
            path = (*line.path, number, inner[1])
            inner_end = inner.end(2)
            if inner[2] in _CLOSERS:
                parsed = _parse(scanner, path, inner.start(2)) if budget > 0 else []
                budget -= scanner.position - inner.start(2)
                inner_end = parsed[-1].end if parsed else end
            values.append(TomlPart(path, inner.start(2), inner_end))
    comments = [
        TomlPart(sections[bisect(sections, (each.start(),)) - 1][1], each.start(), each.end())
        for each in _COMMENT.finditer(text)
    ]
    return values, comments


def _parse(scanner: TomlScanner, path: Path, start: int) -> list[TomlPart]:
    """Return the value at this position and the values in it. Return an empty list if the value is invalid."""
    try:
        return scanner.values_at(path, start)
    except (ValueError, RecursionError):
        return []
