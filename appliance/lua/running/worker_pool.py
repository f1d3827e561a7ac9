"""Runs Lua files in worker processes. Each run has a separate Lua state with limits.

At most one worker receives new runs. If this worker ends, for example because it needs too much memory, the next run
starts a new worker.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson

from appliance.adapters.lua_calls import LuaCalls
from appliance.clock import Clock, timestamp
from appliance.errors import ExecutionCancelled, Fault, Invalid, ScriptFailed
from appliance.event_loop import in_steps
from appliance.home.values import to_bytes
from appliance.lua.files.folder import Folder, folder_of
from appliance.lua.running.load_limit import current_load
from appliance.lua.running.lua_run import Failure, LuaRun, Priority
from appliance.lua.running.run_limits import WORKER_BYTES, RunLimits, RunSettings
from appliance.lua.running.stuck_files import StuckFiles
from appliance.lua.running.worker import Worker
from appliance.lua.text.source import Source
from appliance.lua_worker.protocol import FrameKind
from appliance.settings import AutomationRunner, ScriptsSettings
from appliance.shortening import join_first
from appliance.tables.checks import Function
from appliance.tasks import Tasks

MAX_FAILED_STARTS = 3
"""If this number of consecutive workers end before they are ready, the waiting runs fail."""

MAX_LOSSES = 5
"""If workers end this number of times while they run the same file, the file is treated as the cause."""

LOSS_PAUSE_SECS = 0.1
"""Pause in seconds before an interrupted file runs again. The pause is multiplied by the number of interruptions."""

MAX_KILLS_KEPT = 20
MAX_NAMES_IN_LOSS = 5

MAX_CALL_BYTES = 20 << 20
"""Maximum size of the JSON argument for a function of a kind."""

MIN_SPARE_AGE_SECS = 10.0
"""If a worker ends before this age, it is replaced only when a run needs a worker. The delay slows down a
crash loop."""

log = logging.getLogger("lua")
scripts_log = logging.getLogger("scripts")

_FUNCTION = "\0function"
_EXECUTING = (FrameKind.EXECUTE, FrameKind.CALL)
"""The frames that run a function. All other frames only read a file."""


class WorkerPool:
    """Owns the workers: the current worker, which takes all new runs, and workers that are ending. The first run
    starts a worker. Leaving the context ends all workers at once.

    - `scripts`: the folder for `require`; None if scripts are disabled.
    - `clock`, `timezone`: the time in Lua. Limits are real seconds.
    - `on_kill`: receives a sentence for each lost worker.
    - `on_start`: called one iteration of the event loop before a worker starts.
    """

    def __init__(
        self,
        *,
        limits: RunLimits,
        scripts: Folder | None,
        timezone: ZoneInfo,
        clock: Clock,
        on_kill: Callable[[str], None] = lambda _: None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = RunSettings(limits, scripts, clock, timezone, Clock())
        self._on_kill = on_kill
        self._on_start = on_start
        self._worker_tasks = Tasks()
        self._workers: list[Worker] = []
        self._current: Worker | None = None
        self._kills: deque[dict[str, Any]] = deque(maxlen=MAX_KILLS_KEPT)
        self._kill_count = 0
        self._is_closing = False
        self._has_warned = False
        self._failed_starts = 0
        self._one_at_a_time = asyncio.Lock()
        self._stuck = StuckFiles(self._settings.machine)

    async def __aenter__(self) -> WorkerPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_closing = True
        for run in self._list_runs():
            run.cancel()
        await self._worker_tasks.__aexit__()

    @property
    def running(self) -> int:
        """Return the number of runs, not including files that are only described or compiled."""
        return sum(each.is_active and each.kind in _EXECUTING for each in self._list_runs())

    def figures(self) -> dict[str, Any]:
        workers = [each.figures() for each in self._workers]
        kills = {"kills": self._kill_count, "last_kills": list(self._kills)}
        return {"running": self.running, "workers": workers, **kills}

    async def describe(self, source: Source, *, is_kind: bool = False) -> Mapping[str, Any]:
        """Run the file's top-level code, and return the result as plain data. Functions become `Function`.

        If `is_kind` is true, the file has the globals of adapter kinds. Raise `ScriptFailed` if the file fails.
        """
        run, load = partial(self._run_file, FrameKind.DESCRIBE, source, b"1" if is_kind else b""), current_load()
        description = await (run() if load is None else load.run(source, self._settings, run))
        return await asyncio.to_thread(_read_description, description)

    async def call(self, source: Source, calls: LuaCalls, call: Mapping[str, Any], *, name: str) -> bytes:
        """Run the file of an adapter kind, then the function at `path`. Return the function's result as JSON.

        `call` is `{path, settings, memory, first?, second?, reruns?}`. If `reruns` is set and the worker ends during
        the call, run the function once more. Cancelling the waiting task ends the call. Raise `ScriptFailed` if the
        function fails.
        """
        given = orjson.dumps(call)
        if len(given) > MAX_CALL_BYTES:
            raise ScriptFailed(Fault(source.name, 0, f"the input of {name} is too large: {len(given) >> 20} MiB"))
        run, failure = await self._run_once(FrameKind.CALL, source, given, calls, name)
        if call.get("reruns") and run.is_lost and self._stuck.refusal_of(source) is None:
            run, failure = await self._run_once(FrameKind.CALL, source, given, calls, name)
        try:
            if failure is not None:
                raise failure
            return run.description
        finally:
            del run, failure  # a variable that refers to a raised exception forms a cycle with its traceback

    async def compile(self, source: Source) -> None:
        """Compile the file without running it. Raise `ScriptFailed` if the file is not valid Lua."""
        await self._run_file(FrameKind.COMPILE, source)

    def begin(
        self,
        source: Source,
        calls: LuaCalls,
        event: Mapping[str, Any] | None = None,
        *,
        name: str,
        priority: Priority = Priority.NORMAL,
        client: str = "",
    ) -> LuaRun:
        """Begin a run in a worker: the file's top-level code, then `execute(ctx)` or `execute(ctx, event)`. Then
        await the run's `finish`."""
        given = b"" if event is None else to_bytes(event)
        return self._begin(FrameKind.EXECUTE, source, given, calls, name, priority=priority, client=client)

    def has_room(self, *, is_alarm: bool) -> bool:
        """Return whether only a few runs of scenes and automations would begin before a new run."""
        return self._current is None or self._current.has_room(is_alarm=is_alarm)

    @property
    def is_half_used(self) -> bool:
        """Return whether the current worker uses half of its maximum memory."""
        return self._current is not None and self._current.is_half_used

    @property
    def unended(self) -> int:
        """Return the number of scenes and automations in the current worker that have not ended."""
        return 0 if self._current is None else self._current.unended

    async def wait_for_change(self) -> None:
        """Wait until `has_room` may have changed."""
        if self._current is not None:
            await self._current.wait_for_change()

    def _begin(
        self,
        kind: FrameKind,
        source: Source,
        given: bytes,
        calls: LuaCalls,
        name: str,
        settings: RunSettings | None = None,
        *,
        priority: Priority = Priority.NORMAL,
        client: str = "",
    ) -> LuaRun:
        """Begin a run, by default with the settings of the pool."""
        run = LuaRun(name, kind, source, given, calls, settings or self._settings, priority=priority, client=client)
        if self._is_closing:
            run.cancel()
        else:
            self._begin_in_worker(run)
        return run

    def _begin_in_worker(self, run: LuaRun) -> None:
        """Begin the run in the current worker, or in a new worker. A file that repeatedly could not be stopped
        can be described, but not executed."""
        if run.kind in _EXECUTING and (refusal := self._stuck.refusal_of(run.source)) is not None:
            run.lose(refusal)
        else:
            worker = self._current
            run.begin(worker if worker is not None and worker.is_usable else self._start_worker())

    async def _run_once(
        self,
        kind: FrameKind,
        source: Source,
        given: bytes,
        calls: LuaCalls,
        name: str,
        settings: RunSettings | None = None,
    ) -> tuple[LuaRun, Failure]:
        run = self._begin(kind, source, given, calls, name, settings)
        return run, await run.finish()

    async def _run_file(
        self, kind: FrameKind, source: Source, given: bytes = b"", settings: RunSettings | None = None
    ) -> bytes:
        """Return the result of the file's top-level code.

        If the worker ends while the file runs, run the file again, because another file may be the cause. Run
        interrupted files one after another, so that the faulty file cannot interrupt the others.
        """
        begin = partial(self._run_once, kind, source, given, _FileCalls(source.name), source.name, settings)
        run, failure = await begin()
        if run.is_lost:
            async with self._one_at_a_time:
                for losses in range(1, MAX_LOSSES):
                    await self._settings.machine.sleep(LOSS_PAUSE_SECS * losses)
                    run, failure = await begin()
                    if not run.is_lost:
                        break
        if isinstance(failure, ExecutionCancelled):
            raise ScriptFailed(Fault(source.name, 0, str(failure)))
        try:
            if failure is not None:
                raise failure
            return run.description
        finally:
            del run, failure  # a variable that refers to a raised exception forms a cycle with its traceback

    def _start_worker(self) -> Worker:
        self._current = worker = Worker(self._settings, self._stuck.note, self._note_confinement)
        self._workers.append(worker)
        self._worker_tasks.start(self._follow(worker), "Lua worker")
        self._on_start()
        return worker

    async def _follow(self, worker: Worker) -> None:
        """Let the worker live until it ends. Then end its runs, or begin them in another worker if they
        `may_begin`, unless workers cannot start."""
        try:
            await worker.live()
        finally:
            self._note_end(worker)
            ends = self._end_runs(worker)
            try:
                await in_steps(self._settings.machine, ends)
            finally:
                for _ in ends:  # the pool is closing
                    pass

    def _end_runs(self, worker: Worker) -> Iterator[None]:
        """End the runs of a worker that has ended, or begin them in another worker, one per step, alarms first."""
        for run in sorted(worker.list_runs(), key=lambda each: not each.is_alarm):
            if run.may_begin and self._failed_starts < MAX_FAILED_STARTS and not self._is_closing:
                self._begin_in_worker(run)
            else:
                run.lose(worker.ended_because or "the Lua worker ended")
            yield

    def _list_runs(self) -> list[LuaRun]:
        """Return the runs whose Lua has not ended."""
        return [run for worker in self._workers for run in worker.list_runs()]

    def _note_confinement(self, missing: str) -> None:
        if missing and not self._has_warned:
            self._has_warned = True
            log.warning("the sandbox of the Lua worker is incomplete: %s", missing)

    def _note_end(self, worker: Worker) -> None:
        self._workers.remove(worker)
        reason = worker.ended_because or ""
        if not worker.is_quiet:
            self._note_loss(worker, reason)
        self._failed_starts = 0 if worker.is_ready else self._failed_starts + 1
        if worker is self._current:
            self._current = None
            if not self._is_closing and worker.is_ready and worker.age_secs >= MIN_SPARE_AGE_SECS:
                self._start_worker()

    def _note_loss(self, worker: Worker, reason: str) -> None:
        lost = [run for run in worker.list_runs() if run.is_begun and not run.may_begin and run.kind in _EXECUTING]
        if lost:
            alarms = {run.name for run in lost if run.is_alarm}
            names = [*sorted(alarms), *sorted({run.name for run in lost} - alarms)]
            failed = join_first(names, MAX_NAMES_IN_LOSS)
            reason = f"{reason}; the executions in it failed: {failed}; start them again if necessary"
        self._kill_count += 1
        self._kills.appendleft({"at": timestamp(self._settings.clock.now()), "pid": worker.pid, "reason": reason})
        log.error("%s", reason)
        self._on_kill(reason)


