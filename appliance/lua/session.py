"""A session: one execution's conversation with the worker that holds its Lua."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from appliance.lua.limits import GRACE_SECS
from appliance.lua_worker.protocol import LAST, Frame, Kind, Reason, encode

Log = Callable[[str, str, bytes], None]
"""Takes a line that Lua logs: level, message, fields as JSON or nothing."""


class Line(Protocol):
    """What a session needs of its worker."""

    gate: asyncio.Semaphore

    async def wait_ready(self) -> None:
        """Return once the worker takes frames; raises `WorkerLost` where it never will."""

    def send(self, data: bytes) -> None:
        """Send a frame."""

    def note_running(self, session: Session, is_running: bool) -> None:
        """Whether Lua of this session runs now."""

    def on_overdue(self, session: Session) -> None:
        """The session's Lua did not stop in time."""

    def leave(self, session: Session) -> None:
        """The session is over and holds no Lua."""


class WorkerLost(Exception):
    """The worker is gone and so is every execution in it; the message says why."""


class Session:
    """One execution in a worker, known there by its number.

    `on_lost` is called with a sentence if the worker goes while Lua waits for the hub.
    """

    def __init__(self, worker: Line, number: int, name: str, log: Log) -> None:
        self.number = number
        self.name = name
        self.log = log
        self.on_lost: Callable[[str], None] = lambda _: None
        self._worker = worker
        self._is_begun = False
        self._is_stopping = False
        self._is_over = False
        self._reply: asyncio.Future[Frame] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def exchange(self, kind: Kind, *parts: bytes, secs: float) -> Frame:
        """Let Lua run for so many seconds, and wait for what it says then: a request, or the last.

        STOPPED with `Reason.STUCK` where it does not stop in time. Raises `WorkerLost`.
        """
        async with self._worker.gate:
            await self._worker.wait_ready()
            if self._is_over or self._is_stopping:
                return Frame(Kind.STOPPED, self.number, (bytes([Reason.CANCELLED]), b""))
            self._is_begun = True
            self._reply = asyncio.get_running_loop().create_future()
            try:
                self._send(kind, *parts, secs=secs)
                return await self._reply
            finally:
                self._reply = None

    def stop(self, reason: Reason) -> None:
        """End the execution in the worker, whatever it does. Whoever exchanges is given what it says last."""
        if self._is_over or self._is_stopping:
            return
        if self._is_begun:
            self._is_stopping = True
            self._send(Kind.STOP, bytes([reason]), secs=0.0)
        else:
            self._is_over = True
            self._worker.leave(self)

    def take(self, frame: Frame) -> None:
        """For the worker: what Lua says."""
        if self._is_stopping and frame.kind is Kind.REQUEST:
            return  # it crossed with the order to stop
        self._is_over = frame.kind in LAST
        self._clear_timer()
        if self._reply is not None and not self._reply.done():
            self._reply.set_result(frame)

    def lose(self, sentence: str) -> None:
        """For the worker: it is gone."""
        self._is_over = True
        self._clear_timer()
        if self._reply is None:
            self.on_lost(sentence)
        elif not self._reply.done():
            self._reply.set_exception(WorkerLost(sentence))

    def _send(self, kind: Kind, *parts: bytes, secs: float) -> None:
        self._clear_timer()
        self._timer = asyncio.get_running_loop().call_later(secs + GRACE_SECS, self._on_overdue)
        self._worker.note_running(self, True)
        self._worker.send(encode(kind, self.number, *parts))

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._worker.note_running(self, False)

    def _on_overdue(self) -> None:
        self.take(Frame(Kind.STOPPED, self.number, (bytes([Reason.STUCK]), b"")))
        self._worker.on_overdue(self)
