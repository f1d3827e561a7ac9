"""A worker: the hub's side of one worker process, with its runs and its health."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from appliance.lua.running.client_queue import ClientQueue, Unsent
from appliance.lua.running.lua_run import LuaRun, Priority
from appliance.lua.running.run_limits import DEADLINE_GRACE_SECS, RunSettings
from appliance.lua.running.worker_process import WorkerProcess
from appliance.lua.text.source import Source
from appliance.lua_worker.protocol import CPU_SECS, LAST, MEMORY_USE, Decoder, FrameKind, Reason, WorkerFrame, encode
from appliance.shortening import join_first

MAX_RUNNING = 64
"""Maximum number of concurrent runs in one worker. Further runs wait."""

MAX_BEGUN = 256
"""Maximum number of begun scenes and automations in one worker. A run that sleeps or waits for a scene is not
counted. Unless a client caused it, the scene begins even beyond this number. Each begun run occupies memory until it
ends. A replaced run ends only when its call returns."""

RESERVED_FOR_ALARMS = 64
"""Places that only alarms may occupy, in addition to `MAX_BEGUN`. Further alarms wait before all other runs."""

MAX_UNBEGUN = 64
"""Maximum number of alarms, and of other scenes and automations, that wait in one worker to begin. Further ones wait
in their executor."""

MAX_OTHERS_IN_A_ROW = 8
"""Maximum number of frames for other runs before a scene or automation that waits may begin. Other runs
have priority, because a scene or automation may wait for them."""

CHECK_INTERVAL_SECS = 0.5
MAX_HALTED_CHECKS = 8
"""A worker is killed if it is halted, has work, and does not respond to this number of consecutive checks."""

MAX_SILENT_CHECKS = 16
"""Like `MAX_HALTED_CHECKS`, but for a worker that is not halted. Such a worker may be waiting for the processor."""

MAX_SILENT_CHECKS_AT_START = 60
"""Like `MAX_HALTED_CHECKS`, but for a worker that is starting. The number is high, because the machine or its
storage may be slow."""

MAX_IDLE_GROWTH_BYTES = 4 << 20
"""An idle worker is replaced if its memory has grown by more than this since its start. Sixty simple executions at
once need half of this."""

READ_BYTES = 1 << 14
"""Maximum number of received bytes per iteration of the event loop. The number is low because each log line is
searched for secrets."""

MAX_FRAMES_AT_ONCE = 16
"""Maximum number of frames per iteration of the event loop. The worker waits while more frames are pending."""


MAX_NAMED = 3
"""Maximum number of executions that a message names."""

RESERVE = 0.25
"""Share of the worker's memory that is left for alarms, and for runs that continue, when other runs begin."""

HALF_USED = "the running executions use half of the memory for Lua"

log = logging.getLogger("lua")


