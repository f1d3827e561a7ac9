"""A worker as the hub sees it: one process, the executions in it, and whether it still answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import cast
from zoneinfo import ZoneInfo

from appliance.clock import Clock
from appliance.lua.limits import Limits
from appliance.lua.process import describe_exit, is_halted, resident_bytes, start_process
from appliance.lua.session import Log, Session, WorkerLost
from appliance.lua_worker.protocol import LARGEST, LAST, Decoder, Frame, Kind, encode
from appliance.tasks import Tasks

MAX_RUNNING = 64
"""Executions of one worker whose Lua runs at once; the others wait their turn."""

CHECK_INTERVAL_SECS = 1.0
MAX_HALTED_CHECKS = 4
"""After so many checks in a row without a sign of life a worker that has something to do and is halted is killed."""

MAX_SILENT_CHECKS = 8
"""The same of one that is not, and may merely wait for the processor."""

MAX_RESIDENT_BYTES = 256 << 20
"""What one worker may hold, beside four executions at their limit."""

MAX_IDLE_GROWTH_BYTES = 16 << 20
"""A worker that has nothing to do and holds so much more than when it was fresh is replaced."""


class Worker(asyncio.Protocol):
    """One worker process, from its start to its end.

    `on_overdue` is told of an execution that could not be stopped, `on_end` of the end of the process.
    """

    def __init__(
        self, limits: Limits, on_stuck: Callable[[Worker, str], None], on_end: Callable[[Worker], None]
    ) -> None:
        self.gate = asyncio.Semaphore(MAX_RUNNING)
        self.condemned_for: str | None = None
        self.ended_because: str | None = None
        self.is_quiet = False
        self.was_ready = False
        self._max_bytes = MAX_RESIDENT_BYTES + 4 * limits.max_memory
        self._limits = limits
        self._on_stuck = on_stuck
        self._on_end = on_end
        self._clock = Clock()
        self._started_at = self._clock.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = asyncio.Event()
        self._decoder = Decoder()
        self._sessions: dict[int, Session] = {}
        self._running: set[Session] = set()
        self._opened = 0
        self._silent_checks = 0
        self._check: asyncio.TimerHandle | None = None
        self._largest = (0, 0)
        self._fresh_bytes = 0

    @property
    def pid(self) -> int:
        """The process; 0 where it could not be started."""
        return 0 if self._process is None else self._process.pid

    @property
    def is_usable(self) -> bool:
        """Whether new executions may begin in it."""
        return self.ended_because is None and self.condemned_for is None

    @property
    def executions(self) -> int:
        """How many are in it."""
        return len(self._sessions)

    @property
    def age_secs(self) -> float:
        """Seconds since its start."""
        return self._clock.monotonic() - self._started_at

    @property
    def resident(self) -> int:
        """Bytes that it holds in memory."""
        return resident_bytes(self.pid)

    def start(self, zone: ZoneInfo, tasks: Tasks) -> None:
        """Start the process; `tasks` own what follows it to its end."""
        tasks.start(self._follow(zone), "Lua worker")

    def open_session(self, name: str, log: Log) -> Session:
        """A session for one execution, known to people by its name."""
        self._opened += 1
        session = Session(self, self._opened, name, log)
        self._sessions[self._opened] = session
        return session

    def condemn(self, culprit: str) -> None:
        """Let no execution begin in it any more; it is killed when those that are in it have ended."""
        self.condemned_for = culprit
        self._freeze_or_thaw()
        self._kill_if_empty()

    def kill(self, because: str, *, quietly: bool = False) -> None:
        """End the process; every execution in it ends with this sentence."""
        if self.ended_because is None:
            self.ended_because = because
            self.is_quiet = quietly
            if self._process is not None:
                self._process.kill()

    # --- for sessions -----------------------------------------------------------------------------

    async def wait_ready(self) -> None:
        """Return once the worker takes frames; raises `WorkerLost` where it never will."""
        if self.ended_because is None and not self._ready.done():
            await asyncio.shield(self._ready)
        if self.ended_because is not None:
            raise WorkerLost(self.ended_because)

    def send(self, data: bytes) -> None:
        """Send a frame."""
        if self._transport is not None:
            self._transport.write(data)

    def note_running(self, session: Session, is_running: bool) -> None:
        """Whether Lua of this session runs now."""
        if is_running:
            self._running.add(session)
        else:
            self._running.discard(session)
        if self.condemned_for is not None:
            self._freeze_or_thaw()
        if is_running and self._check is None:
            self._check_later()

    def on_overdue(self, session: Session) -> None:
        """The session's Lua did not stop in time."""
        self.leave(session)
        if self.condemned_for is None:
            self._on_stuck(self, session.name)

    # --- for asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket can be used."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Hand each frame to the execution that it concerns."""
        self._silent_checks = 0
        try:
            for frame in self._decoder.feed(data):
                self._take(frame)
        except ValueError as error:
            self.kill(f"the Lua worker sent something that is no frame ({error})")

    def connection_lost(self, _: Exception | None) -> None:
        """The process has ended, or is ended now."""
        if self._process is not None:
            self._process.kill()
        self._closed.set()

    # ----------------------------------------------------------------------------------------------

    async def _follow(self, zone: ZoneInfo) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._process, ours = start_process(self._limits, zone)
            await loop.create_connection(lambda: self, sock=ours)
            self._check_later()
            await self._closed.wait()
            code = await asyncio.to_thread(self._process.wait)
            self.kill(f"the Lua worker ended unexpectedly ({describe_exit(code)}){self._suspects()}")
        except OSError as error:
            self.kill(f"the Lua worker cannot be started: {error}")
        finally:
            self.kill("the hub stopped", quietly=True)
            self._bury()

    def _bury(self) -> None:
        if self._check is not None:
            self._check.cancel()
        if self._process is not None:
            self._process.wait()  # it has been killed
        if self._transport is not None:
            self._transport.close()
        self.was_ready = self._ready.done()
        if not self.was_ready:
            self._ready.set_result(None)
        assert self.ended_because is not None
        for session in tuple(self._sessions.values()):
            session.lose(self.ended_because)
        self._sessions.clear()
        self._on_end(self)

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.READY:
            self._fresh_bytes = self.resident
            self._ready.set_result(None)
        elif frame.kind is Kind.PONG:
            number, size = LARGEST.unpack(frame.parts[0])
            self._largest = (number, size)
        elif (session := self._sessions.get(frame.execution)) is None:
            return  # what is said of an execution that was given up
        elif frame.kind is Kind.LOG:
            level, message, fields = frame.parts
            session.log(level.decode(errors="replace"), message.decode(errors="replace"), fields)
        else:
            session.take(frame)
            if frame.kind in LAST:
                self.leave(session)

    def leave(self, session: Session) -> None:
        """The session is over and holds no Lua."""
        self._sessions.pop(session.number, None)
        self._running.discard(session)
        self._kill_if_empty()

    def _kill_if_empty(self) -> None:
        if self.condemned_for is not None and not self._sessions:
            self.kill("every other execution in it has ended", quietly=True)

    def _freeze_or_thaw(self) -> None:
        """A condemned worker runs only while one of the others in it has something to do."""
        if self._process is not None and self.ended_because is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGCONT if self._running else signal.SIGSTOP)

    def _suspects(self) -> str:
        names = sorted({session.name for session in self._running})[:3]
        return f" while it ran {', '.join(names)}" if names else ""

    # --- is it well? ------------------------------------------------------------------------------

    def _check_later(self) -> None:
        self._check = asyncio.get_running_loop().call_later(CHECK_INTERVAL_SECS, self._look)

    def _look(self) -> None:
        self._check = None
        if self.ended_because is not None:
            return
        is_starting = not self._ready.done()
        is_awaited = bool(self._running) or is_starting
        if is_awaited or (self._sessions and self.condemned_for is None):  # those that sleep must not wait in vain
            has_halted = is_halted(self.pid)
            if self._silent_checks >= (MAX_HALTED_CHECKS if has_halted else MAX_SILENT_CHECKS):
                self.kill(f"the Lua worker gave no sign of life for {self._silent_checks} s, and was killed")
                return
            self._silent_checks = self._silent_checks + 1 if is_awaited or has_halted else 0
            if self._running and not is_starting:
                self.send(encode(Kind.PING))
            self._check_later()
        self._look_at_memory()

    def _look_at_memory(self) -> None:
        held = self.resident
        if held > self._max_bytes:
            session = self._sessions.get(self._largest[0])
            whose = "" if session is None else f"; {session.name} used the most of it"
            self.kill(f"the Lua worker needed {held >> 20} MB of memory, and was killed{whose}")
        elif not self._sessions and self._fresh_bytes and held > self._fresh_bytes + MAX_IDLE_GROWTH_BYTES:
            self.kill("it was replaced", quietly=True)
