"""Source: the text of a Lua file, its tokens, the names in its calls, and its undefined globals."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import lru_cache, wraps
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from appliance.errors import Fault, Invalid
from appliance.lua_worker.ctx_methods import CTX_METHODS, KIND_METHODS, LOG_ARGUMENTS
from appliance.tables.checks import nearest

MAX_FILE_BYTES = 1 << 20
"""Maximum size of a Lua file. Files written by people are far smaller."""

MAX_TEXTS_KNOWN = 1024
"""Maximum number of texts with cached results."""

T = TypeVar("T")

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
    """One token of a file. A token of kind `text` includes the quotes. The other kinds are name, number, and symbol.
    `line` begins at 1, `column` at 0."""

    kind: str
    word: str
    line: int
    column: int


NO_TOKEN = LuaToken("", "", 0, 0)
"""A placeholder before the first and after the last token."""


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


class Source(Struct, frozen=True, kw_only=True):
    """A Lua file's text. `name` is the file's configured path, such as `config/scenes/evening.lua`."""

    name: str
    text: bytes

    @property
    def chunk(self) -> bytes:
        """The text as UTF-8 without a byte order mark. An initial `#!` line is replaced by an empty line."""
        text = self.text.removeprefix(_MARK)
        return text[len(text.split(b"\n", 1)[0]) :] if text.startswith(b"#") else text

    def line_of(self, *path: str) -> int:
        """Return the line of a field's assignment. The path `("trigger", "above")` means the field `above` inside
        `trigger`. Return 0 if the line is unknown."""
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
        """The line of the last unindented `return`, where the file's table begins. 0 if the file has no such line."""
        return self.line_of(_LAST_RETURN)


@lru_cache(maxsize=4)
def _fields_of(text: bytes) -> dict[str, list[LuaToken]]:
    """Return the tokens that set fields, by name. The key `_LAST_RETURN` contains the last unindented `return`."""
    fields: defaultdict[str, list[LuaToken]] = defaultdict(list)
    for first, second, third, token in windows_of(text, 4):
        if token.word == "=" and third.kind == "name" and second.word != ".":
            fields[third.word].append(third)
        elif token.word == "=" and third.word == "]" and second.kind == "text" and first.word == "[":
            fields[second.word[1:-1]].append(first)
        elif token.word == "return" and token.column == 0:
            fields[_LAST_RETURN] = [token]
    return fields


def by_text(read: Callable[[Source], T]) -> Callable[[Source], T]:
    """Cache the results of a function that depends only on the text, because most files rarely change."""
    known: dict[bytes, T] = {}

    @wraps(read)
    def find(source: Source) -> T:
        key = blake2b(source.text, digest_size=16).digest()
        if (found := known.get(key)) is None:
            found = read(source)
            if len(known) >= MAX_TEXTS_KNOWN:
                known.clear()
            known[key] = found
        return found

    return find


def load(file: Path, name: str) -> Source:
    """Read the file. Raise `OSError` if it cannot be read, and `Invalid` if it is too large."""
    with file.open("rb") as opened:
        text = opened.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise Invalid("is larger than 1 MiB")
    return Source(name=name, text=text)


