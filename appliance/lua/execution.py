"""An execution: one run of a Lua file, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from math import inf
from typing import Any, Protocol

import orjson

from appliance.errors import Invalid, LaresError, RunCancelled, ScriptFailed
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.failures import failure_of
from appliance.lua.session import CANCELLED, AnswerParts, Session, ignore
from appliance.lua_worker.protocol import FrameKind, WorkerFrame
from appliance.tasks import Tasks

log = logging.getLogger("scripts")

Failure = ScriptFailed | RunCancelled | None
"""How an execution ended; None where it ended well."""

UNCOUNTED = ("sleep", "wait_for", "run_scene")
"""Calls whose time does not count: they only wait, or count for themselves."""

MAX_ANSWER_BYTES = 4 << 20
"""Of JSON that one call can give to Lua."""


class Calls(Protocol):
    """What `ctx` reaches in the hub."""

    async def call(self, operation: str, arguments: Any) -> Any:
        """Do what `ctx:<operation>` asks and answer in JSON data; a `LaresError` is raised at the user's line."""

    def log(self, level: str, message: str, fields: Any) -> None:
        """Take a line that Lua logs or prints."""


OnEnd = Callable[["LuaExecution", Failure], None]


class LuaExecution:
    """One execution. It goes on whether or not anybody waits for it."""

    def __init__(self, session: Session, calls: Calls, limits: ExecutionLimits, on_end: OnEnd) -> None:
        self._session = session
        self._calls = calls
        self._limits = limits
        self._on_end = on_end
        self._is_cancelled = False
        self._last_word: WorkerFrame | None = None
        self._abort_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Failure] | None = None

    def begin(self, event: bytes, tasks: Tasks) -> None:
        """For the runner: start. Lua runs before this returns, if its worker is ready."""
        self._session.interrupt = self._interrupt
        reply = self._session.begin(FrameKind.EXECUTE, event)
        self._task = tasks.start(self._run(reply), f"run of {self._session.name}")
        self._task.add_done_callback(self._end)

    async def wait(self) -> None:
        """Return when the execution has ended well; else raise `ScriptFailed` or `RunCancelled`."""
        assert self._task is not None
        await asyncio.wait([self._task])
        failure = self._failure(self._task)
        if isinstance(failure, ScriptFailed):  # an error for each waiter: one that is kept holds all that it passed
            raise ScriptFailed(failure.fault, failure.status)
        if failure is not None:
            raise RunCancelled(str(failure))

    def cancel(self) -> None:
        """End it at the next `ctx` call; a sleep or a command under way returns first. Running Lua ends at once."""
        if not self._is_cancelled and (left := self._session.secs_left) < inf:  # a call may never return
            self._abort_timer = asyncio.get_running_loop().call_later(left, self.abort)
        self._is_cancelled = True
        self._session.stop()

    def abort(self) -> None:
        """End it now, in a sleep or a command too. A command that was sent to a device is not taken back."""
        self._interrupt(CANCELLED)

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked for its end."""
        return self._is_cancelled

    def _interrupt(self, last_word: WorkerFrame) -> None:
        if self._last_word is None and self._task is not None:
            self._last_word = last_word
            self._task.cancel()

    def _end(self, task: asyncio.Task[Failure]) -> None:
        self._session.interrupt = ignore  # no circle may keep what is over
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        self._session.stop()
        on_end, self._on_end = self._on_end, _ignore
        on_end(self, self._failure(task))

    def _failure(self, task: asyncio.Task[Failure]) -> Failure:
        if task.cancelled():  # before it had begun, or with the hub
            return RunCancelled(f"{self._session.files[0].name} was cancelled before it was done")
        return task.result()

    async def _run(self, reply: asyncio.Future[WorkerFrame]) -> Failure:
        """How it ended."""
        try:
            frame = await self._converse(reply)
            if frame.kind is FrameKind.DONE:
                return None
        except asyncio.CancelledError:
            if self._last_word is None:
                raise
            frame = self._last_word
        if self._is_cancelled and frame.kind is FrameKind.STOPPED:
            frame = CANCELLED
        return await asyncio.to_thread(failure_of, frame, self._session.files, self._limits)

    async def _converse(self, reply: asyncio.Future[WorkerFrame]) -> WorkerFrame:
        """What Lua says last."""
        session = self._session
        frame = await session.converse(reply)
        while frame.kind is FrameKind.REQUEST:
            operation, arguments = frame.parts[0].decode(), frame.parts[1]
            if not self._is_cancelled:
                answer = await session.wait_for(self._call(operation, arguments), counts=operation not in UNCOUNTED)
            if self._is_cancelled:
                return CANCELLED
            frame = await session.converse(session.post(FrameKind.ANSWER, *answer))
        return frame

    async def _call(self, operation: str, arguments: bytes) -> AnswerParts:
        try:
            answer = orjson.dumps(await self._calls.call(operation, orjson.loads(arguments)))
            if len(answer) > MAX_ANSWER_BYTES:
                raise Invalid(f"ctx:{operation}: the answer is larger than 4 MiB")
            return b"1", answer
        except LaresError as error:
            return b"", str(error).encode(errors="replace")
        except Exception as error:  # a fault of the hub's is one execution's failure and not the hub's
            log.error("ctx:%s failed: %s: %s", operation, type(error).__name__, error, exc_info=error)
            return b"", f"ctx:{operation} failed inside the hub ({type(error).__name__})".encode()


def _ignore(*_: object) -> None:
    return None
