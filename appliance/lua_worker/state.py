"""State: one fresh Lua state and its execution, from beginning to end. For one thread at a time.

Three rules keep the worker's memory sound, and each is here: only texts and whole numbers cross the border; Lua never
sees the real globals; the memory limit is lifted while Python hands something in, because Lua aborts the process
when that fails.
"""

from __future__ import annotations

from typing import Any

from lupa import lua54

from appliance.lua_worker import prelude
from appliance.lua_worker.confinement import trim_memory
from appliance.lua_worker.guard import Guard
from appliance.lua_worker.protocol import Kind, Reason

Step = tuple[Kind, tuple[bytes, ...]]
"""What became of Lua when it came back: a request or one of `protocol.LAST`, with the parts of its frame."""

_NO_MEMORY = b"not enough memory"
_LARGE = 1 << 20
_KINDS = {b"asks": Kind.REQUEST, b"done": Kind.DONE, b"stopped": Kind.STOPPED, b"failed": Kind.FAILED}


class State:
    """One execution's Lua; `dispose` leaves nothing of it."""

    def __init__(self, guard: Guard, max_memory: int) -> None:
        self._guard = guard
        self._lua: Any = new_runtime()
        guard.lift = self._lift
        guard.limit = self._limit
        names = ("poll", "emit", "ask", "take", "relimit", "instant")
        given = self._lua.table_from({name.encode(): getattr(guard, name) for name in names})
        functions = self._lua.execute(prelude.bytecode(), given, mode="b")
        self._answer, self._begin, self._describe, self._step, self._place = functions
        self._max_memory = max_memory + self.memory  # the prelude is not the script's

    @property
    def memory(self) -> int:
        """Bytes that Lua uses; may be asked by any thread."""
        used: int = self._lua.get_memory_used()
        return used

    def execute(self, timing: bytes, text: bytes, name: bytes, event: bytes) -> Step:
        """Run the file and its `execute`, until that asks for something or has ended."""
        self._begin(text, name, event or None)
        return self._run(timing)

    def describe(self, timing: bytes, text: bytes, name: bytes) -> Step:
        """Run the file alone; DONE holds what it returned."""
        self._describe(text, name)
        return self._run(timing)

    def answer(self, timing: bytes, is_ok: bytes, *parts: bytes) -> Step:
        """Give Lua what it asked for, or the sentence why not, and go on."""
        self._lift()
        self._answer(bool(is_ok), *parts)
        return self._run(timing)

    def stop(self, reason: Reason) -> Step:
        """Say where Lua is, which will not go on for this reason."""
        self._lift()
        return Kind.STOPPED, (bytes([reason]), self._place())

    def dispose(self) -> None:
        """Give the memory back."""
        was_large = self.memory > _LARGE
        self._lift()
        self._guard.lift = self._guard.limit = lambda: None  # no circle may keep the state
        del self._lua, self._answer, self._begin, self._describe, self._step, self._place
        if was_large:
            trim_memory()

    def _run(self, timing: bytes) -> Step:
        self._guard.begin(timing)
        self._limit()
        try:
            kind, *parts = self._step()
        except lua54.LuaMemoryError:  # where Lua had no room left to tell
            kind, parts = b"failed", [_NO_MEMORY]
        if kind == b"failed" and parts[0] == _NO_MEMORY:
            return self.stop(Reason.MEMORY)
        if kind == b"stopped":
            return (Kind.STOPPED, (bytes([parts[0]]), parts[1])) if parts[1] else self.stop(Reason(parts[0]))
        return _KINDS[kind], tuple(parts)

    def _lift(self) -> None:
        self._lua.set_max_memory(0)

    def _limit(self) -> None:
        self._lua.set_max_memory(self._max_memory)


def compile_text(text: bytes, name: bytes) -> Step:
    """Whether the text is Lua, without running any of it."""
    try:
        new_runtime().compile(text, name=b"@" + name, mode="t")
    except lua54.LuaError as error:
        return Kind.FAILED, (error.args[0], b"", b"")
    return Kind.DONE, (b"",)


def new_runtime() -> Any:
    """A bare Lua state, without limits, to which no Python object is open."""
    return lua54.LuaRuntime(
        encoding=None,
        source_encoding="utf-8",
        register_eval=False,
        register_builtins=False,
        attribute_filter=_refuse,
        max_memory=0,
    )


def _refuse(*_: object) -> str:
    raise AttributeError("no Python object is open to Lua")
