"""The hub's side of a run: a Lua file that runs once in a worker.

`begin` sends the file to a worker. If the worker ends before it has received the file, the pool calls `begin` again.
If an alarm caused the run, this also applies until the first call of `ctx`, at most `MAX_REPEATS` times.
`finish` answers each request from Lua, and returns the failure, if any. A run ends in one of these ways:

- The worker sends the last frame, because Lua has ended or was stopped.
- The worker ends, or no worker can begin the run (`lose`).
- `cancel`, or a call that takes too long, interrupts `finish` (`_interrupt`).
- A call returns after `stop_after_call`.

`_phase` is the state of Lua in its worker. `_end` is the reason why the run has ended on the hub's side.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from enum import Enum
from functools import partial
from math import inf
from typing import Any, Protocol

import orjson
from msgspec import Struct

from appliance.adapters.lua_calls import LuaCalls, LuaCancelled
from appliance.errors import Busy, ExecutionCancelled, Fault, ScriptFailed
from appliance.lua.files.folder import answer_require
from appliance.lua.running.ctx_calls import READING, UNCOUNTED, answer_call, describe_call, seconds_of_sleep
from appliance.lua.running.failures import failure_of, place_of
from appliance.lua.running.run_limits import RunSettings
from appliance.lua.running.run_times import RunTimes
from appliance.lua.text.source import Source
from appliance.lua_worker.protocol import CPU, LAST, TIMING, FrameKind, Reason, WorkerFrame, encode

MAX_REPEATS = 2
"""Maximum number of times that a run of an alarm begins again after its worker has ended. The run itself may be the
cause."""

log = logging.getLogger("lua")

Failure = ScriptFailed | ExecutionCancelled | Busy | None
"""The result of a run. None means success."""


class Phase(Enum):
    """The phase of a run's Lua in its worker."""

    QUEUED = "no worker has received the file"
    ACTIVE = "the worker has received the file, and Lua runs or waits for a call"
    STOPPING = "the worker must stop Lua, and still sends the last frame"
    OVER = "the last frame has arrived"


class Priority(Enum):
    """The place of a run among the runs of scenes and automations that wait to begin."""

    NORMAL = "after the runs that already wait"
    ALARM = "before others, because an alarm caused the run"
    NESTED = "at once if there is memory, because the run takes the place of an execution that waits for it"
    NESTED_ALARM = "at once, like NESTED, but even without memory, because an alarm caused the run"
    CLIENT = "only while the worker has enough memory, and fairly among clients, because a client caused the run"


class _Call(Struct, frozen=True):
    """A call of `ctx` that Lua waits for. `until` is the end of a wait, in seconds of the machine's clock."""

    operation: str
    arguments: bytes
    began_at: datetime
    until: float


_CANCELLED = WorkerFrame(FrameKind.STOPPED, 0, (bytes([Reason.CANCELLED]), b""))


class Channel(Protocol):
    """The part of `Worker` that runs use. The class is a `Protocol`, because `worker.py` imports this file."""

    def add(self, run: LuaRun) -> int:
        """Return the number that identifies the run in the worker."""

    def send(self, run: LuaRun, kind: FrameKind, parts: tuple[bytes, ...]) -> None:
        """Send the frame to the run's Lua when the worker has a free slot."""

    def stop(self, run: LuaRun) -> None:
        """Stop the run's Lua in the worker, even during a computation."""

    def leave(self, run: LuaRun) -> None:
        """Remove a run whose Lua has ended."""

    def release(self, run: LuaRun) -> None:
        """Let another run begin, because the hub's side of this run has ended."""


