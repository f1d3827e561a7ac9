"""Tokens: the words of a Lua file, in one pass over its text, whatever it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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
    """One word, its kind (name, text, number or symbol), and where it begins: lines count from 1, columns from 0.

    A text has its quotes.
    """

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
    tokens = [*padding, *tokens_of(text), *padding]
    return zip(*(tokens[offset:] for offset in range(size)), strict=False)
