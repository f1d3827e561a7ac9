"""The prelude: the Lua files beside this one, as one piece of bytecode that every fresh state begins with."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lupa import lua54

PARTS = ("stop", "json", "request", "protected", "sandbox", "ctx", "driver")
"""In this order; each part is given one table, in which it finds what those before it left."""

_COMPILE = b"function(source) return string.dump(assert(load(source, '=prelude', 't')), true) end"


@cache
def bytecode() -> bytes:
    """All parts, compiled and stripped. Frames without lines are how the prelude knows its own from the user's."""
    folder = Path(__file__).parent / "prelude"
    texts = [(folder / f"{part}.lua").read_text("utf-8") for part in PARTS]
    parts = [f"(function(...)\n{text}\nend)(lares);" for text in texts[:-1]]
    whole = f"local lares = ...\n{''.join(parts)}\nreturn (function(...)\n{texts[-1]}\nend)(lares)"
    lua = lua54.LuaRuntime(encoding=None, register_eval=False, register_builtins=False)
    compiled: bytes = lua.eval(_COMPILE)(whole.encode())
    return compiled
