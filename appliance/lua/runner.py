"""The runner: runs Lua files on its threads, each execution in a state of its own and within its limits."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from appliance.clock import Clock
from appliance.lua import zone
from appliance.lua.failures import failure_of
from appliance.lua.limits import GRACE, Limits, Watch
from appliance.lua.pool import Pool
from appliance.lua.run import Calls, Run
from appliance.lua.scripts import Scripts
from appliance.lua.source import Source
from appliance.lua.state import Done, Failed, State, Stopped
from appliance.lua.stepper import Stepper
from appliance.tasks import Tasks

log = logging.getLogger("scripts")

_FUNCTION = "\0function"


@dataclass(frozen=True, slots=True)
class Function:
    """Stands for a function in what a file describes; `line` is where the function begins."""

    line: int


class Runner:
    """Owns the threads and every execution. Leaving the context cancels all; it takes two seconds at most.

    `scripts` is the folder that `require` reads from, None where scripts are disabled; `scripts_name` is what people
    call it. `clock` and `timezone` are what Lua is told of the time; the limits are the machine's seconds.
    """

    def __init__(
        self, *, limits: Limits, scripts: Path | None, scripts_name: str, timezone: ZoneInfo, clock: Clock
    ) -> None:
        self.limits = limits
        self._scripts = Scripts(scripts, scripts_name)
        self._time = zone.functions_of(timezone, clock)
        self._machine = Clock()
        self._tasks = Tasks()
        self._pool = Pool()
        self._running: set[Run] = set()

    async def __aenter__(self) -> Runner:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.__aexit__()
        self._pool.close()
        await self._pool.join(self._machine, GRACE)

    @property
    def running(self) -> int:
        """How many executions have begun and not ended."""
        return len(self._running)

    @property
    def threads(self) -> int:
        """How many threads there are; those given up are not counted."""
        return self._pool.threads

    @property
    def abandoned(self) -> int:
        """How many threads were given up because they were lost in a library function."""
        return self._pool.abandoned

    async def describe(self, source: Source) -> Mapping[str, Any]:
        """Run the file's own code and give what it returns as plain data, functions as `Function`.

        `ScriptFailed` where it fails, ends at a limit, or returns anything but a table of data.
        """
        stepper, state = self._prepare(source)
        try:
            step = await stepper.step(partial(state.describe, partial(_log_line, source.name), self._time))
        finally:
            stepper.leave()
        if isinstance(step, Stopped | Failed):
            raise failure_of(step, state.files, self.limits)
        assert isinstance(step, Done)  # a file's own code cannot reach ctx
        description: Mapping[str, Any] = _with_functions(orjson.loads(step.description))
        return description

    def start(self, source: Source, calls: Calls, event: Mapping[str, Any] | None = None, *, name: str) -> Run:
        """Begin an execution of the file: its own code, then `execute(ctx)`, or `execute(ctx, event)`."""
        stepper, state = self._prepare(source)
        body = None if event is None else orjson.dumps(event)
        first = partial(state.start, body, calls.log, self._time)
        run = Run(stepper, state, calls, self.limits)
        self._running.add(run)
        run.begin(self._tasks, first, name, self._running.discard)
        return run

    def _prepare(self, source: Source) -> tuple[Stepper, State]:
        watch = Watch(self.limits, self._machine)
        state = State(source, self.limits.max_memory, watch, self._scripts)
        return Stepper(self._pool, state, watch, self.limits), state


def _log_line(file: str, level: str, message: str, fields: Any) -> None:
    log.info("%s", message, extra={"file": file})


def _with_functions(value: Any) -> Any:
    """The description with `Function` in the place of what stands for one."""
    if isinstance(value, list):
        return [_with_functions(each) for each in value]
    if not isinstance(value, dict):
        return value
    if _FUNCTION in value:
        return Function(value[_FUNCTION])
    return {key: _with_functions(each) for key, each in value.items()}
