"""State: one fresh Lua state and its execution, from beginning to end. For one thread at a time, never the loop's.

Four rules keep the process safe, and each is here: only texts and whole numbers cross the border; what Lua can call
of Python's returns whole numbers or nothing, and never raises; Lua never sees the real globals; the memory limit
is lifted while Python hands something in, because Lua aborts the process when that fails.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from lupa import lua54

from appliance.errors import Invalid
from appliance.lua import prelude
from appliance.lua.limits import Reason, Watch
from appliance.lua.scripts import Scripts
from appliance.lua.source import Source

_NO_MEMORY = b"not enough memory"

Emit = Callable[[str, str, Any], None]


@dataclass(frozen=True, slots=True)
class Asks:
    """Lua waits for an answer: the operation, and its arguments as JSON."""

    operation: str
    arguments: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """Lua has ended; `description` is JSON, if one was asked for."""

    description: bytes


@dataclass(frozen=True, slots=True)
class Stopped:
    """Lua was stopped at `place` (`file:line`, or nothing where it cannot be known)."""

    reason: Reason
    place: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Lua raised an error. `absent` is what a look-up before it did not find."""

    message: str
    place: str
    absent: str


Step = Asks | Done | Stopped | Failed


class State:
    """One execution's Lua. `files` are those that it has read, its own first. `dispose` leaves nothing of it."""

    def __init__(self, source: Source, max_memory: int, watch: Watch, scripts: Scripts) -> None:
        self._source = source
        self._max_memory = max_memory
        self._watch = watch
        self._scripts = scripts
        self.files = [source]

    def start(self, event: bytes | None, emit: Emit, clock: dict[bytes, Any]) -> Step:
        """Run the file and its `execute`, until that asks for something or has ended."""
        self._boot(emit, clock)
        self._begin(self._source.chunk, self._source.name.encode(), event)
        return self._run()

    def describe(self, emit: Emit, clock: dict[bytes, Any]) -> Step:
        """Run the file alone; `Done` holds what it returned."""
        self._boot(emit, clock)
        self._describe(self._source.chunk, self._source.name.encode())
        return self._run()

    def answer(self, is_ok: bool, body: bytes) -> Step:
        """Give Lua what it asked for, or the sentence why not, and go on."""
        self._lua.set_max_memory(0)
        self._answer(is_ok, body)
        return self._run()

    def stop(self, reason: Reason) -> Step:
        """Say where Lua is, which will not go on for this reason."""
        self._lua.set_max_memory(0)
        return Stopped(reason, _text(self._place()))

    def dispose(self) -> None:
        """Give the memory back, most of it while other threads can go on."""
        if hasattr(self, "_lua"):
            self._lua.set_max_memory(0)
            was_large = self._dispose()
            del self._lua, self._answer, self._begin, self._describe, self._step, self._place, self._dispose
            if was_large:
                _give_back()

    def _boot(self, emit: Emit, clock: dict[bytes, Any]) -> None:
        self._lua: Any = lua54.LuaRuntime(
            encoding=None,
            source_encoding="utf-8",
            register_eval=False,
            register_builtins=False,
            attribute_filter=_refuse,
            max_memory=0,
        )
        given = self._lua.table_from({b"poll": _poll(self._watch), b"emit": _emit(self._watch, emit), **clock})
        given[b"rare"] = self._lua.table_from(prelude.rare())
        functions = self._lua.execute(prelude.bytecode(), given, mode="b")
        self._answer, self._begin, self._describe, self._step, self._place, self._dispose = functions
        self._max_memory += self._lua.get_memory_used()  # the prelude is not the script's

    def _run(self) -> Step:
        """Take Lua on until it needs the hub; scripts are read here, on this thread."""
        while True:
            step = self._advance()
            if not isinstance(step, Asks) or step.operation != "require":
                return step
            self._lua.set_max_memory(0)
            try:
                script = self._scripts.load(step.arguments.decode(errors="replace"))
            except Invalid as error:
                self._answer(False, str(error).encode(errors="replace"))
            else:
                self.files.append(script)
                self._answer(True, script.chunk, script.name.encode())

    def _advance(self) -> Step:
        self._lua.set_max_memory(self._max_memory)
        try:
            kind, *rest = self._step()
        except lua54.LuaMemoryError:  # where Lua had no room left to tell
            kind, rest = b"failed", [_NO_MEMORY]
        if kind == b"failed" and rest[0] == _NO_MEMORY:
            self._lua.set_max_memory(0)
            return Stopped(Reason.MEMORY, _text(self._place()))
        return _STEPS[kind](*rest)


def _poll(watch: Watch) -> Callable[[], int | None]:
    def poll() -> int | None:
        reason = watch.reason()
        return None if reason is None else int(reason)

    return poll


def _emit(watch: Watch, emit: Emit) -> Callable[[bytes, bytes, bytes | None], None]:
    def log(level: bytes, message: bytes, fields: bytes | None) -> None:
        with contextlib.suppress(Exception):  # an exception must not cross the border
            if watch.takes_line():
                emit(_text(level), _text(message), None if fields is None else orjson.loads(fields))

    return log


def _give_back() -> None:
    """Let the C library return to the machine what it keeps for the next one; only glibc keeps much, and can."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _refuse(*_: object) -> str:
    raise AttributeError("no Python object is open to Lua")


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


_STEPS: dict[bytes, Callable[..., Step]] = {
    b"asks": lambda operation, arguments: Asks(_text(operation), arguments),
    b"done": Done,
    b"stopped": lambda reason, place: Stopped(Reason(reason), _text(place)),
    b"failed": lambda message, place, absent: Failed(_text(message), _text(place), _text(absent)),
}
"""What each kind of step that the prelude tells of becomes."""
