"""The methods of `ctx` that send a request to the hub. The worker's Lua and the hub use the same list."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping


class CtxMethod(
    namedtuple(
        "CtxMethod",
        ("arguments", "names", "may_be_absent", "reads", "waits"),
        defaults=((), None, False, False, False),
    )
):
    """A method of `ctx`.

    - `arguments`: the Lua types of the arguments; `?` marks an optional argument.
    - `names`: the kind of object that the first argument names. If the object is missing, the call fails.
    - `may_be_absent`: whether the call returns nil instead if the object is missing.
    - `reads`: whether the hub answers from memory, so that the call does not interrupt Lua's running time.
    - `waits`: whether the backstop ignores the duration.
    """

    __slots__ = ()
    arguments: tuple[str, ...]
    names: str | None
    may_be_absent: bool
    reads: bool
    waits: bool


CTX_METHODS: Mapping[str, CtxMethod] = {
    "command": CtxMethod(("string", "table"), names="device"),
    "command_room": CtxMethod(("string", "table"), names="room"),
    "command_group": CtxMethod(("string", "table"), names="group"),
    "invoke": CtxMethod(("string", "table?"), names="operation"),
    "notify": CtxMethod(("string", "table?")),
    "run_scene": CtxMethod(("string",), names="scene", waits=True),
    "sleep": CtxMethod(("number",), waits=True),
    "wait_for": CtxMethod(("string", "table"), names="device", waits=True),
    "get_device": CtxMethod(("string",), names="device", may_be_absent=True, reads=True),
    "get_room": CtxMethod(("string",), names="room", may_be_absent=True, reads=True),
    "get_group": CtxMethod(("string",), names="group", may_be_absent=True, reads=True),
    "list_devices": CtxMethod(reads=True),
    "list_rooms": CtxMethod(reads=True),
    "list_room_devices": CtxMethod(("string",), names="room", reads=True),
    "list_groups": CtxMethod(reads=True),
    "list_group_devices": CtxMethod(("string",), names="group", reads=True),
    "get": CtxMethod(("string", "any?"), reads=True),
    "set": CtxMethod(("string", "any?", "table?")),
    "start_timer": CtxMethod(("string", "number", "any?")),
    "cancel_timer": CtxMethod(("string",)),
    "snapshot": CtxMethod(("table",), reads=True),
    "restore": CtxMethod(("table",)),
}
"""Methods by name. `automations/ctx.py` implements the methods; `config/library/lares.lua` declares their types
for editors. `ctx:log` is not included, because it sends no request."""

LOG_ARGUMENTS = ("string", "any", "table?")
"""The types of the arguments of `ctx:log`. `prelude/ctx.lua` checks these arguments."""

SCRIPT_METHODS = frozenset({*CTX_METHODS, "log"})
"""The methods of `ctx` in scenes, automations, and scripts."""

KIND_METHODS = frozenset({"http", "fetch", "send", "ask", "keep", "kept", "log", "now"})
"""The methods of `ctx` in adapter kinds. `prelude/kind.lua` defines these methods."""

KIND_READING = frozenset({"json", "xml", "crypto", "kept"})
"""The requests of adapter kinds that the hub answers from memory. These include requests of libraries such as
`json`."""


def methods_in_lua() -> str:
    """Return the methods as a Lua table for the prelude. Each entry contains the argument types, and `absent` if the
    named object may be missing."""
    rows = []
    for name, method in CTX_METHODS.items():
        absent = [f"absent = {method.names!r}"] if method.may_be_absent else []
        rows.append(f"{name} = {{{', '.join([*map(repr, method.arguments), *absent])}}}")
    return f"{{{', '.join(rows)}}}"
