"""Finds calls that name an object or a module."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from appliance.lua.text.source import Source, by_text
from appliance.lua.text.tokens import LuaToken, windows_of
from appliance.lua_worker.ctx_methods import CTX_METHODS

CALLS: Mapping[str, str] = {name: method.names for name, method in CTX_METHODS.items() if method.names is not None}
"""The kind of object that the first argument of a method names."""

_ANY_CALL = re.compile(rb":\s*(?:%b|get|snapshot)\b|\brequire\b" % "|".join(CALLS).encode())

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
    """Return every call of `ctx` or `require` with a literal text as its first argument, in file order. `get` counts
    only if its object is named `ctx`. The result also contains each literal text in the list of `ctx:snapshot`."""
    if _ANY_CALL.search(source.text) is None:  # most files contain no such call, and tokenizing is slow
        return ()
    found: list[CalledName] = []

    def note(line: int, call: str, kind: str, given: LuaToken) -> None:
        """Add the call if the given token is a literal text without escapes."""
        plain = _PLAIN.fullmatch(given.word) if given.kind == "text" else None
        if plain is not None:
            found.append(CalledName(line, call, kind, plain[2]))

    is_in_snapshot = False
    for owner, colon, call, bracket, name, behind in windows_of(source.chunk, 6):
        kind = "variable" if (owner.word, call.word) == ("ctx", "get") else CALLS.get(call.word)
        if (colon.word, bracket.word) == (":", "(") and kind is not None and behind.word in (",", ")"):
            note(name.line, f"ctx:{call.word}", kind, name)
        elif call.word == "require" and colon.word not in (".", ":", "function", "local"):
            given = name if bracket.word == "(" and behind.word == ")" else bracket
            note(call.line, "require", "module", given)
        elif is_in_snapshot and bracket.word in ("{", ",") and behind.word in ("}", ","):
            note(name.line, "ctx:snapshot", "device", name)
        starts = (colon.word, call.word, bracket.word, name.word) == (":", "snapshot", "(", "{")
        is_in_snapshot = starts or (is_in_snapshot and name.word != "}")
    return tuple(found)
