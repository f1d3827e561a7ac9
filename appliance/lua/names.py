"""Names: ids in calls of `ctx`, and globals that no file gives a value, found in the text of Lua files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from appliance.errors import Fault
from appliance.lua.lua_catalog import Describe
from appliance.lua.source import KEYWORDS, NO_TOKEN, LuaToken, Source, tokens_of, windows_of
from appliance.lua_worker.ctx_methods import CTX_METHODS
from appliance.tables.checks import nearest

CALLS: Mapping[str, str] = {
    name: method.names
    for name, method in CTX_METHODS.items()
    if method.names is not None and not method.may_be_absent
}
"""What the first argument of a call names. Calls that answer nil where there is no such thing are not among them."""

_ANY_CALL = re.compile(rb":\s*(?:%b)\b" % "|".join(CALLS).encode())

_PLAIN = re.compile(r"""(["'])([^"'\\]*)\1""")

_MAKERS = frozenset({"_G", "_ENV", "load", "rawset"})
"""Files that use one of these may assign globals in ways that cannot be seen."""

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
"""Sentences that name the nearest name."""

Known = Mapping[str, Mapping[str, bool]]
"""The globals that Lua has, and the members of those that are libraries."""


class CalledName(Struct, frozen=True):
    """A call `ctx:command("desk:light:0", …)` on this line: `kind` is what the name is of."""

    line: int
    call: str
    kind: str
    name: str


def called_names(source: Source) -> Iterator[CalledName]:
    """Every call whose first argument is a text alone, in order."""
    if _ANY_CALL.search(source.text) is None:  # most files have none, and to look for words takes a while
        return
    for colon, call, bracket, name, behind in windows_of(source.chunk, 5):
        if (colon.word, bracket.word) == (":", "(") and call.word in CALLS and behind.word in (",", ")"):
            plain = _PLAIN.fullmatch(name.word) if name.kind == "text" else None
            if plain is not None:
                yield CalledName(name.line, call.word, CALLS[call.word], plain[2])


async def find_undefined(sources: Sequence[Source], describe: Describe) -> list[Fault]:
    """A sentence for each line with such a name; none at all where globals are made in ways that cannot be seen."""
    known = await describe(Source(name="names", text=_NAMES))
    return await asyncio.to_thread(_find, sources, known)


def _find(sources: Sequence[Source], known: Known) -> list[Fault]:
    words = {source: [NO_TOKEN, *tokens_of(source.chunk), NO_TOKEN, NO_TOKEN] for source in sources}
    if any(token.kind == "name" and token.word in _MAKERS for tokens in words.values() for token in tokens):
        return []
    given = {name for tokens in words.values() for name in _given(tokens)}
    every = [*known, *given]
    sentences: dict[tuple[str, str | None], str] = {}
    faults = set()
    for source, tokens in words.items():
        for line, name, member in _undefined(tokens, known, given):
            if (name, member) not in sentences:
                candidates = every if member is None else known[name]
                near = nearest(member or name, candidates) if len(sentences) < MAX_HINTS else None
                sentences[name, member] = _sentence(name, member, near)
            faults.add(Fault(source.name, line, sentences[name, member]))
    return sorted(faults)


def _sentence(name: str, member: str | None, near: str | None) -> str:
    if member is None:
        return f"{name} is given no value in any file, so it is nil" + (f"; did you mean {near}" if near else "")
    return f"{name} has no {member}" + (f"; did you mean {name}.{near}" if near else "")


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


def _undefined(tokens: Sequence[LuaToken], known: Known, given: set[str]) -> Iterator[tuple[int, str, str | None]]:
    """The line where a name is read that has no value, the name, and its member where that is missing."""
    for index, token in enumerate(tokens[:-2]):
        is_read = token.kind == "name" and token.word not in KEYWORDS and token.word not in given
        if not is_read or tokens[index - 1].word in (".", ":", "::", "goto"):
            continue
        name, dot, member = token.word, tokens[index + 1].word, tokens[index + 2].word
        if name not in known:
            yield token.line, name, None
        elif dot == "." and known[name] and member not in known[name] and member not in given:
            yield token.line, name, member
