"""An execution: one run of a Lua file, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import orjson

from appliance.clock import Clock
from appliance.errors import Invalid, LaresError, RunCancelled, ScriptFailed
from appliance.lua.failures import failure_of, lost
from appliance.lua.limits import Limits
from appliance.lua.scripts import Scripts
from appliance.lua.session import Session, WorkerLost
from appliance.lua.source import Source
from appliance.lua_worker.protocol import TIMING, Frame, Kind, Reason
from appliance.tasks import Tasks

log = logging.getLogger("scripts")


def _forget(_: str) -> None:
    return None


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


class Stretch:
    """The time that an execution may take, by the machine's clock; `clock` is what Lua is told of the present."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._machine = Clock()
        self._backstop = self._machine.monotonic() + limits.backstop_secs
        self._cpu = 0.0
        self.renew()

    @property
    def left(self) -> float:
        """Seconds until the backstop."""
        return self._backstop - self._machine.monotonic()

    def renew(self) -> None:
        """Lua called ctx: its running time begins anew."""
        self._cpu = self._machine.monotonic() + self._limits.max_cpu_secs

    def extend(self, seconds: float) -> None:
        """So many seconds were slept, and do not count."""
        self._backstop += seconds

    def timing(self) -> tuple[float, bytes]:
        """For how long Lua may run now, and that as the worker is told."""
        now = self._machine.monotonic()
        secs = max(0.0, min(self._cpu, self._backstop) - now)
        reason = Reason.CPU if self._cpu <= self._backstop else Reason.BACKSTOP
        return secs, TIMING.pack(secs, reason, self._clock.now().timestamp())


class Conversation:
    """What a file's Lua asks until it ends; `require` is answered here, the rest by `answer`."""

    def __init__(self, session: Session, source: Source, scripts: Scripts, stretch: Stretch) -> None:
        self.files = [source]
        self.stretch = stretch
        self._session = session
        self._scripts = scripts

    async def begin(self, kind: Kind, *parts: bytes) -> Frame:
        """Run the file until it asks for something but a script, or ends."""
        source = self.files[0]
        return await self._next(kind, source.chunk, source.name.encode(), *parts)

    async def answer(self, is_ok: bool, *parts: bytes) -> Frame:
        """Go on with the answer until it asks again, or ends."""
        return await self._next(Kind.ANSWER, b"1" if is_ok else b"", *parts)

    async def _next(self, kind: Kind, *parts: bytes) -> Frame:
        frame = await self._exchange(kind, *parts)
        while frame.kind is Kind.REQUEST and frame.parts[0] == b"require":
            frame = await self._exchange(Kind.ANSWER, *await asyncio.to_thread(self._load, frame.parts[1]))
        return frame

    async def _exchange(self, kind: Kind, *parts: bytes) -> Frame:
        secs, timing = self.stretch.timing()
        return await self._session.exchange(kind, timing, *parts, secs=secs)

    def _load(self, name: bytes) -> tuple[bytes, ...]:
        try:
            script = self._scripts.load(name.decode(errors="replace"))
        except Invalid as error:
            return b"", str(error).encode(errors="replace")
        self.files.append(script)
        return b"1", script.chunk, script.name.encode()


