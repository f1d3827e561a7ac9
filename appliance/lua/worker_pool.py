"""The worker pool: runs Lua files in worker processes, each execution in a Lua state and within limits of its own."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from appliance.clock import Clock, timestamp
from appliance.errors import ExecutionCancelled, Fault, Invalid, ScriptFailed
from appliance.lua.execution import ExecutionSettings, Failure, LuaExecution
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.folder import Folder
from appliance.lua.replies import Calls
from appliance.lua.source import Source
from appliance.lua.worker import Worker
from appliance.lua_worker.protocol import FrameKind
from appliance.tables.checks import Mismatch
from appliance.tasks import Tasks

MAX_DRAIN_SECS = 60.0
"""How long a condemned worker may last for the sake of the others in it."""

MAX_CONDEMNED = 1
"""Condemned workers at once; of more, the oldest is killed."""

MAX_KILLS_KEPT = 20

MIN_SPARE_AGE_SECS = 10.0
"""A worker that ends younger is replaced only when something is to run, so that one that always crashes rests."""

log = logging.getLogger("lua")
scripts_log = logging.getLogger("scripts")

_FUNCTION = "\0function"


@dataclass(frozen=True, slots=True)
class Function:
    """Stands for a function in what a file describes; `line` is where the function begins."""

    line: int

    def __str__(self) -> str:
        return "a function"


def function(value: Any) -> Function:
    """A check: a Lua function."""
    if not isinstance(value, Function):
        raise Mismatch("a function", value)
    return value


class WorkerPool:
    """Owns the workers and every execution. Leaving the context ends all at once.

    `scripts` is the folder that `require` reads from, None where scripts are disabled. `clock` and `timezone` are
    those that Lua sees; limits are the machine's seconds. `on_kill` is called with a sentence for each worker lost.
    """

    def __init__(
        self,
        *,
        limits: ExecutionLimits,
        scripts: Folder | None,
        timezone: ZoneInfo,
        clock: Clock,
        on_kill: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = ExecutionSettings(limits, scripts, clock, timezone, Clock())
        self._on_kill = on_kill
        self._running: set[LuaExecution] = set()
        self._tasks = Tasks()
        self._worker_tasks = Tasks()
        self._workers: list[Worker] = []
        self._current: Worker | None = None
        self._kills: deque[dict[str, Any]] = deque(maxlen=MAX_KILLS_KEPT)
        self._kill_count = 0
        self._is_closing = False

    async def __aenter__(self) -> WorkerPool:
        self._start_worker()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        self._is_closing = True
        await self._worker_tasks.__aexit__()

    @property
    def running(self) -> int:
        """How many executions have begun and not ended."""
        return len(self._running)

    def figures(self) -> dict[str, Any]:
        """How many executions run, the workers, and those that were lost since the start."""
        workers = [each.figures() for each in self._workers]
        kills = {"kills": self._kill_count, "last_kills": list(self._kills)}
        return {"running": self.running, "workers": workers, **kills}

    async def describe(self, source: Source) -> Mapping[str, Any]:
        """What the file's own code returns, as plain data with `Function` for functions; raises `ScriptFailed`."""
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

        `on_end` is called once with how it ended, never before this has returned.
        """

        def end(execution: LuaExecution, failure: Failure) -> None:
            self._running.discard(execution)
            on_end(failure)

        given = b"" if event is None else orjson.dumps(event)
        execution = LuaExecution(name, FrameKind.EXECUTE, source, given, calls, self._settings, end)
        self._running.add(execution)
        execution.begin(self._place, self._tasks)
        return execution

    async def _run_file(self, kind: FrameKind, source: Source) -> bytes:
        """The result of the file's own code."""
        calls = _FileCalls(source.name)
        execution = LuaExecution(source.name, kind, source, b"", calls, self._settings, lambda *_: None)
        execution.begin(self._place, self._tasks)
        try:
            await execution.wait()
        except ExecutionCancelled as cancelled:
            raise ScriptFailed(Fault(source.name, 0, str(cancelled))) from None
        finally:
            execution.abort()
        return execution.description

    def _place(self, execution: LuaExecution) -> None:
        """Begin the execution in the worker that takes new ones; a fresh one is started where there is none."""
        worker = self._current if self._current is not None and self._current.is_usable else self._start_worker()
        worker.admit(execution)

    def _start_worker(self) -> Worker:
        self._current = worker = Worker(self._settings, self._condemn, self._on_end)
        self._workers.append(worker)
        self._worker_tasks.start(worker.run(), "Lua worker")
        return worker

    def _condemn(self, worker: Worker, culprit: str) -> None:
        """Let new executions go to a fresh worker; this one has a minute for those that are in it."""
        if worker is self._current:
            self._start_worker()
        worker.condemn(culprit)
        self._note(worker, f"{culprit} could not be stopped")  # `on_kill` may begin something
        because = f"the Lua worker was killed, because {culprit}, which ran in it too, could not be stopped"
        asyncio.get_running_loop().call_later(MAX_DRAIN_SECS, lambda: worker.kill(because, quietly=True))
        condemned = [each for each in self._workers if each.condemned_for is not None and each.ended_because is None]
        for each in condemned[:-MAX_CONDEMNED]:
            each.kill(because.replace(culprit, each.condemned_for or ""), quietly=True)

    def _on_end(self, worker: Worker, unbegun: Sequence[LuaExecution]) -> None:
        """Note the end of a process; executions that it was to begin are begun in another."""
        self._workers.remove(worker)
        if not worker.is_quiet and worker.ended_because is not None:
            self._note(worker, worker.ended_because)
        if worker is self._current:
            self._current = None
            if not self._is_closing and worker.is_ready and worker.age_secs >= MIN_SPARE_AGE_SECS:
                self._start_worker()
        for execution in unbegun:
            self._place(execution)

    def _note(self, worker: Worker, reason: str) -> None:
        self._kill_count += 1
        self._kills.appendleft({"at": timestamp(self._settings.clock.now()), "pid": worker.pid, "reason": reason})
        log.error("a Lua worker is lost: %s", reason)
        self._on_kill(reason)


class _FileCalls:
    """The `Calls` of a file's own code, which is not given `ctx`."""

    counted_secs = 0.0

    def __init__(self, file: str) -> None:
        self._file = file

    async def call(self, operation: str, arguments: Any) -> Any:
        raise Invalid(f"ctx:{operation} is there in execute only")

    def log(self, level: str, message: str, fields: Any) -> None:
        scripts_log.info("%s", message, extra={"file": self._file})


def _read_description(body: bytes) -> Mapping[str, Any]:
    def read_object(found: dict[str, Any]) -> Any:
        return Function(found[_FUNCTION]) if _FUNCTION in found else found

    description: Mapping[str, Any] = json.loads(body, object_hook=read_object)
    return description
