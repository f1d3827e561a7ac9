"""Executes scenes and automations as their modes allow, and records the results.

The first methods of `Executor` are in the order of an execution's life, from `submit` to `_end`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from appliance.byte_budget import ByteBudget, estimate_json_memory
from appliance.clock import Clock
from appliance.errors import Busy, ExecutionCancelled, NotFound
from appliance.event_loop import in_steps, wait_for_short_turn
from appliance.history.execution_history import ExecutionEntry, ExecutionHistory, ExecutionStatus
from appliance.home.values import to_bytes
from appliance.lua.running.context import Context
from appliance.lua.running.lua_run import LuaRun, Priority
from appliance.lua.running.modes import Decision, Mode, apply_mode, refusal
from appliance.lua.running.trace import MAX_TRACE_STEPS
from appliance.lua.running.unfinished_executions import UnfinishedExecutions
from appliance.lua.running.worker import HALF_USED
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from appliance.tasks import SharedRun, Tasks

MAX_EVENT_BYTES = 8 << 20
"""Maximum memory of the decoded events of all running and waiting executions except the first execution of each scene
or automation. Alarms begin even beyond this limit."""

EVENTS_FULL = f"the events of the running and waiting executions would need more than {MAX_EVENT_BYTES >> 20} MiB"

DROPPED_ALARM = (
    "%s '%s' did not run for the alarm of %s: %s; set a higher max: "
    'mode = { type = "parallel", max = N } or { type = "queued", max = N }'
)

REPLACED = "a later execution replaced this one (mode restart)"
STOPPED = "the hub stopped"
CANCELLED = "cancelled on request"
DELETED = "disabled: its file was deleted"

MAX_BY_CLIENTS = 1000
"""Maximum number of executions that clients started and that have not ended, for scenes and automations each. If they
use half of the worker's memory, fewer are accepted."""

RESERVED_PER_CLIENT = 16
"""Number of executions that each key or broker may have even if others have `MAX_BY_CLIENTS`."""

ENDS_AT_ONCE = 64
"""Number of executions that a cancel, switch, or reload ends before it pauses. An end needs about 0.1 ms."""

MIN_REPORTED_WAIT_SECS = 1.0
"""An execution that has waited this long for room in the worker reports the wait as a warning."""

log = logging.getLogger("lua")


