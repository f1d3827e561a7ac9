"""Source: the text of one Lua file, its tokens, and the name that people know it by."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from appliance.errors import Invalid

MAX_FILE_BYTES = 1 << 20
"""Bytes of a Lua file; none that a person wrote comes near."""

_MARK = b"\xef\xbb\xbf"
_LAST_RETURN = "\nreturn"
_place_of = attrgetter("line", "column")

_KEYWORDS = """
and break do else elseif end false for function goto if in local nil not or repeat return then true until while
"""
KEYWORDS = frozenset(_KEYWORDS.split())

_TOKEN = re.compile(
    r"""
      (?P<skip>--\[(?P<c>=*+)\[.*?(?:\](?P=c)\]|\Z) | --[^\n]*+)
    | (?P<text>\[(?P<l>=*+)\[.*?(?:\](?P=l)\]|\Z)
        | "(?:[^"\\\n]|\\(?:z\s*+|.))*+"? | '(?:[^'\\\n]|\\(?:z\s*+|.))*+'?)
    | (?P<name>[A-Za-z_]\w*+)
    | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*+)
    | (?P<symbol>\.\.\.|\.\.|::|[=~<>]=|\S)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class LuaToken(NamedTuple):
    """One word (a text with its quotes), its kind (name, text, number, symbol), line from 1 and column from 0."""

    kind: str
    word: str
    line: int
    column: int


NO_TOKEN = LuaToken("", "", 0, 0)
"""What stands before the first token and behind the last."""


def tokens_of(text: bytes) -> Iterator[LuaToken]:
    """Every token but comments."""
    decoded = text.decode(errors="replace")
    line, line_start, counted = 1, 0, 0
    for found in _TOKEN.finditer(decoded):
        start = found.start()
        if newlines := decoded.count("\n", counted, start):
            line += newlines
            line_start = decoded.rindex("\n", counted, start) + 1
        counted = start
        if found.lastgroup is not None and found.lastgroup != "skip":
            yield LuaToken(found.lastgroup, found[0], line, start - line_start)


def windows_of(text: bytes, size: int) -> Iterator[tuple[LuaToken, ...]]:
    """So many tokens in a row, from every place in the text."""
    padding = [NO_TOKEN] * (size - 1)
    window = deque(padding, maxlen=size)
    for token in chain(tokens_of(text), padding):
        window.append(token)
        yield tuple(window)


class Source(Struct, frozen=True, kw_only=True):
    """One file. `name` is its path as configured, `config/scenes/evening.lua`; `text` its bytes."""

    name: str
    text: bytes

    @property
    def chunk(self) -> bytes:
        """The text as Lua takes it: without a byte order mark, and with a first line `#!…` left empty."""
        text = self.text.removeprefix(_MARK)
        return text[len(text.split(b"\n", 1)[0]) :] if text.startswith(b"#") else text

    def line_of(self, *path: str) -> int:
        """The line on which the field is set, `("trigger", "above")` inside `trigger`; 0 if it cannot be seen."""
        found = NO_TOKEN
        for key in path:
            tokens = _fields_of(self.text).get(key, [])
            position = bisect_right(tokens, _place_of(found), key=_place_of)
            if position == len(tokens):
                return 0
            found = tokens[position]
        return found.line

    @property
    def line_of_return(self) -> int:
        """The line of the last `return` that begins one: where the file's table is; 0 if there is none."""
        return self.line_of(_LAST_RETURN)


@lru_cache(maxsize=4)
def _fields_of(text: bytes) -> dict[str, list[LuaToken]]:
    """Where a text sets fields, by name, and as `_LAST_RETURN`, where its last `return` begins a line."""
    fields: defaultdict[str, list[LuaToken]] = defaultdict(list)
    for first, second, third, token in windows_of(text, 4):
        if token.word == "=" and third.kind == "name" and second.word != ".":
            fields[third.word].append(third)
        elif token.word == "=" and third.word == "]" and second.kind == "text" and first.word == "[":
            fields[second.word[1:-1]].append(first)
        elif token.word == "return" and token.column == 0:
            fields[_LAST_RETURN] = [token]
    return fields


def load(file: Path, name: str) -> Source:
    """Read the file; `OSError` if it cannot be read, `Invalid` with a sentence if it is beyond the limit."""
    with file.open("rb") as opened:
        text = opened.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise Invalid("is larger than 1 MiB")
    return Source(name=name, text=text)
