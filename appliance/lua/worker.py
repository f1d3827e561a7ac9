"""A worker as the hub sees it: one process, the sessions in it, and whether it still answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast
from zoneinfo import ZoneInfo

from appliance.lua.execution_limits import GRACE_SECS
from appliance.lua.process import describe_exit, is_halted, resident_bytes, start_process
from appliance.lua.session import Log, Session, SessionSettings
from appliance.lua.source import Source
from appliance.lua_worker.protocol import LAST, MEMORY_USE, Decoder, FrameKind, WorkerFrame, encode
from appliance.tasks import Tasks

MAX_RUNNING = 64
"""Sessions of one worker whose Lua runs at once; the others wait their turn."""

CHECK_INTERVAL_SECS = 0.5
MAX_HALTED_CHECKS = 8
"""After so many checks in a row without a sign of life a worker that has something to do and is halted is killed."""

MAX_SILENT_CHECKS = 16
"""The same of one that is not, and may merely wait for the processor."""

MAX_RESIDENT_BYTES = 256 << 20
"""What one worker may hold, beside four executions at their limit."""

MAX_IDLE_GROWTH_BYTES = 16 << 20
"""A worker that has nothing to do and holds so much more than when it was fresh is replaced."""

READ_BYTES = 1 << 16


class Worker(asyncio.BufferedProtocol):
    """One worker process, from its start to its end.

    `on_stuck` is told of a session that could not be stopped, `on_end` of the end of the process.
    """

    def __init__(
        self, settings: SessionSettings, on_stuck: Callable[[Worker, str], None], on_end: Callable[[Worker], None]
    ) -> None:
        self.condemned_for: str | None = None
        self.ended_because: str | None = None
        self.is_quiet = False
        self.is_ready = False
        self._settings = settings
        self._on_stuck = on_stuck
        self._on_end = on_end
        self._started_at = settings.machine.monotonic()
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._closed = asyncio.Event()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._decoder = Decoder()
        self._sessions: dict[int, Session] = {}
        self._running: set[Session] = set()
        self._waiting: deque[Session] = deque()
        self._opened = 0
        self._silent_checks = 0
        self._check_timer: asyncio.TimerHandle | None = None
        self._largest = (0, 0)
        self._fresh_bytes = 0

    @property
    def pid(self) -> int:
        """The process; 0 where it could not be started."""
        return 0 if self._process is None else self._process.pid

    @property
    def is_usable(self) -> bool:
        """Whether new sessions may begin in it."""
        return self.ended_because is None and self.condemned_for is None

    def figures(self) -> dict[str, Any]:
        """The worker as it is now."""
        return {
            "pid": self.pid,
            "resident_bytes": resident_bytes(self.pid),
            "age_secs": round(self._settings.machine.monotonic() - self._started_at, 3),
            "executions": len(self._sessions),
            "condemned_for": self.condemned_for,
        }

    def start(self, zone: ZoneInfo, tasks: Tasks) -> None:
        """Start the process; `tasks` own what follows it to its end."""
        tasks.start(self._follow(zone), "Lua worker")

    def open_session(self, name: str, source: Source, log: Log) -> Session:
        """A session for one file, known to people by its name."""
        self._opened += 1
        session = Session(self, self._opened, name, source, log, self._settings)
        self._sessions[self._opened] = session
        return session

    def condemn(self, culprit: str) -> None:
        """Let no session begin in it any more; it is killed when those that are in it have ended."""
        self.condemned_for = culprit
        self._freeze_or_thaw()
        self._kill_if_empty()

    def kill(self, because: str, *, quietly: bool = False) -> None:
        """End the process; every session in it ends with this sentence."""
        if self.ended_because is None:
            self.ended_because = because
            self.is_quiet = quietly
            if self._process is not None:
                self._process.kill()

    # --- for sessions -----------------------------------------------------------------------------

    def enqueue(self, session: Session) -> None:
        """Have the session `transmit` as soon as there is room for another whose Lua runs."""
        if self.ended_because is not None:
            session.lose(self.ended_because)
        elif self.is_ready and len(self._running) < MAX_RUNNING:
            session.transmit()
        else:
            self._waiting.append(session)

    def send(self, session: Session, data: bytes) -> None:
        """Send a frame, because of which Lua of the session runs."""
        self._running.add(session)
        if self.condemned_for is not None:
            self._freeze_or_thaw()
        if self._check_timer is None:
            self._check_later()
        self._write(data)

    def leave(self, session: Session) -> None:
        """The session is over and holds no Lua."""
        self._sessions.pop(session.number, None)
        self._note_idle(session)
        self._kill_if_empty()

    # --- for asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket can be used."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def get_buffer(self, _: int) -> memoryview:
        """Where the next bytes go: always to the same place, which costs nothing."""
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        """Hand each frame to the session that it concerns."""
        self._silent_checks = 0
        try:
            for frame in self._decoder.feed(self._buffer[:count]):
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
            self._process, ours = start_process(self._settings.limits, zone)
            await loop.create_connection(lambda: self, sock=ours)
            self._check_later()
            await self._closed.wait()
            code = await asyncio.to_thread(self._process.wait)
            self.kill(f"the Lua worker ended unexpectedly ({describe_exit(code)}){self._suspects()}")
        except OSError as error:
            self.kill(f"the Lua worker cannot be started: {error}")
        finally:
            self.kill("the hub stopped", quietly=True)
            self._reap()

    def _reap(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
        if self._process is not None:
            self._process.wait()  # it has been killed
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        assert self.ended_because is not None
        for session in tuple(self._sessions.values()):
            session.lose(self.ended_because)
        self._sessions.clear()
        self._on_end(self)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def _take(self, frame: WorkerFrame) -> None:
        kind, number, parts = frame
        session = self._sessions.get(number)
        if kind is FrameKind.READY:
            self._fresh_bytes = resident_bytes(self.pid)
            self.is_ready = True
            self._start_waiting()
        elif kind is FrameKind.PONG:
            self._largest = MEMORY_USE.unpack(parts[0])
            if session is not None:
                session.note_place(parts[1])
        elif session is None:
            return  # what is said of a session that was given up
        elif kind is FrameKind.LOG:
            level, message, fields = parts
            session.log(level.decode(errors="replace"), message.decode(errors="replace"), fields)
        elif session.receive(frame):
            if kind in LAST:
                self.leave(session)
            else:
                self._note_idle(session)

    def _note_idle(self, session: Session) -> None:
        """Lua of the session does not run any more."""
        self._running.discard(session)
        if self.condemned_for is not None:
            self._freeze_or_thaw()
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and self.is_ready and len(self._running) < MAX_RUNNING:
            self._waiting.popleft().transmit()

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

    def _check_later(self) -> None:
        self._check_timer = asyncio.get_running_loop().call_later(CHECK_INTERVAL_SECS, self._check)

    def _check(self) -> None:
        self._check_timer = None
        if self.ended_because is not None:
            return
        is_awaited = bool(self._running) or not self.is_ready
        if is_awaited or self._sessions:
            if self._check_silence(is_awaited):
                return
            self._check_deadlines()
            self._check_later()
        self._check_memory()

    def _check_silence(self, is_awaited: bool) -> bool:
        """Whether the worker gave no sign of life for too long, and was killed."""
        if not is_awaited and self.condemned_for is not None:
            return False  # it was halted by us
        has_halted = is_halted(self.pid)  # those that sleep must not wait in vain
        if self._silent_checks >= (MAX_HALTED_CHECKS if has_halted else MAX_SILENT_CHECKS):
            secs = self._silent_checks * CHECK_INTERVAL_SECS
            self.kill(f"the Lua worker gave no sign of life for {secs:g} s, and was killed")
            return True
        self._silent_checks = self._silent_checks + 1 if is_awaited or has_halted else 0
        return False

    def _check_deadlines(self) -> None:
        now = self._settings.machine.monotonic()
        if self._running and self.is_ready:
            first = min(self._running, key=lambda session: session.deadline)
            self._write(encode(FrameKind.PING, first.number))
        for session in tuple(self._sessions.values()):
            is_running = session in self._running
            if now < session.deadline + (GRACE_SECS if is_running else 0.0):
                continue
            session.expire(is_running=is_running)
            if is_running:
                self.leave(session)
                if self.condemned_for is None:
                    self._on_stuck(self, session.name)

    def _check_memory(self) -> None:
        held = resident_bytes(self.pid)
        if held > self._settings.limits.max_memory * 4 + MAX_RESIDENT_BYTES:
            session = self._sessions.get(self._largest[0])
            whose = "" if session is None else f"; {session.name} used the most of it"
            self.kill(f"the Lua worker needed {held >> 20} MB of memory, and was killed{whose}")
        elif not self._sessions and self._fresh_bytes and held > self._fresh_bytes + MAX_IDLE_GROWTH_BYTES:
            self.kill("it was replaced", quietly=True)