class Execution:
    """One execution. It goes on whether or not anybody waits for it."""

    def __init__(self, talk: Conversation, session: Session, calls: Calls, limits: Limits) -> None:
        self._talk = talk
        self._session = session
        self._calls = calls
        self._limits = limits
        self._is_cancelled = False
        self._aborted: ScriptFailed | RunCancelled | None = None
        self._task: asyncio.Task[ScriptFailed | RunCancelled | None] | None = None
        session.on_lost = self._on_lost

    def begin(self, event: bytes, tasks: Tasks, at_end: Callable[[Execution], None]) -> None:
        """For the executor: start; `at_end` is called when all is over."""
        self._task = tasks.start(self._run(event), f"run of {self._session.name}")
        self._task.add_done_callback(partial(self._leave, at_end))

    async def wait(self) -> None:
        """Return when the execution has ended well; else raise `ScriptFailed` or `RunCancelled`."""
        assert self._task is not None
        try:
            failure = await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise  # it is the waiter that was cancelled
            failure = self._aborted or self._cancelled()
        if isinstance(failure, ScriptFailed):  # an error for each waiter: one that is kept holds all that it passed
            raise ScriptFailed(failure.fault, failure.status)
        if failure is not None:
            raise RunCancelled(str(failure))

    def cancel(self) -> None:
        """End it at the next `ctx` call; a sleep or a command under way returns first. Running Lua ends at once."""
        self._is_cancelled = True
        self._session.stop(Reason.CANCELLED)

    def abort(self) -> None:
        """End it now, in a sleep or a command too. A command that was sent to a device is not taken back."""
        self._end(self._cancelled())

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody asked for its end."""
        return self._is_cancelled

    def _leave(self, at_end: Callable[[Execution], None], _: object) -> None:
        self._session.on_lost = _forget  # no circle may keep what is over
        self._session.stop(Reason.CANCELLED)
        at_end(self)

    def _end(self, failure: ScriptFailed | RunCancelled) -> None:
        if self._aborted is None and self._task is not None:
            self._aborted = failure
            self._task.cancel()

    def _on_lost(self, sentence: str) -> None:
        self._end(lost(sentence, self._talk.files))

    def _cancelled(self) -> RunCancelled:
        return RunCancelled(f"{self._talk.files[0].name} was cancelled before it was done")

    async def _run(self, event: bytes) -> ScriptFailed | RunCancelled | None:
        """How it ended."""
        try:
            frame = await self._drive(event)
            if frame.kind is Kind.DONE:
                return None
            if frame.kind is Kind.STOPPED and self._is_cancelled:
                return self._cancelled()
            return await asyncio.to_thread(failure_of, frame, self._talk.files, self._limits)
        except WorkerLost as error:
            return lost(str(error), self._talk.files)
        except asyncio.CancelledError:
            if self._aborted is None:
                raise
            return self._aborted

    async def _drive(self, event: bytes) -> Frame:
        """What Lua says last."""
        frame = self._stopped() or await self._talk.begin(Kind.EXECUTE, event)
        while frame.kind is Kind.REQUEST:
            frame = self._stopped() or await self._go_on(frame)
        return frame

    def _stopped(self) -> Frame | None:
        """What stands for the last word of an execution that was cancelled."""
        is_cancelled = self._is_cancelled
        return Frame(Kind.STOPPED, 0, (bytes([Reason.CANCELLED]), b"")) if is_cancelled else None

    async def _go_on(self, request: Frame) -> Frame:
        answer = await self._within_backstop(request)
        if answer is None:
            return await self._stop_at_backstop()
        self._talk.stretch.renew()
        return self._stopped() or await self._talk.answer(*answer)

    async def _stop_at_backstop(self) -> Frame:
        """Learn where Lua is, which will not go on."""
        return await self._session.exchange(Kind.STOP, bytes([Reason.BACKSTOP]), secs=0.0)

    async def _within_backstop(self, request: Frame) -> tuple[bool, bytes] | None:
        """The answer; None where it takes too long."""
        stretch, operation, arguments = self._talk.stretch, request.parts[0].decode(), orjson.loads(request.parts[1])
        before = stretch.left
        if operation in UNCOUNTED:
            answer = await self._call(operation, arguments)
            stretch.extend(before - stretch.left)
            return answer
        try:
            async with asyncio.timeout(max(0.0, before)):
                return await self._call(operation, arguments)
        except TimeoutError:
            return None

    async def _call(self, operation: str, arguments: Any) -> tuple[bool, bytes]:
        try:
            answer = orjson.dumps(await self._calls.call(operation, arguments))
            if len(answer) > MAX_ANSWER_BYTES:
                raise Invalid(f"ctx:{operation}: the answer is larger than 4 MiB")
            return True, answer
        except LaresError as error:
            return False, str(error).encode(errors="replace")
        except Exception as error:  # a fault of the hub's is one execution's failure and not the hub's
            log.error("ctx:%s failed: %s: %s", operation, type(error).__name__, error)
            log.debug("ctx:%s", operation, exc_info=error)
            return False, f"ctx:{operation} failed inside the hub ({type(error).__name__})".encode()