class _FileCalls:
    """The `LuaCalls` for the top-level code of a file. Top-level code has no `ctx`."""

    counted_secs = 0.0

    def __init__(self, file: str) -> None:
        self._file = file

    async def call(self, operation: str, arguments: Any) -> Any:
        raise Invalid(f"{operation} is available only in a kind's functions, not while the kind's file is loaded")

    def log(self, level: str, message: str, fields: Any) -> None:
        scripts_log.info("%s", message, extra={"file": self._file})


def _read_description(body: bytes) -> Mapping[str, Any]:
    def read_object(found: dict[str, Any]) -> Any:
        return Function(found[_FUNCTION]) if _FUNCTION in found else found

    description: Mapping[str, Any] = json.loads(body, object_hook=read_object)
    return description


def build_pool(
    scripts: ScriptsSettings,
    runner: AutomationRunner,
    timezone: ZoneInfo,
    root: Path,
    clock: Clock,
    on_kill: Callable[[str], None] = lambda _: None,
    on_start: Callable[[], None] = lambda: None,
    user_ids: tuple[int, ...] = (),
    max_cpu_secs: float = inf,
    unsaved: Source | None = None,
    worker_bytes: int = WORKER_BYTES,
) -> WorkerPool:
    """Return a pool with the configured limits. `root` is the parent of relative paths. If root starts a worker,
    the worker runs with the user and groups in `user_ids`. `max_cpu_secs` is the limit of kinds in Lua, if any.
    `unsaved` replaces a script. For `worker_bytes`, see `RunLimits`. See `WorkerPool` for the other arguments."""
    limits = RunLimits(
        max_memory_mb=scripts.max_memory_mb,
        max_cpu_secs=min(scripts.max_cpu_secs, max_cpu_secs),
        cpu_limit="scripts.max_cpu_secs" if scripts.max_cpu_secs <= max_cpu_secs else "the limit of a kind in Lua",
        max_cpu_total_secs=scripts.max_cpu_total_secs,
        backstop_secs=runner.backstop_timeout_secs,
        worker_bytes=worker_bytes,
        user_ids=user_ids,
    )
    return WorkerPool(
        limits=limits,
        scripts=folder_of(scripts, root, unsaved),
        timezone=timezone,
        clock=clock,
        on_kill=on_kill,
        on_start=on_start,
    )
