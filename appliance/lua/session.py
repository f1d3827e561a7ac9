"""A session: one file's conversation with the worker that holds its Lua, and the time that it may take."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Protocol

from appliance.clock import Clock
from appliance.errors import Invalid
from appliance.lua.execution_limits import ExecutionLimits
from appliance.lua.scripts import Scripts
from appliance.lua.source import Source
from appliance.lua_worker.protocol import LAST, TIMING, FrameKind, Reason, WorkerFrame, encode

Log = Callable[[str, str, bytes], None]
"""Takes a line that Lua logs: level, message, fields as JSON or nothing."""

AnswerParts = tuple[bytes, ...]
"""What ANSWER holds behind its timing."""

CANCELLED = WorkerFrame(FrameKind.STOPPED, 0, (bytes([Reason.CANCELLED]), b""))


class Channel(Protocol):
    """What a session needs of its worker."""

    def enqueue(self, session: Session) -> None:
        """Have the session `transmit` as soon as there is room for another whose Lua runs."""

    def send(self, session: Session, data: bytes) -> None:
        """Send a frame, because of which Lua of the session runs."""

    def leave(self, session: Session) -> None:
        """The session is over and holds no Lua."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What all sessions share. `clock` is what Lua is told of the time; the limits are the machine's seconds."""

    limits: ExecutionLimits
    scripts: Scripts
    clock: Clock
    machine: Clock


class Session:
    """One file's Lua in a worker, known there by its number and to people by its name.

    `interrupt` is called with a last word if the session must end while Lua waits for the hub: LOST with its worker,
    or STOPPED at the backstop.
    """

    def __init__(
        self, channel: Channel, number: int, name: str, source: Source, log: Log, settings: SessionSettings
    ) -> None:
        self.number = number
        self.name = name
        self.log = log
        self.files = [source]
        self.deadline = inf
        """When what goes on now has reached its limit, by the machine's clock."""
        self.interrupt: Callable[[WorkerFrame], None] = ignore
        self._channel = channel
        self._settings = settings
        self._place = b""
        self._is_begun = self._is_stopping = self._is_over = False
        self._outgoing: tuple[FrameKind, tuple[bytes, ...]] = (FrameKind.STOP, ())
        self._reply: asyncio.Future[WorkerFrame] | None = None
        self._backstop = inf
        self._cpu_until: float | None = None
        self._limit = Reason.CPU

    # --- for whoever runs the file -------------------------------------------------------------------

    def begin(self, kind: FrameKind, *parts: bytes) -> asyncio.Future[WorkerFrame]:
        """Run the file; see `post`."""
        source = self.files[0]
        return self.post(kind, source.chunk, source.name.encode(), *parts)

    def post(self, kind: FrameKind, *parts: bytes) -> asyncio.Future[WorkerFrame]:
        """Let Lua run; the future comes to what it says then: a request, or a last word.

        STOPPED with `Reason.STUCK` where it does not stop in time, LOST where the worker is lost.
        """
        self._reply = reply = asyncio.get_running_loop().create_future()
        if self._is_over or self._is_stopping:
            reply.set_result(CANCELLED)
        else:
            self._outgoing = (kind, parts)
            self._channel.enqueue(self)
        return reply

    async def converse(self, reply: asyncio.Future[WorkerFrame]) -> WorkerFrame:
        """What Lua says next, but for scripts that it requires: these are read here."""
        frame = await reply
        while frame.kind is FrameKind.REQUEST and frame.parts[0] == b"require":
            frame = await self.post(FrameKind.ANSWER, *await asyncio.to_thread(self._load, frame.parts[1]))
        return frame

    async def wait_for(self, call: Awaitable[AnswerParts], *, counts: bool) -> AnswerParts:
        """The hub's answer, for which Lua waits; its running time begins anew. Time that does not count moves the
        backstop, which else interrupts.
        """
        began = self._settings.machine.monotonic()
        self.deadline = self._backstop if counts else inf
        answer = await call
        self.deadline, self._cpu_until = inf, None
        if not counts:
            self._backstop += self._settings.machine.monotonic() - began
        return answer

    @property
    def secs_left(self) -> float:
        """Until the limit of what goes on now; infinite where there is none."""
        return max(0.0, self.deadline - self._settings.machine.monotonic())

    def stop(self) -> None:
        """End Lua in the worker, whatever it does. The reply, if one is awaited, comes all the same."""
        if self._is_over or self._is_stopping:
            return
        if self._is_begun:
            self._is_stopping = True
            self._send(0.0, encode(FrameKind.STOP, self.number, bytes([Reason.CANCELLED])))
        else:
            self.receive(CANCELLED)
            self._channel.leave(self)

    # --- for the worker ------------------------------------------------------------------------------

    def transmit(self) -> None:
        """It is this session's turn: send what was posted."""
        if self._is_over or self._is_stopping:
            return
        limits, now = self._settings.limits, self._settings.machine.monotonic()
        if not self._is_begun:
            self._is_begun, self._backstop = True, now + limits.backstop_secs
        if self._cpu_until is None:
            self._cpu_until = now + limits.max_cpu_secs
        until, self._limit = min((self._cpu_until, Reason.CPU), (self._backstop, Reason.BACKSTOP))
        secs, (kind, parts) = max(0.0, until - now), self._outgoing
        timing = TIMING.pack(secs, self._limit, self._settings.clock.now().timestamp())
        self._send(secs, encode(kind, self.number, timing, *parts))

    def receive(self, frame: WorkerFrame) -> bool:
        """Take what Lua says; whether it does not run any more."""
        if frame.kind is FrameKind.REQUEST:
            self._place = frame.parts[2] or self._place
            if self._is_stopping:
                return False  # it crossed with the order to stop
        self._is_over = frame.kind in LAST
        self.deadline = inf
        reply, self._reply = self._reply, None
        if reply is not None and not reply.done():
            reply.set_result(frame)
        elif frame.kind is FrameKind.LOST:
            self.interrupt(frame)
        return True

    def note_place(self, place: bytes) -> None:
        """Lua is at this line, `file:line`, or was when it last looked up."""
        self._place = place or self._place

    def expire(self, *, is_running: bool) -> None:
        """The deadline has passed: Lua could not be stopped, or waits for the hub beyond the backstop."""
        self.deadline = inf
        reasons = (Reason.STUCK, self._limit) if is_running else (Reason.BACKSTOP,)
        (self.receive if is_running else self.interrupt)(
            WorkerFrame(FrameKind.STOPPED, 0, (bytes(reasons), self._place))
        )

    def lose(self, sentence: str) -> None:
        """The worker is gone."""
        if not self._is_over:
            self.receive(WorkerFrame(FrameKind.LOST, 0, (sentence.encode(errors="replace"),)))

    def _send(self, secs: float, data: bytes) -> None:
        self.deadline = self._settings.machine.monotonic() + secs
        self._channel.send(self, data)

    def _load(self, name: bytes) -> tuple[bytes, ...]:
        try:
            script = self._settings.scripts.load(name.decode(errors="replace"))
        except Invalid as error:
            return b"", str(error).encode(errors="replace")
        self.files.append(script)
        return b"1", script.chunk, script.name.encode()


def ignore(_: WorkerFrame) -> None:
    """Nobody is there to be interrupted."""