class ExecutionRequest(Struct, frozen=True, kw_only=True):
    """A request to run a file.

    - `kind`: `scene` or `automation`.
    - `id`, `name`: identify the scene or automation.
    - `by_hand`: whether to start regardless of the mode. The mode does not count a run that was started by hand.
    - `is_waited_for`: whether a caller waits for the result, so that the run skips the queue for room in the worker.
    - `is_alarm`: whether an alarm attribute of a device caused the request, or the execution that made it.
    - `client`: the key or the broker whose client made the request, or started the execution that made it.
    - `chain`: the labels of the executions that led to the request.
    - `steps`: the first steps of the trace.
    """

    kind: str
    id: str
    name: str
    source: Source
    mode: Mode
    event: Mapping[str, Any] | None = None
    by_hand: bool = False
    is_waited_for: bool = False
    is_alarm: bool = False
    client: str = ""
    chain: tuple[str, ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """The name in logs and chains, such as `scene:evening`."""
        return f"{self.kind}:{self.id}"

    @property
    def is_by_client(self) -> bool:
        """Return whether a client started the execution, not a trigger or another execution."""
        return self.is_waited_for and not self.chain

    @property
    def priority(self) -> Priority:
        if self.is_alarm:
            return Priority.NESTED_ALARM if self.chain else Priority.ALARM
        if self.is_by_client or self.client:
            return Priority.CLIENT
        return Priority.NESTED if self.chain else Priority.NORMAL


OnEnd = Callable[[ExecutionRequest, ExecutionEntry], None]
"""Receives the request and the history entry of an ended execution."""


NewContext = Callable[[ExecutionRequest], Context]
"""Returns the context of an execution of the request."""


class ExecutionView(Struct, frozen=True, kw_only=True):
    """A running or waiting execution, for the API. `of` is the id of the scene or automation. `doing` describes the
    activity."""

    id: str
    kind: str
    of: str
    name: str
    started_at: datetime
    status: str
    doing: str
    cpu_secs: float


class Execution:
    """An execution in the hub, from its submission until its result is known.

    It passes through these stages:

    1. Waiting: the mode delays it.
    2. Admitted (`_admit`): it occupies a slot of the mode. It may still wait for room in the worker.
    3. Started (`start`, `_run`): `lua` runs the file.
    4. Ended (`_end`): `ended` contains the result. An execution can end in any stage.

    `unended_before` is the number of unended executions in the worker when this execution was admitted.
    `occupies_mode` is false once the mode ignores the execution.
    If `is_skipped` is true, the execution will end soon, and never begins.
    """

    def __init__(self, request: ExecutionRequest, at: datetime, on_end: OnEnd | None = None) -> None:
        self.id = os.urandom(4).hex()
        self.request = request
        self.on_end = on_end
        self.at = at
        self.decision = Decision.RUN
        self.occupies_mode = not request.by_hand
        self.event_bytes = 0
        self.ended: asyncio.Future[ExecutionEntry] = asyncio.get_running_loop().create_future()
        self.context: Context | None = None
        self.lua: LuaRun | None = None
        self.admitted = 0.0
        self.began = 0.0
        self.unended_before = 0
        self.end_because = STOPPED
        self.is_skipped = False
        self.refusal: str | None = None

    async def result(self) -> ExecutionEntry:
        """Wait until the execution has ended, and return its result. Raise `Busy` if a client started the execution,
        but the worker had no memory for it."""
        entry = await asyncio.shield(self.ended)
        if self.refusal is not None:
            raise Busy(self.refusal)
        return entry

    def view(self, *, is_admitted: bool) -> ExecutionView:
        request, lua = self.request, self.lua
        room = f"waiting for room in the Lua worker until some of {self.unended_before} executions end"
        wait = room if is_admitted else "waiting for earlier executions"
        status, doing = ("queued", wait) if lua is None else lua.describe_activity()
        if lua is not None and status == "queued" and self.unended_before:
            doing = room
        return ExecutionView(
            id=self.id,
            kind=request.kind,
            of=request.id,
            name=request.name,
            started_at=self.at,
            status=status,
            doing=doing,
            cpu_secs=0.0 if lua is None else round(lua.cpu_secs, 3),
        )


class Executor:
    """Runs requests, and records each result in the history and the log. Leaving the context cancels all running and
    waiting executions."""

    def __init__(
        self,
        pool: WorkerPool,
        new_context: NewContext,
        clock: Clock,
        history: ExecutionHistory,
        unfinished: UnfinishedExecutions | None = None,
    ) -> None:
        self.history = history
        self._unfinished = unfinished
        self._pool = pool
        self._new_context = new_context
        self._clock = clock
        self._admitted: dict[Execution, None] = {}
        self._admitted_by_id: dict[str, dict[Execution, None]] = {}
        self._waiting: dict[str, dict[Execution, None]] = {}
        self._unstarted: dict[Execution, None] = {}
        self._unstarted_alarms: dict[Execution, None] = {}
        self._by_clients: set[Execution] = set()
        self._ended = dict.fromkeys(ExecutionStatus, 0)
        self._events = ByteBudget(MAX_EVENT_BYTES)
        self._is_stopping = False
        self._tasks = Tasks()
        self._late_starts = SharedRun(self._start_unstarted, self._tasks, "start of executions")

    async def __aenter__(self) -> Executor:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel_all()
        await asyncio.gather(*(execution.ended for execution in self._admitted))
        await self._tasks.__aexit__()

    def submit(self, request: ExecutionRequest, on_end: OnEnd | None = None) -> Execution:
        """Start, queue, or drop the request, depending on its mode and on other executions with the same id. `on_end`
        receives the result before `Execution.ended` is set.

        Raise `Busy` if a client makes the request, and other executions need the remaining memory.
        """
        if request.is_by_client:
            self._check_room(request)
        execution = Execution(request, self._clock.now(), on_end)
        admitted, waiting = self._occupying(request.id), self._waiting.get(request.id, {})
        if request.is_by_client:
            self._by_clients.add(execution)
        if not request.by_hand:
            execution.decision = apply_mode(request.mode, len(admitted), len(waiting))
        if (why := self._reserve(execution, admitted, waiting)) is not None:
            self._end(execution, ExecutionStatus.DROPPED, f"mode: {why}")
            return execution
        match execution.decision:
            case Decision.RUN:
                self._admit(execution)
            case Decision.REPLACE:
                for each in (*admitted, *waiting):
                    self._replace(each)
                self._admit(execution)
            case Decision.QUEUE:
                self._waiting.setdefault(request.id, {})[execution] = None
        return execution

    def _check_room(self, request: ExecutionRequest) -> None:
        is_full = len(self._by_clients) >= MAX_BY_CLIENTS
        if is_full and self._count_by_client(request.client) >= RESERVED_PER_CLIENT:
            why = f"{MAX_BY_CLIENTS} executions that clients started have not ended"
        elif self._pool.is_half_used:
            why = HALF_USED
        else:
            return
        raise _busy(request, why)

    def _count_by_client(self, client: str) -> int:
        return sum(each.request.client == client for each in self._by_clients)

    def _reserve(
        self, execution: Execution, admitted: Collection[Execution], waiting: Collection[Execution]
    ) -> str | None:
        """Count the event of an execution next to others. Return the reason if the execution must be dropped."""
        decision, event = execution.decision, execution.request.event
        if decision is Decision.DROP:
            return refusal(execution.request.mode, len(admitted), len(waiting))
        if event is not None and (admitted or waiting):
            size = estimate_json_memory(to_bytes(event))
            is_limited = decision is not Decision.REPLACE and not execution.request.is_alarm
            if is_limited and not self._events.has_room(size):
                return EVENTS_FULL
            execution.event_bytes = size
            self._events.held += size
        return None

    def _admit(self, execution: Execution) -> None:
        """Occupy a slot of the mode, then start the execution. Unless a caller waits for it, it first waits for room
        in the worker. Alarms wait only for other alarms."""
        execution.admitted, execution.unended_before = self._clock.monotonic(), self._pool.unended
        self._admitted[execution] = None
        self._admitted_by_id.setdefault(execution.request.id, {})[execution] = None
        request = execution.request
        earlier = self._unstarted_alarms if request.is_alarm else self._unstarted
        has_room = not earlier and self._pool.has_room(is_alarm=request.is_alarm)
        if not (has_room or request.is_waited_for):
            earlier[execution] = self._unstarted[execution] = None
            if not self._late_starts.is_busy:
                self._late_starts.start()
        else:
            self.start(execution)

    async def _start_unstarted(self) -> None:
        """Start the automations that wait for room in the worker, alarms first. Waiting needs little memory."""
        while (execution := next(iter(self._unstarted_alarms or self._unstarted), None)) is not None:
            if execution.is_skipped:
                self._leave_unstarted(execution)
            elif self._pool.has_room(is_alarm=execution.request.is_alarm):
                self._leave_unstarted(execution)
                self.start(execution)
            else:
                await self._pool.wait_for_change()

    def _leave_unstarted(self, execution: Execution) -> None:
        self._unstarted.pop(execution, None)
        self._unstarted_alarms.pop(execution, None)

    def start(self, execution: Execution) -> None:
        """Begin the execution's Lua at once. `_run` waits for the result. Simulations override this method: an
        execution can then wait while it occupies a slot, or end at once with `finish`."""
        request = execution.request
        execution.at, execution.began = self._clock.now(), self._clock.monotonic()
        try:
            execution.context = context = self._new_context(request)
            execution.lua = self._pool.begin(
                request.source,
                context,
                request.event,
                name=request.label,
                priority=self.priority_of(request),
                client=request.client,
            )
            if self._unfinished is not None:
                self._unfinished.begin(execution.id, request.kind, request.id, execution.at)
            self._tasks.start(self._run(execution, execution.lua), f"run of {request.label}")
        except Exception as error:  # if the execution cannot begin, it must not occupy a slot
            reason = f"it could not begin: {type(error).__name__}: {error}"
            log.error("'%s' failed: %s", request.label, reason, exc_info=error)
            self._end(execution, ExecutionStatus.ERROR, reason)
            # if hundreds fail, nested calls would exceed the recursion limit
            asyncio.get_running_loop().call_soon(self._admit_next, request.id)

    def priority_of(self, request: ExecutionRequest) -> Priority:
        return request.priority

    async def _run(self, execution: Execution, lua: LuaRun) -> None:
        """Wait until the execution's Lua has ended."""
        failure = await lua.finish()
        await wait_for_short_turn()  # a result with a long trace needs 1 ms, and hundreds may end together
        if failure is None:
            self.finish(execution, ExecutionStatus.OK, None)
        elif isinstance(failure, Busy):
            execution.refusal = str(_busy(execution.request, str(failure)))
            self.finish(execution, ExecutionStatus.DROPPED, execution.refusal)
        elif isinstance(failure, ExecutionCancelled):
            self.finish(execution, ExecutionStatus.CANCELLED, execution.end_because)
        else:
            self.finish(execution, ExecutionStatus(failure.status), str(failure))

    def finish(self, execution: Execution, status: ExecutionStatus, error: str | None) -> None:
        """Record the result, and let the next execution begin."""
        self._end(execution, status, error)
        self._admit_next(execution.request.id)

    def _end(self, execution: Execution, status: ExecutionStatus, error: str | None) -> None:
        self._events.held -= execution.event_bytes
        self._admitted.pop(execution, None)
        _remove(self._admitted_by_id, execution)
        self._leave_unstarted(execution)
        self._by_clients.discard(execution)
        if self._unfinished is not None:
            self._unfinished.end(execution.id)
        _remove(self._waiting, execution)
        self._ended[status] += 1
        request, entry = execution.request, self._entry_of(execution, status, error)
        try:
            if execution.on_end is not None:
                execution.on_end(request, entry)
            self._record(request, entry)
        # even if recording fails, the callers need the result and the slot must become free
        except Exception as failure:
            log.error("'%s' has ended, but its end could not be recorded", request.label, exc_info=failure)
        execution.ended.set_result(entry)

    def _entry_of(self, execution: Execution, status: ExecutionStatus, error: str | None) -> ExecutionEntry:
        request, context = execution.request, execution.context
        return ExecutionEntry(
            subject=request.id,
            executed_at=execution.at,
            status=status,
            error=error,
            results=() if context is None else tuple(context.results),
            duration_ms=0 if context is None else round((self._clock.monotonic() - execution.began) * 1000),
            counted_secs=0.0 if execution.lua is None else execution.lua.counted_secs,
            trigger_payload=request.event,
            trace=(*request.steps, *(() if context is None else context.trace.list_steps()))[-MAX_TRACE_STEPS:],
            warnings=(*_describe_wait(execution), *(() if context is None else context.warnings)),
        )

    def _record(self, request: ExecutionRequest, entry: ExecutionEntry) -> None:
        part = logging.getLogger(f"{request.kind}s")
        if entry.status in (ExecutionStatus.ERROR, ExecutionStatus.TIMEOUT):
            part.warning("%s '%s' failed: %s", request.kind, request.id, entry.error)
        elif entry.status is ExecutionStatus.DROPPED and request.priority is Priority.ALARM:
            device_id = (request.event or {}).get("device_id")
            part.warning(DROPPED_ALARM, request.kind, request.id, device_id, entry.error)
        else:
            part.debug("%s '%s': %s", request.kind, request.id, entry.error or entry.status)
        self.history.add(entry)

    def _admit_next(self, id_: str) -> None:
        waiting = next((each for each in self._waiting.get(id_, ()) if not each.is_skipped), None)
        if waiting is not None and not self._is_stopping and not self._occupying(id_):
            _remove(self._waiting, waiting)
            self._admit(waiting)

    def skip(self, request: ExecutionRequest, because: str) -> ExecutionEntry:
        """Record in the history that the request did not run. Return the history entry."""
        entry = self._entry_of(Execution(request, self._clock.now()), ExecutionStatus.SKIPPED, because)
        self._record(request, entry)
        return entry

    def cancel_execution(self, execution_id: str) -> bool:
        """Cancel the execution. Return whether the execution was running or waiting."""
        for execution in (*self._admitted, *self._all_waiting()):
            if execution.id == execution_id:
                self.cancel(execution, CANCELLED)
                return True
        return False

    async def cancel_executions(self, id_: str) -> int:
        """Cancel the running and waiting executions of a scene or automation. Return the number of cancelled
        executions."""
        every = (*self._waiting.get(id_, ()), *self._admitted_by_id.get(id_, ()))
        await self._run_steps(map(partial(self.cancel, because=CANCELLED), every))
        return len(every)

    def cancel(self, execution: Execution, because: str) -> None:
        """End a running execution at once, even in a sleep or a command. If the execution is waiting, it never
        begins."""
        if execution.lua is not None:
            execution.end_because = because
            execution.lua.cancel()
        elif not execution.ended.done():
            self.finish(execution, ExecutionStatus.CANCELLED, because)

    def _replace(self, execution: Execution) -> None:
        """End the execution: at once if it is waiting, otherwise after its current call. From now on, the mode
        does not count this execution."""
        execution.occupies_mode = False
        if execution.lua is None:
            self._end(execution, ExecutionStatus.CANCELLED, REPLACED)
        else:
            execution.end_because = REPLACED
            execution.lua.stop_after_call()

    async def skip_waiting(self, id_: str, because: str) -> None:
        """Remove the executions with this id that have not started, and record them as skipped."""
        every = (*self._unstarted_of(id_), *self._waiting.get(id_, ()))
        await self._skip(every, because)

    async def use_sources(self, sources: Mapping[str, Source]) -> None:
        """Let the executions that have not started run these sources, by id. Skip executions without a source."""
        deleted: list[Execution] = []
        for execution in (*self._unstarted, *self._all_waiting()):
            if (source := sources.get(execution.request.id)) is None:
                deleted.append(execution)
            else:
                execution.request = replace(execution.request, source=source)
        await self._skip(deleted, DELETED)

    async def _skip(self, executions: Collection[Execution], because: str) -> None:
        """Record the executions as skipped. None of them begins meanwhile."""
        for each in executions:
            each.is_skipped = True
        await self._run_steps(self._end_waiting(executions, ExecutionStatus.SKIPPED, because))
        for id_ in {each.request.id for each in executions}:
            self._admit_next(id_)  # an execution that was queued meanwhile

    async def _run_steps(self, steps: Iterable[object]) -> None:
        """Run all steps, even if the caller is cancelled. Pause only after `ENDS_AT_ONCE` steps: if the executions
        make each turn long, a cancel must still end them soon."""
        batches = (number for number, _ in enumerate(steps, 1) if number % ENDS_AT_ONCE == 0)
        await self._tasks.finish(in_steps(self._clock, batches), "end of executions")

    def _end_waiting(self, executions: Iterable[Execution], status: ExecutionStatus, because: str) -> Iterator[None]:
        """End the executions that have not begun, one per step."""
        for execution in executions:
            if execution.lua is None and not execution.ended.done():  # another task may have ended it
                self._end(execution, status, because)
            yield

    def begin_to_stop(self) -> None:
        """Cancel all waiting executions in the background. Running executions continue."""
        self._is_stopping = True
        self._tasks.start(in_steps(self._clock, self._cancel_waiting()), "end of waiting executions")

    def cancel_all(self) -> None:
        """Cancel all running and waiting executions because the hub is stopping.

        Log one line for each running execution, with its activity.
        """
        for _ in self._cancel_waiting():
            pass
        for execution in tuple(self._admitted):
            if execution.lua is not None:
                doing = execution.lua.describe_activity()[1]
                log.info(
                    "%s was interrupted because the hub is stopping; its activity: %s", execution.request.label, doing
                )
            self.cancel(execution, STOPPED)

    def _cancel_waiting(self) -> Iterator[None]:
        waiting = (*self._all_waiting(), *self._unstarted)
        return self._end_waiting(waiting, ExecutionStatus.CANCELLED, STOPPED)

    def list_executions(self, id_: str | None = None) -> list[ExecutionView]:
        every = (*self._admitted, *self._all_waiting())
        return [each.view(is_admitted=each in self._admitted) for each in every if id_ in (None, each.request.id)]

    def count_running(self, id_: str) -> int:
        return len(self._admitted_by_id.get(id_, ()))

    def figures(self) -> dict[str, Any]:
        """Return the numbers of running, waiting, and ended executions. A replaced execution is counted as running
        until it ends."""
        ended = {status.value: count for status, count in self._ended.items()}
        return {"running": len(self._admitted), "waiting": len(self._all_waiting()), "ended": ended}

    def is_working(self, until: float) -> bool:
        """Return whether a running execution could still end by `until`, a time in seconds of the monotonic clock."""
        return any(each.lua is not None and each.lua.is_working(until) for each in self._admitted)

    def _occupying(self, id_: str) -> list[Execution]:
        return [execution for execution in self._admitted_by_id.get(id_, ()) if execution.occupies_mode]

    def _unstarted_of(self, id_: str) -> list[Execution]:
        return [execution for execution in self._admitted_by_id.get(id_, ()) if execution in self._unstarted]

    def _all_waiting(self) -> list[Execution]:
        return [execution for waiting in self._waiting.values() for execution in waiting]


def _describe_wait(execution: Execution) -> list[str]:
    """Return a sentence if the execution waited long for room in the worker."""
    if execution.lua is None:
        return []
    secs = execution.began - execution.admitted + execution.lua.queued_secs
    behind = f"waited {secs:.1f} s to begin, because {execution.unended_before} executions had not ended"
    return [behind] if secs >= MIN_REPORTED_WAIT_SECS and execution.unended_before else []


def _remove(by_id: dict[str, dict[Execution, None]], execution: Execution) -> None:
    executions = by_id.get(id_ := execution.request.id, {})
    executions.pop(execution, None)
    if id_ in by_id and not executions:
        del by_id[id_]


def list_executions(executors: Iterable[Executor], id_: str | None = None) -> list[ExecutionView]:
    """Return the running and waiting executions, oldest first. If `id_` is given, return only executions of this
    scene or automation."""
    every = [view for executor in executors for view in executor.list_executions(id_)]
    return sorted(every, key=lambda each: each.started_at)


def cancel_execution(executors: Iterable[Executor], execution_id: str) -> None:
    """Cancel the execution. Raise `NotFound` if the execution is neither running nor waiting."""
    if not any(executor.cancel_execution(execution_id) for executor in executors):
        raise NotFound("execution", execution_id)


def _busy(request: ExecutionRequest, why: str) -> Busy:
    return Busy(f"{request.kind} '{request.id}' did not start, because {why}; cancel some, or try again later")
