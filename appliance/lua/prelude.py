"""The prelude: the Lua files beside this one, as one piece of bytecode that every fresh state begins with."""

from __future__ import annotations

from functools import cache
from importlib import resources

from lupa import lua54

PARTS = (
    "stop",
    "json",
    "request",
    "protected",
    "patterns",
    "library",
    "sandbox",
    "ctx",
    "driver",
)
"""In this order; each part is given one table, in which it finds what those before it left."""

RARE = ("worst_case", "local_time", "lists")
"""Parts that are loaded only in the executions that need them."""

_COMPILE = b"function(source) return string.dump(assert(load(source, '=prelude', 't')), true) end"


def text_of(part: str) -> str:
    """The part's source."""
    return (resources.files("appliance.lua") / "prelude" / f"{part}.lua").read_text("utf-8")


@cache
def bytecode() -> bytes:
    """All parts but the rare ones, compiled and stripped.

    Frames without lines are how the prelude knows its own from the user's.
    """
    parts = [f"(function(...)\n{text_of(part)}\nend)(lares);" for part in PARTS[:-1]]
    whole = f"local lares = ...\n{''.join(parts)}\nreturn (function(...)\n{text_of(PARTS[-1])}\nend)(lares)"
    return _compile(whole)


@cache
def rare() -> dict[bytes, bytes]:
    """The rare parts, each compiled."""
    return {part.encode(): _compile(text_of(part)) for part in RARE}


def _compile(text: str) -> bytes:
    lua = lua54.LuaRuntime(encoding=None, register_eval=False, register_builtins=False)
    compiled: bytes = lua.eval(_COMPILE)(text.encode())
    return compiled
