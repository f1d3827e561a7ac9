"""Tokens: the words of a Lua file, in one pass over its text, whatever it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class LuaToken:
    """One word: `kind` is name, text, number or symbol; `start` is where it begins. A text has its quotes."""

    kind: str
    word: str
    start: int


def tokens_of(text: str) -> Iterator[LuaToken]:
    """Every token but comments."""
    for found in _TOKEN.finditer(text):
        kind = _kind_of(found)
        if kind != "skip":
            yield LuaToken(kind, found[0], found.start())


def _kind_of(found: re.Match[str]) -> str:
    return next(kind for kind in ("name", "symbol", "number", "text", "skip") if found[kind] is not None)
