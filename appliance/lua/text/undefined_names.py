"""Finds undefined globals, and unknown methods of `ctx`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct

from appliance.errors import Fault
from appliance.lua.text.source import Source, by_text
from appliance.lua.text.tokens import KEYWORDS, NO_TOKEN, LuaToken, tokens_of
from appliance.lua_worker.ctx_methods import KIND_METHODS, SCRIPT_METHODS
from appliance.tables.checks import nearest, suggest

_MAKERS = frozenset({"_G", "_ENV", "load", "rawset"})
"""Names whose use may mean that the file assigns globals dynamically."""

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
"""Keywords at the beginning of a declaration, and separators between the declared names."""

MAX_HINTS = 20
"""Maximum number of faults with a hint, because a search for similar names is slow."""

Known = Mapping[str, Mapping[str, bool]]
"""Lua's globals with their members. Only libraries have members."""

_KNOWN: dict[bool, Known] = {}
"""A cache of the known globals. The key is True for adapter kinds, and False for other files."""


async def find_undefined(
    sources: Sequence[Source],
    describe: Callable[[Source], Awaitable[Mapping[str, Any]]],
    *,
    read_others: Callable[[], Sequence[Source]] = tuple,
    is_kind: bool = False,
) -> list[Fault]:
    """Return a fault for each undefined name and each unknown `ctx` method in `sources`.

    Names that other files define are known, but other files are not checked. `read_others` runs on a thread, and only
    if `sources` do not define all names. `is_kind` selects the methods of kinds of adapter. Return no faults if any
    file may assign globals dynamically.
    """
    methods = KIND_METHODS if is_kind else SCRIPT_METHODS
    if (known := _KNOWN.get(is_kind)) is None:
        known = _KNOWN[is_kind] = await describe(Source(name="names", text=_NAMES))
    return await asyncio.to_thread(_find, sources, read_others, known, methods)


class _Names(Struct, frozen=True):
    """The names that a file assigns, and the members that it adds to libraries. `makes_globals` means that the
    file may assign globals dynamically."""

    given: frozenset[str]
    extended: frozenset[str]
    makes_globals: bool

    def __len__(self) -> int:
        return len(self.given) + len(self.extended)


def _padded(source: Source) -> list[LuaToken]:
    return [NO_TOKEN, *tokens_of(source.chunk), NO_TOKEN, NO_TOKEN]


@by_text
def _names_in(source: Source) -> _Names:
    tokens = _padded(source)
    makes_globals = any(token.kind == "name" and token.word in _MAKERS for token in tokens)
    return _Names(frozenset(_given(tokens)), frozenset(_extended(tokens)), makes_globals)


def _find(
    sources: Sequence[Source],
    read_others: Callable[[], Sequence[Source]],
    known: Known,
    methods: frozenset[str],
) -> list[Fault]:
    names = [_names_in(each) for each in sources]
    absent = _list_absent(sources, names, known, methods)
    if absent and (others := read_others()):
        names += map(_names_in, others)
        absent = _list_absent(sources, names, known, methods)
    every = [*known, *set().union(*(each.given for each in names))] if absent else []
    sentences: dict[tuple[str, str | None], str] = {}
    faults: dict[Fault, None] = {}
    for source, line, name, member in absent:
        if (name, member) not in sentences:
            candidates = every if member is None else known.get(name, methods)
            near = nearest(member or name, candidates, 0.7) if len(sentences) < MAX_HINTS else None
            sentences[name, member] = _sentence(name, member, near)
        faults[Fault(source.name, line, sentences[name, member])] = None
    return sorted(faults)


def _list_absent(
    sources: Sequence[Source], names: Sequence[_Names], known: Known, methods: frozenset[str]
) -> list[tuple[Source, int, str, str | None]]:
    """Return the file, line, name, and member of each use of an undefined name or unknown `ctx` method."""
    if any(each.makes_globals for each in names):
        return []
    given = set().union(*(each.given for each in names))
    extended = set().union(*(each.extended for each in names))
    found: list[tuple[Source, int, str, str | None]] = []
    for source in sources:
        tokens = _padded(source)
        absent = chain(_undefined(tokens, known, given, extended), _no_methods(tokens, methods, given))
        found += ((source, *each) for each in absent)
    return found


def _sentence(name: str, member: str | None, near: str | None) -> str:
    if member is None:
        return f"{name} has no value in any file, so it is nil{suggest(near)}"
    if member.startswith("."):
        return f"call it with a colon: {name}:{member[1:]}(...), not {name}{member}(...)"
    dot = ":" if name == "ctx" else "."
    return f"{name} has no {member}{suggest(near and f'{name}{dot}{near}')}"


def _given(tokens: Sequence[LuaToken]) -> Iterator[str]:
    """Yield every assigned name of a variable, parameter, table field, or function."""
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
    """Yield the names before an equals sign."""
    while tokens[index - 1].kind == "name" and tokens[index].word in ("=", ","):
        yield tokens[index - 1].word
        index -= 2


def _extended(tokens: Sequence[LuaToken]) -> Iterator[str]:
    """Yield the members that the file adds to libraries: `string.trim = …`, `function string.trim(…)`."""
    for index, token in enumerate(tokens[:-3]):
        is_set = tokens[index + 3].word in ("=", ",") or tokens[index - 1].word == "function"
        if is_set and token.kind == "name" and tokens[index + 1].word == ".":
            yield tokens[index + 2].word


def _undefined(
    tokens: Sequence[LuaToken], known: Known, given: set[str], extended: set[str]
) -> Iterator[tuple[int, str, str | None]]:
    """Yield the line and the name of each undefined global that is read, and of each undefined member of a
    library."""
    for index, token in enumerate(tokens[:-2]):
        is_read = token.kind == "name" and token.word not in KEYWORDS and token.word not in given
        if not is_read or tokens[index - 1].word in (".", ":", "::", "goto"):
            continue
        name, dot, member = token.word, tokens[index + 1].word, tokens[index + 2].word
        if name not in known:
            yield token.line, name, None
        elif dot == "." and known[name] and member not in known[name] and member not in extended:
            yield token.line, name, member


def _no_methods(
    tokens: Sequence[LuaToken], methods: frozenset[str], given: set[str]
) -> Iterator[tuple[int, str, str]]:
    """Yield the line, "ctx", and the method for each call of an unknown `ctx` method. If a known method is called
    with a dot instead of a colon, yield the method with a leading dot. Ignore dots if the file assigns `ctx` or this
    method, because the file may define its own functions."""
    own = set()
    for index, token in enumerate(tokens[:-3]):
        if token.word != "ctx":
            continue
        if tokens[index + 1].word == "=":
            own.add("ctx")
        elif tokens[index + 3].word == "=" or tokens[index - 1].word == "function":
            own.add(tokens[index + 2].word)
    for index, token in enumerate(tokens[:-2]):
        sign, method = tokens[index + 1].word, tokens[index + 2].word
        if token.word != "ctx" or tokens[index - 1].word in (".", ":"):
            continue
        if sign == ":" and method not in methods and method not in given:
            yield token.line, "ctx", method
        elif sign == "." and method in methods and own.isdisjoint(("ctx", method)):
            bracket, first = (*(each.word for each in tokens[index + 3 : index + 5]), "", "")[:2]
            if bracket == "(" and first != "ctx":
                yield token.line, "ctx", f".{method}"
