"""Source: the text of one Lua file, and the name that people know it by."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from appliance.errors import Invalid
from appliance.lua.tokens import LuaToken, tokens_of

MAX_FILE_BYTES = 1 << 20
"""Bytes of a Lua file; none that a person wrote comes near."""

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file. `name` is its path as configured, `config/scenes/evening.lua`; `text` what it holds."""

    name: str
    text: bytes

    @property
    def chunk(self) -> bytes:
        """The text as Lua takes it: without a byte order mark, and with a first line `#!…` left empty."""
        text = self.text.removeprefix(_MARK)
        return text[len(text.split(b"\n", 1)[0]) :] if text.startswith(b"#") else text

    def line_of(self, *path: str) -> int:
        """The line on which the field is set, `("trigger", "above")` inside `trigger`; 0 if it cannot be seen."""
        index, at = _index_of(self.text), -1
        for key in path:
            starts = index.fields.get(key, [])
            position = bisect_right(starts, at)
            if position == len(starts):
                return 0
            at = starts[position]
        return bisect_right(index.lines, at) + 1

    @property
    def line_of_return(self) -> int:
        """The line of the last `return` that begins one: where the file's table is; 0 if there is none."""
        index = _index_of(self.text)
        return 0 if index.last_return is None else bisect_right(index.lines, index.last_return) + 1


@dataclass(frozen=True, slots=True)
class _Index:
    """Where a text sets fields, by name, where its lines end, and where its last `return` begins a line."""

    fields: dict[str, list[int]]
    lines: list[int]
    last_return: int | None


@lru_cache(maxsize=4)
def _index_of(raw: bytes) -> _Index:
    text = raw.decode(errors="replace")
    fields: defaultdict[str, list[int]] = defaultdict(list)
    last_return = None
    none = LuaToken("", "", 0)
    first, second, third = none, none, none
    for token in tokens_of(text):
        if token.word == "=" and third.kind == "name" and second.word != ".":
            fields[third.word].append(third.start)
        elif token.word == "=" and third.word == "]" and second.kind == "text" and first.word == "[":
            fields[second.word[1:-1]].append(first.start)
        elif token.word == "return" and text[token.start - 1 : token.start] in ("", "\n"):
            last_return = token.start
        first, second, third = second, third, token
    return _Index(fields, [found.start() for found in re.finditer("\n", text)], last_return)


def load(file: Path, name: str) -> Source:
    """Read the file; `OSError` if it cannot be read, `Invalid` with a sentence if it is beyond the limit."""
    with file.open("rb") as opened:
        text = opened.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise Invalid("is larger than 1 MiB")
    return Source(name=name, text=text)
