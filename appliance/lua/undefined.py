"""Undefined names: globals that a file uses and nobody gives a value, which is most often a typo inside `execute`."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from appliance.errors import Fault
from appliance.lua.lua_catalog import Describe
from appliance.lua.source import Source
from appliance.lua.tokens import KEYWORDS, LuaToken, tokens_of
from appliance.tables.checks import nearest

_MAKERS = frozenset({"_G", "_ENV", "load", "rawset"})
"""Whoever uses one of these may give values to globals in ways that cannot be seen."""

_NAMES = b"""
local libraries = {}
for name, value in pairs(_G) do
  local members = {}
  if type(value) == 'table' and value ~= _G then for member in pairs(value) do members[member] = true end end
  libraries[name] = members
end
return libraries"""

_LISTS = frozenset({"local", "for", "function"})
_BETWEEN = frozenset({",", "(", ".", ":", "<", ">"})
"""What begins a list of names that are declared, and what may stand between them."""

MAX_HINTS = 20
"""Sentences that tell the nearest name."""

_END = LuaToken("", "", 0)


async def find_undefined(sources: Sequence[Source], describe: Describe) -> list[Fault]:
    """A sentence for each line with such a name; none at all where globals are made in ways that cannot be seen."""
    known = await describe(Source(name="names", text=_NAMES))
    return await asyncio.to_thread(_find, sources, known)


def _find(sources: Sequence[Source], known: Mapping[str, Mapping[str, bool]]) -> list[Fault]:
    texts = {source: source.chunk.decode(errors="replace") for source in sources}
    words = {source: [_END, _END, *tokens_of(text), _END, _END] for source, text in texts.items()}
    if any(token.kind == "name" and token.word in _MAKERS for tokens in words.values() for token in tokens):
        return []
    given = {name for tokens in words.values() for name in _given(tokens)}
    hints = _Hints(known, given)
    faults = set()
    for source, tokens in words.items():
        lines = [found.start() for found in re.finditer("\n", texts[source])]
        for start, name, member in _undefined(tokens, known, given):
            faults.add(Fault(source.name, bisect_right(lines, start) + 1, hints.sentence(name, member)))
    return sorted(faults)


class _Hints:
    """Sentences about names, each made once; the first of them tell the nearest name that there is."""

    def __init__(self, known: Mapping[str, Mapping[str, bool]], given: set[str]) -> None:
        self._known = known
        self._all = [*known, *given]
        self._sentences: dict[tuple[str, str | None], str] = {}

    def sentence(self, name: str, member: str | None) -> str:
        """What is wrong with a global, or with a member of one that Lua knows."""
        if (name, member) not in self._sentences:
            if member is None:
                sentence = f"{name} is given no value in any file, so it is nil{self._near(name, self._all, '')}"
            else:
                sentence = f"{name} has no {member}{self._near(member, self._known[name], f'{name}.')}"
            self._sentences[name, member] = sentence
        return self._sentences[name, member]

    def _near(self, name: str, names: Iterable[str], prefix: str) -> str:
        near = nearest(name, names) if len(self._sentences) < MAX_HINTS else None
        return "" if near is None else f"; did you mean {prefix}{near}"


def _given(tokens: Sequence[LuaToken]) -> Iterator[str]:
    """The names that are given values anywhere: variables, parameters, fields of any table, functions."""
    is_listing = False
    for index, token in enumerate(tokens):
        if token.word in _LISTS:
            is_listing = True
        elif token.kind == "name" and token.word not in KEYWORDS:
            is_listing = is_listing and (tokens[index - 1].kind != "name" or tokens[index - 1].word in _LISTS)
            if is_listing:
                yield token.word
        elif token.word not in _BETWEEN:
            is_listing = False
        if token.word == "=":
            yield from _assigned(tokens, index)


def _assigned(tokens: Sequence[LuaToken], index: int) -> Iterator[str]:
    """The names in front of an equals sign, which may be a list of them."""
    while tokens[index - 1].kind == "name" and tokens[index].word in ("=", ","):
        yield tokens[index - 1].word
        index -= 2


def _undefined(
    tokens: Sequence[LuaToken], known: Mapping[str, Mapping[str, bool]], given: set[str]
) -> Iterator[tuple[int, str, str | None]]:
    """Where a name is read that has no value, the name, and the member where it is that which is missing."""
    for index, token in enumerate(tokens[:-2]):
        is_read = token.kind == "name" and token.word not in KEYWORDS and token.word not in given
        if not is_read or tokens[index - 1].word in (".", ":", "::", "goto"):
            continue
        name, dot, member = token.word, tokens[index + 1].word, tokens[index + 2].word
        if name not in known:
            yield token.start, name, None
        elif dot == "." and known[name] and member not in known[name] and member not in given:
            yield token.start, name, member