class LuaRun:
    """One run of a Lua file. The worker's side is a `LuaState`. An `Execution` has one run, which executes a scene or
    automation. Other runs describe a file, compile it, or call a kind's function.

    Log lines and messages contain `name`. `kind` is the frame that begins the run. `event` is the last part of this
    frame: JSON for EXECUTE and CALL. `client` is the client that started the run, with `Priority.CLIENT`.

    - `queued_secs`: the time until the worker received the file.
    - `number`: identifies the run in its worker; 0 without a worker.
    - `description`: the result of a DESCRIBE or CALL frame, as JSON.
    - `cpu_secs`: processor time of the run's Lua, as last reported.
    - `_repeats_left`: how many times the run may begin again after a worker has received it.
    - `_reply`: the next frame from Lua.
    - `_task`: the task of `finish`. An interruption cancels it.
    - `_end`: Lua's last frame, or a frame that describes the interruption.
    """

    _worker: Channel

    def __init__(
        self,
        name: str,
        kind: FrameKind,
        source: Source,
        event: bytes,
        calls: LuaCalls,
        settings: RunSettings,
        *,
        priority: Priority = Priority.NORMAL,
        client: str = "",
    ) -> None:
        self.name = name
        self.priority = priority
        self.is_alarm = priority in (Priority.ALARM, Priority.NESTED_ALARM)
        self._repeats_left = MAX_REPEATS if self.is_alarm else 0
        self.client = client
        self.queued_secs = 0.0
        self._submitted_at = settings.machine.monotonic()
        self.kind = kind
        self.source = source
        self._calls = calls
        self._settings = settings
        self._files = [source]
        self._event = event
        self._reply: asyncio.Future[WorkerFrame] = asyncio.get_running_loop().create_future()
        self.times = RunTimes(settings.limits, settings.machine)
        self.number = 0
        self.description = b""
        self.cpu_secs = 0.0
        self._phase = Phase.QUEUED
        self._end: WorkerFrame | None = None
        self._task: asyncio.Task[Any] | None = None
        self._call: _Call | None = None
        self._position = self._required = b""
        self._is_remarked = False
        self._cancel_timer: asyncio.TimerHandle | None = None

    @property
    def is_active(self) -> bool:
        """Return whether Lua runs or will run, and has not been stopped."""
        return self._phase in (Phase.QUEUED, Phase.ACTIVE)

    @property
    def is_begun(self) -> bool:
        """Return whether the worker received the file, or the run has ended."""
        return self._phase is not Phase.QUEUED

    @property
    def may_begin(self) -> bool:
        """Return whether a worker may begin the run: no worker has received the file, or the run may begin again,
        and nothing has interrupted the run."""
        is_repeatable = self._phase is Phase.ACTIVE and self._repeats_left > 0
        return self._end is None and (self._phase is Phase.QUEUED or is_repeatable)

    @property
    def is_lost(self) -> bool:
        """Return whether the run ended because its worker ended, or because no worker could begin it."""
        return self._end is not None and self._end.kind is FrameKind.LOST

    def begin(self, worker: Channel) -> None:
        """Send the file to the worker."""
        if self._phase is Phase.ACTIVE:  # the worker that had received the file has ended
            self._phase = Phase.QUEUED
            self._repeats_left -= 1
            self.cpu_secs = 0.0
            self._position = self._required = b""
            self._is_remarked = False
        self._worker = worker
        self.number = worker.add(self)
        self.times = RunTimes(self._settings.limits, self._settings.machine)
        worker.send(self, self.kind, (self.source.chunk, self.source.name.encode(), self._event))

    async def finish(self) -> Failure:
        """Answer the requests from Lua until the run ends, and return its failure. Call `begin` first.

        A fault of the hub ends only this run. If the calling task is cancelled, stop Lua.
        """
        try:
            frame = self._end = await self._answer_requests()
            if frame.kind is FrameKind.DONE:
                self.description = frame.parts[0]
                return None
            is_kind = self.kind is FrameKind.CALL
            convert = partial(failure_of, frame, self._files, self._settings.limits, is_kind=is_kind)
            if frame.kind is FrameKind.STOPPED and len(frame.parts) > 2:
                return self._note_stopped(convert(), frame.parts[2].decode(errors="replace"))
            # only the search for hints is slow; at a stop, hundreds of executions are cancelled together
            return await asyncio.to_thread(convert) if frame.kind is FrameKind.FAILED else convert()
        except Exception as error:
            log.error("%s failed inside the hub", self.name, exc_info=error)
            return ScriptFailed(Fault(self._files[0].name, 0, "failed inside the hub; see the hub's log"))

    def _note_stopped(self, failure: Failure, script: str) -> Failure:
        """If Lua was stopped while `require` loaded this script, note the script for other runs."""
        if script and self._settings.stopped_scripts is not None and isinstance(failure, ScriptFailed):
            self._settings.stopped_scripts.note(self._files, script, str(failure))
        return failure

    async def _answer_requests(self) -> WorkerFrame:
        """Answer requests until the run ends. Return Lua's last frame, or a frame that describes the interruption."""
        self._task = asyncio.current_task()
        try:
            while self._end is None:
                frame = await self._reply
                if frame.kind is not FrameKind.REQUEST:
                    return frame
                answer = await self._answer(frame) if self._phase is Phase.ACTIVE else ()
                if self._phase is not Phase.ACTIVE:  # see `stop_after_call`
                    return _CANCELLED
                self._reply = asyncio.get_running_loop().create_future()
                self._worker.send(self, FrameKind.ANSWER, answer)
        except asyncio.CancelledError:
            if self._end is None or self._task is None:
                raise LuaCancelled(place_of(self._position, self._files)) from None
            self._task.uncancel()
            return self._end
        else:
            return self._end
        finally:
            self._task = None
            if self._cancel_timer is not None:
                self._cancel_timer.cancel()
            self._stop()
            if self.number:
                self._worker.release(self)

    def describe_activity(self) -> tuple[str, str]:
        """Return the run's status (`queued`, `running`, or `waiting`), and a description of its activity."""
        if (call := self._call) is not None:
            began = call.began_at.astimezone(self._settings.zone)
            return "waiting", describe_call(call.operation, call.arguments, began)
        if (secs := self.times.computing_secs) is None:
            return ("running", "running") if self.is_begun else ("queued", "waiting for the Lua worker")
        return "running", f"computing for {secs:.0f} s"

    def is_working(self, until: float) -> bool:
        """Return whether the run computes, waits for the result of a call, or will end its sleep by `until`
        (in seconds of the monotonic clock)."""
        return self.is_begun and (self._call is None or self._call.until <= until)

    @property
    def is_sleeping(self) -> bool:
        """Return whether Lua waits for a call that may take long, such as a sleep or a scene."""
        return self._call is not None and self._call.operation in UNCOUNTED

    def stop_after_call(self) -> None:
        """End the run at once if Lua is running. If Lua is waiting, end the run when the current call, such as a
        sleep, returns."""
        if self.is_active and self.times.deadline < inf:  # a call may never return
            left = max(0.0, self.times.deadline - self._settings.machine.monotonic())
            self._cancel_timer = asyncio.get_running_loop().call_later(left, self.cancel)
        self._stop()

    def cancel(self) -> None:
        """End the run now, even in a sleep or a command. A command already sent to a device is not undone."""
        self._interrupt(_CANCELLED)

    @property
    def counted_secs(self) -> float:
        """Return the seconds that the backstop has counted so far."""
        return self.times.counted_secs if self.is_begun else 0.0

    async def _answer(self, request: WorkerFrame) -> tuple[bytes, ...]:
        """Return the parts of the ANSWER frame, with a module or the result of a `ctx` method.

        If the method does more than read, restart the running time. Extend the backstop by the time of `UNCOUNTED`
        methods.
        """
        operation, arguments = request.parts[0].decode(), request.parts[1]
        if operation == "require":
            stopped = self._settings.stopped_scripts
            return await asyncio.to_thread(answer_require, self._settings.scripts, arguments, self._files, stopped)
        is_counted, is_reading = operation not in UNCOUNTED, operation in READING
        began, counted = self._settings.machine.monotonic(), self._calls.counted_secs
        self.times.begin_call(is_counted=is_counted, is_reading=is_reading)
        if not is_reading:
            until = -inf if is_counted else began + seconds_of_sleep(operation, arguments)
            self._call = _Call(operation, arguments, self._settings.clock.now(), until)
        answer = await answer_call(self._calls, operation, arguments)
        self._call = None
        counted_secs = self._calls.counted_secs - counted
        self.times.end_call(0.0 if is_counted else self._settings.machine.monotonic() - began - counted_secs)
        return answer

    def _stop(self) -> None:
        """Stop Lua in the worker, even during a computation. The worker still sends the last frame."""
        if self._phase is Phase.ACTIVE:
            self._phase = Phase.STOPPING
            self.times.deadline = self._settings.machine.monotonic()
            self._worker.stop(self)
        elif self._phase is Phase.QUEUED and self.number:
            self.receive(_CANCELLED)
            self._worker.leave(self)

    def _interrupt(self, frame: WorkerFrame) -> None:
        if self._end is None:
            self._end = frame
            if self._task is not None:
                self._task.cancel()

    # The worker calls the following methods.

    def encode_frame(self, kind: FrameKind, parts: tuple[bytes, ...]) -> bytes | None:
        """Return the frame with its timing, and start measuring Lua's running time. Return None if the run must not
        continue."""
        if not self.is_active:
            return None
        timing = TIMING.pack(
            *self.times.resume(self.cpu_secs), self.times.limit, self._settings.clock.now().timestamp()
        )
        return encode(kind, self.number, timing, *parts)

    def note_begun(self) -> None:
        """Record that the worker received the file."""
        self._phase = Phase.ACTIVE
        if not self._repeats_left:
            self._event = b""  # the worker has it
        self.queued_secs = self._settings.machine.monotonic() - self._submitted_at

    def receive(self, frame: WorkerFrame) -> bool:
        """Handle a frame of this run. Return whether Lua has paused or ended."""
        if frame.kind is FrameKind.REQUEST:
            self._repeats_left = 0
            self.note_position(frame.parts[2])
            if self._phase is Phase.STOPPING:
                return False  # Lua sent the frame before STOP arrived
            self.note_cpu(*CPU.unpack(frame.parts[3]))
            if (secs := self.times.computing_secs) is not None:
                self._remark(secs)
        elif frame.kind in LAST:
            if self._phase is Phase.STOPPING and frame.kind is FrameKind.STOPPED:
                frame = _CANCELLED  # even if Lua exceeded a limit before STOP arrived
            self._phase = Phase.OVER
        self.times.pause()
        if not self._reply.done():
            self._reply.set_result(frame)
        elif frame.kind is FrameKind.LOST:
            self._interrupt(frame)
        return True

    def log(self, level: bytes, message: bytes, fields: bytes) -> None:
        texts = level.decode(errors="replace"), message.decode(errors="replace")
        self._calls.log(*texts, orjson.loads(fields) if fields else None)

    @property
    def secs_left(self) -> float:
        """Return the seconds until Lua exceeds a limit, at the earliest."""
        return self.times.secs_left(self.cpu_secs)[0]

    def note_position(self, position: bytes) -> None:
        """Store the line of Lua's last poll as `file:line`."""
        self._position = position or self._position

    def note_required(self, file: bytes) -> None:
        """Store the file that `require` is loading while Lua computes."""
        self._required = file

    def note_cpu(self, secs: float) -> None:
        self._remark(secs)
        self.cpu_secs = secs

    def _remark(self, secs: float) -> None:
        """Log one warning when the processor time exceeds `unremarked_cpu_secs`. `secs` includes calls that only
        read."""
        limit = self._settings.limits.unremarked_cpu_secs
        if secs < limit or self._is_remarked:
            return
        self._is_remarked = True
        at = f"; its current line is {self._position.decode(errors='replace')}" if self._position else ""
        log.warning("%s has used %g s of processor time%s", self.name, limit, at)

    def expire(self, *, is_running: bool) -> None:
        """End the run after its deadline. Either Lua could not be stopped, or a `ctx` call took longer than the
        backstop allows."""
        reasons = (Reason.STUCK, self.times.secs_left(self.cpu_secs)[1]) if is_running else (Reason.BACKSTOP,)
        self.times.deadline = inf
        frame = WorkerFrame(FrameKind.STOPPED, 0, (bytes(reasons), self._position, self._required))
        (self.receive if is_running else self._interrupt)(frame)

    def lose(self, sentence: str) -> None:
        """End the run because its worker has ended, or because no worker can begin it. `sentence` is the reason."""
        if self._phase is not Phase.OVER:
            self.receive(WorkerFrame(FrameKind.LOST, 0, (sentence.encode(errors="replace"),)))

    def refuse(self, sentence: str) -> None:
        """End the run before it begins, because the worker has no memory for it. `sentence` is the reason."""
        self.receive(WorkerFrame(FrameKind.REFUSED, 0, (sentence.encode(),)))
