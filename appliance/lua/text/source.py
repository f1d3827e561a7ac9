"""The text of a Lua file."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sized
from functools import cached_property, wraps
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import TypeVar

from msgspec import Struct

from appliance.errors import Invalid
from appliance.lua.text.tokens import NO_TOKEN, LuaToken, windows_of

MAX_FILE_BYTES = 1 << 20
"""Maximum size of a Lua file. Files written by people are far smaller."""

MAX_TEXTS_KNOWN, MAX_ITEMS_KNOWN, MAX_ITEMS_PER_TEXT = 1024, 10_000, 500
"""Maximum numbers of texts with cached results, of items in these results, and of items in a cached result. Files
written by people have far fewer items."""

S = TypeVar("S", bound=Sized)

_MARK = b"\xef\xbb\xbf"

_LAST_RETURN = "\nreturn"

_position_of = attrgetter("line", "column")


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


class FieldLines:
    """The lines of the fields in a text. The first call reads the text, because most texts have no faults."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @cached_property
    def _fields(self) -> dict[str, list[LuaToken]]:
        return _fields_of(self._source.text.removeprefix(_MARK))

    def find(self, *path: str) -> int:
        """Return the line of a field's assignment, or 0 if it is unknown. The path `("trigger", "above")` means the
        field `above` inside `trigger`."""
        found = NO_TOKEN
        for key in path:
            tokens = self._fields.get(key, [])
            position = bisect_right(tokens, _position_of(found), key=_position_of)
            if position == len(tokens):
                return 0
            found = tokens[position]
        return found.line

    @property
    def of_return(self) -> int:
        """The line of the last unindented `return`, or 0 if there is none. The file's table begins on this line."""
        return self.find(_LAST_RETURN)


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
                if len(known) >= MAX_TEXTS_KNOWN or items > MAX_ITEMS_KNOWN:
                    known.clear()
                    items = 0
                if key not in known and len(found) <= MAX_ITEMS_PER_TEXT:
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
