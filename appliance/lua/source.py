"""Reads Lua files, and finds tokens and the names in calls."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import lru_cache, wraps
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeVar

from msgspec import Struct

from appliance.errors import Invalid
from appliance.lua_worker.ctx_methods import CTX_METHODS, LOG_ARGUMENTS

MAX_FILE_BYTES = 1 << 20
"""Maximum size of a Lua file. Files written by people are far smaller."""

MAX_TEXTS_KNOWN, MAX_ITEMS_KNOWN = 1024, 10_000
"""Maximum numbers of texts with cached results, and of items in these results."""

S = TypeVar("S", bound=Sized)

_MARK = b"\xef\xbb\xbf"

_LAST_RETURN = "\nreturn"

_position_of = attrgetter("line", "column")

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


class Source(Struct, frozen=True, kw_only=True):
    """A Lua file's text. `name` is the file's configured path, such as `config/scenes/evening.lua`."""

    name: str
    text: bytes

    @property
    def chunk(self) -> bytes:
        """Return the text as UTF-8 without a byte order mark. If the first line begins with `#!`, it becomes
        empty."""
        text = self.text.removeprefix(_MARK)
        return text[len(text.split(b"\n", 1)[0]) :] if text.startswith(b"#") else text

    def line_of(self, *path: str) -> int:
        """Return the line of a field's assignment, or 0 if it is unknown. The path `("trigger", "above")` means the
        field `above` inside `trigger`."""
        found = NO_TOKEN
        for key in path:
            tokens = _fields_of(self.text).get(key, [])
            position = bisect_right(tokens, _position_of(found), key=_position_of)
            if position == len(tokens):
                return 0
            found = tokens[position]
        return found.line

    @property
    def line_of_return(self) -> int:
        """Return the line of the last unindented `return`, or 0 if there is none. The file's table begins on this
        line."""
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


def by_text(read: Callable[[Source], S]) -> Callable[[Source], S]:
    """Cache the results of a function that depends only on the text, because most files rarely change. The function
    can be called in several threads at once."""
    known: dict[bytes, S] = {}
    items, lock = 0, Lock()

    @wraps(read)
    def find(source: Source) -> S:
        nonlocal items
        key = blake2b(source.text, digest_size=16).digest()
        if (found := known.get(key)) is None:
            found = read(source)
            with lock:
                if len(known) >= MAX_TEXTS_KNOWN or items + len(found) > MAX_ITEMS_KNOWN:
                    known.clear()
                    items = 0
                if key not in known and len(found) <= MAX_ITEMS_KNOWN:
                    known[key] = found
                    items += len(found)
        return found

    return find


def load(file: Path, name: str) -> Source:
    """Read the file. Raise `OSError` if the file cannot be read, and `Invalid` if the file is too large."""
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
"""The kind of object that the first argument of a method names. Methods that return nil for a missing object are
not included."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "log": LOG_ARGUMENTS,
    **{name: method.arguments for name, method in CTX_METHODS.items()},
}
"""The Lua types of arguments, by `ctx` method. `?` marks an optional argument."""

_ANY_CALL = re.compile(rb":\s*(?:%b)\b|\brequire\b" % "|".join(CALLS).encode())

_PLAIN = re.compile(r"""(["'])([^"'\\]*)\1""")


class CalledName(Struct, frozen=True):
    """A call with a literal name, such as `ctx:command("desk:light:0", …)` or `require("module")`. `kind` is the kind
    of the named object."""

    line: int
    call: str
    kind: str
    name: str


@by_text
def called_names(source: Source) -> tuple[CalledName, ...]:
    """Return every call of `ctx` or `require` with a literal text as its first argument, in file order."""
    if _ANY_CALL.search(source.text) is None:  # most files contain no such call, and tokenizing is slow
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
