"""Splits Lua text into tokens."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import chain

from msgspec import Struct

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


class LuaToken(Struct, frozen=True, gc=False):
    """One token of a file. A token of kind `text` includes the quotes. The other kinds are name, number, and symbol.
    `line` begins at 1, `column` at 0. The garbage collector ignores tokens, because it would stop all threads to
    visit thousands of them."""

    kind: str
    word: str
    line: int
    column: int


NO_TOKEN = LuaToken("", "", 0, 0)
"""A placeholder for a token before the first or after the last token."""


def tokens_of(text: bytes) -> Iterator[LuaToken]:
    """Yield every token except comments."""
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
    """Yield each sequence of `size` consecutive tokens."""
    padding = [NO_TOKEN] * (size - 1)
    window = deque(padding, maxlen=size)
    for token in chain(tokens_of(text), padding):
        window.append(token)
        yield tuple(window)