CALLS: Mapping[str, str] = {
    name: method.names
    for name, method in CTX_METHODS.items()
    if method.names is not None and not method.may_be_absent
}
"""The type of object that the first argument names, by method. Methods that return nil for a missing object are not
included."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "log": LOG_ARGUMENTS,
    **{name: method.arguments for name, method in CTX_METHODS.items()},
}
"""The Lua types of arguments, by `ctx` method. `?` marks an optional argument."""

_ANY_CALL = re.compile(rb":\s*(?:%b)\b|\brequire\b" % "|".join(CALLS).encode())

_PLAIN = re.compile(r"""(["'])([^"'\\]*)\1""")

_MAKERS = frozenset({"_G", "_ENV", "load", "rawset"})
"""A file that uses one of these names may assign globals dynamically."""

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
"""Keywords that begin a declaration of names, and the separators between the names."""

MAX_HINTS = 20
"""Maximum number of faults with a hint, because a search for similar names is slow."""

Known = Mapping[str, Mapping[str, bool]]
"""Lua's globals. Each library has its members."""


class CalledName(Struct, frozen=True):
    """A call with a literal name, such as `ctx:command("desk:light:0", …)` or `require("module")`. `kind` is the type
    of the named object."""

    line: int
    call: str
    kind: str
    name: str


@by_text
def called_names(source: Source) -> tuple[CalledName, ...]:
    """Return every call of `ctx` or `require` with a literal text as its first argument, in the order of the file."""
    if _ANY_CALL.search(source.text) is None:  # most files have no such call, and splitting into tokens is slow
        return ()
    found = []
    for colon, call, bracket, name, behind in windows_of(source.chunk, 5):
        if (colon.word, bracket.word) == (":", "(") and call.word in CALLS and behind.word in (",", ")"):
            plain = _PLAIN.fullmatch(name.word) if name.kind == "text" else None
            if plain is not None:
                found.append(CalledName(name.line, f"ctx:{call.word}", CALLS[call.word], plain[2]))
        elif call.word == "require" and colon.word not in (".", ":", "function", "local"):
            given = name if bracket.word == "(" and behind.word == ")" else bracket
            plain = _PLAIN.fullmatch(given.word) if given.kind == "text" else None
            if plain is not None:
                found.append(CalledName(call.line, "require", "module", plain[2]))
    return tuple(found)


_KNOWN: dict[bool, Known] = {}
"""Cached globals: True for kinds of adapter, False for other files."""


async def find_undefined(
    sources: Sequence[Source],
    describe: Callable[[Source], Awaitable[Mapping[str, Any]]],
    *,
    others: Sequence[Source] = (),
    is_kind: bool = False,
) -> list[Fault]:
    """Return a fault for each undefined name and each unknown `ctx` method in `sources`. `is_kind` selects the
    methods of kinds of adapter. Names that `others` define are known, but `others` are not checked. Return no faults
    if any file may assign globals dynamically."""
    methods = KIND_METHODS if is_kind else frozenset({*CTX_METHODS, "log"})
    if (known := _KNOWN.get(is_kind)) is None:
        known = _KNOWN[is_kind] = await describe(Source(name="names", text=_NAMES))
    return await asyncio.to_thread(_find, sources, others, known, methods)


class _Names(Struct, frozen=True):
    """The names that a file assigns, and the members that the file adds to libraries. `makes_globals` is true if the
    file may assign globals dynamically."""

    given: frozenset[str]
    extended: frozenset[str]
    makes_globals: bool


def _padded(source: Source) -> list[LuaToken]:
    return [NO_TOKEN, *tokens_of(source.chunk), NO_TOKEN, NO_TOKEN]


@by_text
def _names_in(source: Source) -> _Names:
    tokens = _padded(source)
    makes_globals = any(token.kind == "name" and token.word in _MAKERS for token in tokens)
    return _Names(frozenset(_given(tokens)), frozenset(_extended(tokens)), makes_globals)


def _find(sources: Sequence[Source], others: Sequence[Source], known: Known, methods: frozenset[str]) -> list[Fault]:
    names = [_names_in(each) for each in (*sources, *others)]
    if any(each.makes_globals for each in names):
        return []
    given = set().union(*(each.given for each in names))
    extended = set().union(*(each.extended for each in names))
    every = [*known, *given]
    sentences: dict[tuple[str, str | None], str] = {}
    faults = set()
    for source in sources:
        tokens = _padded(source)
        for line, name, member in (*_undefined(tokens, known, given, extended), *_no_methods(tokens, methods, given)):
            if (name, member) not in sentences:
                candidates = every if member is None else known.get(name, methods)
                near = nearest(member or name, candidates, 0.7) if len(sentences) < MAX_HINTS else None
                sentences[name, member] = _sentence(name, member, near)
            faults.add(Fault(source.name, line, sentences[name, member]))
    return sorted(faults)


def _sentence(name: str, member: str | None, near: str | None) -> str:
    if member is None:
        return f"{name} has no value in any file, so it is nil" + (f"; did you mean {near}" if near else "")
    if member.startswith("."):
        return f"call it with a colon: {name}:{member[1:]}(...), not {name}{member}(...)"
    dot = ":" if name == "ctx" else "."
    return f"{name} has no {member}" + (f"; did you mean {name}{dot}{near}" if near else "")


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
    """Yield the members that files may add to libraries: `string.trim = …`, `function string.trim(…)`."""
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
    with a dot instead of a colon, yield the method with a leading dot."""
    for index, token in enumerate(tokens[:-2]):
        sign, method = tokens[index + 1].word, tokens[index + 2].word
        if token.word != "ctx" or tokens[index - 1].word in (".", ":") or method in given:
            continue
        if sign == ":" and method not in methods:
            yield token.line, "ctx", method
        elif sign == "." and method in methods:
            bracket, first = (*(each.word for each in tokens[index + 3 : index + 5]), "", "")[:2]
            if bracket == "(" and first != "ctx":
                yield token.line, "ctx", f".{method}"