class Worker(asyncio.BufferedProtocol):
    """One worker process, from its start to its end.

    `on_stuck` receives the files that could not be stopped. `on_ready` receives the missing protections of the
    sandbox.

    - `_runs`: the runs by number, until Lua has ended.
    - `_running`: the runs whose Lua runs now.
    - `_begun`: the scenes and automations that have begun, until the hub's side has ended.
    - `_unbegun`: the frames that begin scenes and automations and are not sent yet. A scene that an execution runs is
      in `_others`, or in `_by_clients`.
    - `_alarms`: the same frames for the runs that alarms caused.
    - `_by_clients`: the same frames for the runs that clients started.
    - `_others`: all other frames that are not sent yet.
    - `_delayed`: the frames from `_others` that wait until a computing run pauses or ends, for lack of memory.
    - `_unmeasured`: the maximum number of runs that began or continued since the measurement of `_checked_bytes`.
    - `_stuck`: the names of the runs that could not be stopped. Their threads keep their memory.
    - `_is_crowded`: whether the worker has warned that runs wait to begin. Once half of them have ended, it can warn
      again.
    """

    def __init__(
        self,
        settings: RunSettings,
        on_stuck: Callable[[Iterable[Source]], None],
        on_ready: Callable[[str], None],
    ) -> None:
        self.ended_because: str | None = None
        self.is_quiet = False
        self.is_ready = False
        self._settings = settings
        self._on_stuck = on_stuck
        self._on_ready = on_ready
        self._started_at = settings.machine.monotonic()
        self._process: WorkerProcess | None = None
        self._transport: asyncio.Transport | None = None
        self._closed = asyncio.Event()
        self._changed = asyncio.Event()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._decoder = Decoder()
        self._received: deque[WorkerFrame] = deque()
        self._runs: dict[int, LuaRun] = {}
        self._running: set[LuaRun] = set()
        self._begun: set[LuaRun] = set()
        self._others: deque[Unsent] = deque()
        self._delayed: list[Unsent] = []
        self._unbegun: deque[Unsent] = deque()
        self._alarms: deque[Unsent] = deque()
        self._by_clients = ClientQueue()
        self._queues: dict[Priority, deque[Unsent] | ClientQueue] = {
            Priority.NORMAL: self._unbegun,
            Priority.ALARM: self._alarms,
            Priority.NESTED: self._others,
            Priority.NESTED_ALARM: self._others,
            Priority.CLIENT: self._by_clients,
        }
        self._others_in_a_row = 0
        self._is_crowded = False
        self._last_number = 0
        self._silent_checks = 0
        self._stuck: set[str] = set()
        self._check_timer: asyncio.TimerHandle | None = None
        self._largest = (0, 0)
        self._fresh_bytes = self._checked_bytes = self._unmeasured = 0
        self._missing_confinement: str | None = None

    @property
    def pid(self) -> int:
        """Return the process id, or 0 before the process is started."""
        return 0 if self._process is None else self._process.pid

    @property
    def age_secs(self) -> float:
        return self._settings.machine.monotonic() - self._started_at

    @property
    def is_usable(self) -> bool:
        """Return whether the process still runs. After a failed write, the transport is closing, although the event
        loop notices the end only at the next read."""
        return self.ended_because is None and (self._transport is None or not self._transport.is_closing())

    def has_room(self, *, is_alarm: bool) -> bool:
        """Return whether fewer than `MAX_UNBEGUN` alarms, or other scenes and automations, wait to begin."""
        return len(self._alarms if is_alarm else self._unbegun) < MAX_UNBEGUN or not self.is_usable

    @property
    def is_half_used(self) -> bool:
        """Return whether the running executions use half of the process's maximum memory. The memory of threads that
        could not be stopped is unknown, so with such threads, return False."""
        return not self._stuck and 2 * self._resident_bytes() >= self._settings.limits.max_worker_bytes

    @property
    def unended(self) -> int:
        """Return the number of scenes and automations that have begun, or wait to begin, and have not ended."""
        return len(self._begun) + len(self._unbegun) + len(self._alarms) + len(self._by_clients)

    async def wait_for_change(self) -> None:
        """Wait until a run begins, or until the process ends."""
        self._changed.clear()
        await self._changed.wait()

    def figures(self) -> dict[str, Any]:
        """Return the worker's data for the diagnostics. `confinement` is "complete", a list of missing protections,
        or None until the worker is ready."""
        return {
            "pid": self.pid,
            "resident_bytes": self._resident_bytes(),
            "age_secs": round(self.age_secs, 3),
            "executions": len(self._runs),
            "confinement": "complete" if self._missing_confinement == "" else self._missing_confinement,
        }

    async def live(self) -> None:
        """Start the process, and wait until it ends."""
        try:
            self._process = WorkerProcess(self._settings.limits, self._settings.zone)
            await asyncio.get_running_loop().create_connection(lambda: self, sock=self._process.socket)
            self._check_later()
            await self._closed.wait()
            ended = await asyncio.to_thread(self._process.wait)
            names = sorted({run.name for run in self._running if run.is_begun})
            suspects = f" while it ran {join_first(names, MAX_NAMED)}" if names else ""
            self.kill(f"the Lua worker ended unexpectedly ({ended}){suspects}")
        except OSError as error:
            self.kill(f"the Lua worker cannot be started: {error}")
        finally:
            self.kill("the hub stopped", quietly=True)
            self._reap()

    def kill(self, because: str, *, quietly: bool = False) -> None:
        """Kill the process. Every run that has begun in it, and cannot begin again, ends with this reason."""
        if self.ended_because is None:
            self.ended_because = because
            self.is_quiet = quietly
            self._changed.set()
            if self._process is not None:
                self._process.kill()

    def add(self, run: LuaRun) -> int:
        self._last_number += 1
        self._runs[self._last_number] = run
        return self._last_number

    def send(self, run: LuaRun, kind: FrameKind, parts: tuple[bytes, ...]) -> None:
        """Send the frame to the run's Lua when there are fewer than `MAX_RUNNING` in `_running`."""
        if self.ended_because is not None:
            run.lose(self.ended_because)
        queue = self._queues[run.priority] if kind is FrameKind.EXECUTE else self._others
        queue.append((run, kind, parts))
        self._send_waiting()

    def stop(self, run: LuaRun) -> None:
        self._note_running(run)
        self._send_stop(run, Reason.CANCELLED)

    def leave(self, run: LuaRun) -> None:
        self._runs.pop(run.number, None)
        self._note_idle(run)

    def release(self, run: LuaRun) -> None:
        self._begun.discard(run)
        if len(self._begun) <= MAX_BEGUN // 2:
            self._is_crowded = False
        self._send_soon()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._resident_bytes()

    def get_buffer(self, _: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        """Pass each received frame to its run. Pause reading until all these frames are passed."""
        try:
            self._received += self._decoder.feed(self._buffer[:count])
        except ValueError as error:
            self.kill(f"the Lua worker sent an invalid frame ({error})")
        if len(self._received) > MAX_FRAMES_AT_ONCE and self._transport is not None:
            self._transport.pause_reading()
        self._take_some()

    def _take_some(self) -> None:
        self._silent_checks = 0
        self._take_received(MAX_FRAMES_AT_ONCE)
        if self._received:
            asyncio.get_running_loop().call_soon(self._take_some)
        elif self._transport is not None:
            self._transport.resume_reading()

    def _take_received(self, count: int) -> None:
        try:
            for _ in range(min(count, len(self._received))):
                self._take(self._received.popleft())
        except ValueError as error:
            self.kill(f"the Lua worker sent an invalid frame ({error})")

    def connection_lost(self, _: Exception | None) -> None:
        """Kill the process if it still runs."""
        self._take_received(len(self._received))
        if self._process is not None:
            self._process.kill()
        self._closed.set()
        self._changed.set()

    def _reap(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
        if self._process is not None:
            self._process.wait()  # returns soon, because the process has been killed
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def list_runs(self) -> list[LuaRun]:
        """Return the runs whose Lua has not ended."""
        return list(self._runs.values())

    def _send_waiting(self) -> None:
        while self.is_usable and self.is_ready and len(self._running) < MAX_RUNNING and (waiting := self._choose()):
            run, kind, parts = waiting.popleft()
            is_delayable = not run.is_alarm and (kind is FrameKind.ANSWER or run.priority is Priority.NESTED)
            if is_delayable and (self._delayed or self._lacks_memory()):
                self._delay(run, kind, parts)
                continue
            frame = run.encode_frame(kind, parts)
            if frame is not None:
                self._unmeasured += 1
                self._write(frame)
                self._note_running(run)
                if kind is FrameKind.EXECUTE:
                    self._begun.add(run)
                if kind is not FrameKind.ANSWER and self.is_usable:
                    run.note_begun()

    def _lacks_memory(self, *, reserve: float = 0.0) -> bool:
        """Return whether one more computing run could exceed the worker's memory, except this share.

        Without a reserve, return False as long as less than half of the memory is used, because few runs reach their
        limit. Runs that began or continued since the last measurement count as if they reached it.
        """
        most, limit = self._settings.limits.max_memory, self._settings.limits.max_worker_bytes
        is_half_free = 2 * (self._checked_bytes + self._unmeasured * most) < limit
        if self._stuck or (is_half_free and not reserve):
            return False
        self._checked_bytes, self._unmeasured = self._resident_bytes(), len(self._running)
        return self._checked_bytes + (len(self._running) + 1) * most > limit * (1 - reserve)

    def _delay(self, run: LuaRun, kind: FrameKind, parts: tuple[bytes, ...]) -> None:
        """Begin or continue the run once fewer runs compute. If none computes, end this run, because only its memory
        can become free. Otherwise, the worker would be killed, together with all runs in it."""
        if self._running:
            self._delayed.append((run, kind, parts))
        elif kind is FrameKind.EXECUTE:
            self._refuse(run)
        elif run.is_active:
            self._note_running(run)
            self._send_stop(run, Reason.SHARED_MEMORY)

    def _choose(self) -> deque[Unsent]:
        """Return the queue whose first frame is sent next."""
        unbegun, max_begun = self._alarms, MAX_BEGUN + RESERVED_FOR_ALARMS
        if not unbegun:
            unbegun, max_begun = self._unbegun, MAX_BEGUN
            by_client = self._find_client()
            if by_client and (not unbegun or by_client[0][0].number < unbegun[0][0].number):
                unbegun = by_client
        may_begin = unbegun and not self._has_begun(max_begun)
        if unbegun and not may_begin:
            self._warn_once()
        if may_begin and unbegun is self._unbegun and self._begun:
            may_begin = not (self._delayed or self._lacks_memory(reserve=RESERVE))
        if not may_begin or (self._others and self._others_in_a_row < MAX_OTHERS_IN_A_ROW):
            self._others_in_a_row += 1
            return self._others
        self._others_in_a_row = 0
        self._changed.set()
        return unbegun

    def _find_client(self) -> deque[Unsent]:
        """Return a queue that begins with the next run of a client, or an empty queue if no such run may begin now.
        End these runs if the worker already uses half of its memory.

        The memory of a computing run is unknown, so it counts as if the run reached its limit.
        """
        if not self._by_clients:
            return deque()
        computing = [each for each in self._running if each.priority is Priority.CLIENT]
        if computing:
            places = len(computing) + 1
            used = self._resident_bytes() + places * self._settings.limits.max_memory
            share = max(used / self._settings.limits.max_worker_bytes, places / MAX_RUNNING)
            return self._by_clients.find_next(computing, share)
        if self.is_half_used:
            for run, *_ in self._by_clients.take_all():
                self._refuse(run)
        return self._by_clients.find_next((), 0.0)

    def _refuse(self, run: LuaRun) -> None:
        run.refuse(HALF_USED)
        self.leave(run)

    def _has_begun(self, count: int) -> bool:
        """Return whether `count` scenes and automations that do not sleep have begun."""
        return len(self._begun) >= count and sum(not each.is_sleeping for each in self._begun) >= count

    def _warn_once(self) -> None:
        if not self._is_crowded:
            self._is_crowded = True
            names = ", ".join(name for name, _ in Counter(run.name for run in self._begun).most_common(MAX_NAMED))
            sentence = "%d executions have not ended, such as %s; until some end, others wait, and alarms begin first"
            log.warning(sentence, len(self._begun), names)

    def _note_running(self, run: LuaRun) -> None:
        self._running.add(run)
        if self._check_timer is None:
            self._check_later()

    def _send_stop(self, run: LuaRun, reason: Reason) -> None:
        self._write(encode(FrameKind.STOP, run.number, bytes([reason])))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(memoryview(data))  # of bytes, the transport would copy the unsent part twice

    def _take(self, frame: WorkerFrame) -> None:
        kind, number, parts = frame
        run = self._runs.get(number)
        if kind is FrameKind.READY:
            self._note_ready(parts[0].decode())
        elif kind is FrameKind.PONG:
            self._largest = MEMORY_USE.unpack(parts[0])
            if run is not None:
                run.note_position(parts[1])
            for (each, secs), required in zip(CPU_SECS.iter_unpack(parts[2]), parts[3:], strict=True):
                if each in self._runs:
                    self._runs[each].note_cpu(secs)
                    self._runs[each].note_required(required)
        elif run is None:
            return  # ignore a frame that arrives after its run has ended
        elif kind is FrameKind.LOG:
            run.log(*parts)
        elif run.receive(frame):
            if kind in LAST:
                self.leave(run)
            else:
                self._note_idle(run)

    def _note_ready(self, missing_confinement: str) -> None:
        self._fresh_bytes = self._resident_bytes()
        self._missing_confinement = missing_confinement
        self.is_ready = True
        self._on_ready(missing_confinement)
        self._send_waiting()

    def _note_idle(self, run: LuaRun) -> None:
        """Free the run's slot, because its Lua has paused or ended."""
        self._running.discard(run)
        self._continue_delayed()

    def _continue_delayed(self) -> None:
        if self._delayed and not (self._running and self._lacks_memory()):
            self._others.extendleft(reversed(self._delayed))
            self._delayed.clear()
        self._send_soon()

    def _send_soon(self) -> None:
        if self._others or self._unbegun or self._alarms or self._by_clients:
            # first, let an immediate answer to a call arrive
            asyncio.get_running_loop().call_soon(self._send_waiting)

    def _resident_bytes(self) -> int:
        return 0 if self._process is None else self._process.resident_bytes()

    def _check_later(self) -> None:
        self._check_timer = asyncio.get_running_loop().call_later(CHECK_INTERVAL_SECS, self._check)

    def _check(self) -> None:
        self._check_timer = None
        self._check_silence()
        if self.ended_because is not None:
            return
        if self._runs or not self.is_ready:
            self._check_deadlines()
            self._check_later()
        self._check_memory()
        self._continue_delayed()

    def _check_silence(self) -> None:
        """Kill the process if it has not answered for too long. If no reply is pending, kill only a halted
        process."""
        is_awaited = bool(self._running) or not self.is_ready
        # sleeping runs in a halted worker would never continue
        has_halted = self._process is not None and self._process.is_halted()
        max_unhalted = MAX_SILENT_CHECKS if self.is_ready else MAX_SILENT_CHECKS_AT_START
        if self._silent_checks >= (MAX_HALTED_CHECKS if has_halted else max_unhalted):
            secs = self._silent_checks * CHECK_INTERVAL_SECS
            self.kill(f"the Lua worker did not respond for {secs:g} s, and was killed; the machine may be overloaded")
        self._silent_checks = self._silent_checks + 1 if is_awaited or has_halted else 0

    def _check_deadlines(self) -> None:
        if self._running and self.is_ready:
            self._write(encode(FrameKind.PING, min(self._running, key=lambda each: each.secs_left).number))
        stuck = [each for each in self._running if each.secs_left <= -DEADLINE_GRACE_SECS]
        now = self._settings.machine.monotonic()
        late = [each for each in self._runs.values() if each not in self._running and now >= each.times.deadline]
        if stuck and (self._process is None or not self._process.is_halted()):  # a halted process has another cause
            self._on_stuck({each.source for each in stuck})
        for run in stuck:
            self._send_stop(run, Reason.STUCK)
            self._stuck.add(run.name)
            run.expire(is_running=True)
            self.leave(run)
        for run in late:
            run.expire(is_running=False)

    def _check_memory(self) -> None:
        used, limit = self._resident_bytes(), self._settings.limits.max_worker_bytes
        self._checked_bytes, self._unmeasured = used, 0
        if used > limit:
            run = self._runs.get(self._largest[0])
            whose = "" if run is None else f"; {run.name} used the most memory, so reduce its data"
            if self._stuck:
                names = join_first(sorted(self._stuck), MAX_NAMED)
                whose = f"; executions that could not be stopped still hold memory, so correct them: {names}"
            more = f"{used >> 20} MB of memory, more than its limit of {limit >> 20} MB"
            self.kill(f"the Lua worker needed {more} (from scripts.max_memory_mb), and was killed{whose}")
        elif not self._runs and (
            self._stuck or (self._fresh_bytes and used > self._fresh_bytes + MAX_IDLE_GROWTH_BYTES)
        ):
            self.kill("it was replaced", quietly=True)
