"""Code that the tests of Lua share: a small pool, and a recorder of calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from appliance.adapters.lua_calls import LuaCalls
from appliance.automations.ctx import CtxMethods
from appliance.clock import Clock
from appliance.errors import ExecutionCancelled, NotFound, ScriptFailed
from appliance.lua.files.folder import Folder
from appliance.lua.running.context import Context, CtxFunction
from appliance.lua.running.lua_run import Failure, LuaRun, Priority
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from tests.automations.homes import environment_of
from tests.fakes.instant import InstantHome

FILE = "config/scenes/test.lua"
ROOMY = RunLimits(max_cpu_secs=20.0, backstop_secs=60.0)
"""High limits for correct scripts, so that these scripts do not fail on a busy machine."""

TRIVIAL = 'ctx:command("a", {capability = "power", action = "on"})'


class Notes:
    """Records the calls of a script. `answer` returns the answer to each call. By default, each answer is null."""

    def __init__(self, answer: Callable[[str, Any], Any] | None = None) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.lines: list[tuple[str, str, Any]] = []
        self.counted_secs = 0.0
        self._answer = answer

    @property
    def printed(self) -> list[str]:
        """The logged or printed texts, without level and fields."""
        return [message for _, message, _ in self.lines]

    async def call(self, operation: str, arguments: Any) -> Any:
        self.asked.append((operation, arguments))
        answer = None if self._answer is None else self._answer(operation, arguments)
        return await answer if isinstance(answer, Awaitable) else answer

    def log(self, level: str, message: str, fields: Any) -> None:
        self.lines.append((level, message, fields))


def calls_of(home: InstantHome, clock: Clock) -> Mapping[str, CtxFunction]:
    """Return the operations of `ctx` in the home. If a script calls `ctx:run_scene`, the call fails."""
    environment = environment_of(home.registry, home.bus, clock)
    return CtxMethods(environment, home.dispatcher, _no_scene, ()).table()


async def _no_scene(id_: str, caller: Context) -> Any:
    raise NotFound("scene", id_)


@asynccontextmanager
async def open_pool(
    limits: RunLimits = ROOMY,
    scripts: Path | None = None,
    zone: str = "Europe/Berlin",
    clock: Clock | None = None,
    on_kill: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[WorkerPool]:
    """Run a pool. If no folder is given, the pool has no scripts."""
    async with WorkerPool(
        limits=limits,
        scripts=None if scripts is None else Folder(path=scripts, name="config/scripts", is_deep=True),
        timezone=ZoneInfo(zone),
        clock=clock or Clock(),
        on_kill=on_kill,
    ) as pool:
        yield pool


def file(text: str) -> Source:
    return Source(name=FILE, text=text.encode())


def scene(body: str) -> Source:
    """Return the text of a scene. `execute` is on line 1, and the body begins on line 2."""
    return file(f"return {{id = 'test', name = 'Test', execute = function(ctx, event)\n{body}\nend}}")


class Started:
    """A run in a separate task. Several callers can wait for its end."""

    def __init__(self, run: LuaRun) -> None:
        self.lua = run
        self.stop_after_call = run.stop_after_call
        self._task = asyncio.get_running_loop().create_task(run.finish())

    async def end(self) -> Failure:
        """Wait for the result. If the waiting task is cancelled, the execution continues."""
        await asyncio.wait([self._task])
        return self._task.result()


def start(
    pool: WorkerPool,
    source: Source,
    calls: LuaCalls,
    event: Any = None,
    *,
    name: str,
    priority: Priority = Priority.NORMAL,
    client: str = "",
) -> Started:
    return Started(pool.begin(source, calls, event, name=name, priority=priority, client=client))


async def ended(execution: Started) -> None:
    """Wait until the execution has ended. If the execution did not succeed, raise `ScriptFailed` or
    `ExecutionCancelled`."""
    failure = await execution.end()
    if isinstance(
        failure, ScriptFailed
    ):  # create a new error each time, because the frames in a stored error's traceback would remain in memory
        raise ScriptFailed(failure.fault, failure.status)
    if failure is not None:
        raise ExecutionCancelled(str(failure))


async def run(pool: WorkerPool, body: str, notes: Notes | None = None, event: Any = None) -> Notes:
    """Run the body to its end, and record its calls and log lines."""
    notes = notes or Notes()
    await ended(start(pool, scene(body), notes, event, name="scene:test"))
    return notes
