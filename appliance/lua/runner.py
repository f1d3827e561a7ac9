"""The runner: runs Lua files in its workers, each execution in a state of its own and within its limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from appliance.clock import Clock
from appliance.errors import Fault, Invalid, RunCancelled, ScriptFailed
from appliance.lua.answers import Calls
from appliance.lua.execution import ExecutionSettings, Failure, LuaExecution
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.scripts import Scripts
from appliance.lua.source import Source
from appliance.lua.workers import Workers
from appliance.lua_worker.protocol import FrameKind
from appliance.tasks import Tasks

log = logging.getLogger("scripts")

_FUNCTION = "\0function"


@dataclass(frozen=True, slots=True)
class Function:
    """Stands for a function in what a file describes; `line` is where the function begins."""

    line: int

    def __str__(self) -> str:
        return "a function"


class Runner:
    """Owns the workers and every execution. Leaving the context ends all at once.

    `scripts` is the folder that `require` reads from, None where scripts are disabled; `scripts_name` is what people
    call it. `clock` and `timezone` are what Lua is told of the time; the limits are the machine's seconds. `on_kill`
    is told, in a sentence, of each worker that did not come to a good end.
    """

    def __init__(
        self,
        *,
        limits: ExecutionLimits,
        scripts: Path | None,
        scripts_name: str,
        timezone: ZoneInfo,
        clock: Clock,
        on_kill: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tasks = Tasks()
        self._settings = ExecutionSettings(limits, Scripts(scripts, scripts_name), clock, Clock())
        self._workers = Workers(self._settings, timezone, on_kill)
        self._running: set[LuaExecution] = set()

    async def __aenter__(self) -> Runner:
        await self._workers.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        await self._workers.__aexit__()

    @property
    def running(self) -> int:
        """How many executions have begun and not ended."""
        return len(self._running)

    def figures(self) -> dict[str, Any]:
        """The executions under way, the workers, and those that were lost."""
        return {"running": self.running, **self._workers.figures()}

    async def describe(self, source: Source) -> Mapping[str, Any]:
        """Run the file's own code and give what it returns as plain data, functions as `Function`.

        `ScriptFailed` where it fails, ends at a limit, or returns anything but a table of data.
        """
        description = await self._run_file(FrameKind.DESCRIBE, source)
        return await asyncio.to_thread(_read_description, description)

    async def compile(self, source: Source) -> None:
        """Raise `ScriptFailed` where the file is not Lua; none of it is run."""
        await self._run_file(FrameKind.COMPILE, source)

    def start(
        self,
        source: Source,
        calls: Calls,
        event: Mapping[str, Any] | None = None,
        *,
        name: str,
        on_end: Callable[[Failure], None] = lambda _: None,
    ) -> LuaExecution:
        """Begin an execution of the file: its own code, then `execute(ctx)`, or `execute(ctx, event)`.

        `on_end` is told once how it ended, never before this has returned.
        """

        def end(execution: LuaExecution, failure: Failure) -> None:
            self._running.discard(execution)
            on_end(failure)

        given = b"" if event is None else orjson.dumps(event)
        execution = LuaExecution(name, FrameKind.EXECUTE, source, given, calls, self._settings, end)
        self._running.add(execution)
        execution.begin(self._workers.place, self._tasks)
        return execution

    async def _run_file(self, kind: FrameKind, source: Source) -> bytes:
        """What the file's own code comes to."""
        execution = LuaExecution(source.name, kind, source, b"", _FileCalls(source.name), self._settings, _ignore)
        execution.begin(self._workers.place, self._tasks)
        try:
            await execution.wait()
        except RunCancelled as cancelled:
            raise ScriptFailed(Fault(source.name, 0, str(cancelled))) from None
        finally:
            execution.abort()
        return execution.description


class _FileCalls:
    """The `Calls` of a file's own code, which is not given `ctx`."""

    counted_secs = 0.0

    def __init__(self, file: str) -> None:
        self._file = file

    async def call(self, operation: str, arguments: Any) -> Any:
        raise Invalid(f"ctx:{operation} is there in execute only")

    def log(self, level: str, message: str, fields: Any) -> None:
        log.info("%s", message, extra={"file": self._file})


def _ignore(*_: object) -> None:
    return None


def _read_description(body: bytes) -> Mapping[str, Any]:
    description: Mapping[str, Any] = _with_functions(orjson.loads(body))
    return description


def _with_functions(value: Any) -> Any:
    """The description with `Function` in the place of what stands for one."""
    if isinstance(value, list):
        return [_with_functions(each) for each in value]
    if not isinstance(value, dict):
        return value
    if _FUNCTION in value:
        return Function(value[_FUNCTION])
    return {key: _with_functions(each) for key, each in value.items()}
