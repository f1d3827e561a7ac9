"""The worker process: reads frames from its only descriptor, and runs Lua on a few threads."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial

from lupa.lua54 import LuaError

from appliance.lua_worker.confinement import confine, trim_memory
from appliance.lua_worker.lua_state import LONG_JOB_SECS, LuaState, Work, prelude
from appliance.lua_worker.protocol import CPU_SECS, MEMORY_USE, Decoder, FrameKind, Reason, WorkerFrame, encode

NICE = 10
"""The worker's niceness, which gives the hub priority."""

STACK_BYTES = 1 << 20
"""Stack size of a thread: enough for Lua's deepest recursion in C. A quarter of this size is not enough."""

MAX_IDLE_THREADS = 8
SPARE_STATES = 4
"""The number of Lua states prepared in advance."""

SPARE_PAUSE_SECS = 0.005
"""Seconds between a job and the preparation of Lua states. Without the pause, the preparation would delay the hub if
the hub processes the job's reply on the same processor."""

CHECK_INTERVAL_SECS = 0.25
"""Maximum seconds between two checks for a long job on the reading thread."""

BURST_STATES = 8
"""After this number of simultaneous runs, return their memory to the machine once half of them have ended."""

TRIM_BYTES = 1 << 20
"""If the scripts of ended runs used more memory than this, return the memory to the machine."""

READ_BYTES = 1 << 16


def main(arguments: Sequence[str]) -> None:
    """Serve the hub until it closes the socket, which is descriptor 0. Never return.

    The arguments are, in this order:

    1. the hub's process id 2. the time zone: a file, and the zone's offset and size in this file 3. a run's memory
    limit in bytes 4. a run's limit of processor time in seconds 5. the worker's address space in bytes 6. the user
    and groups of the process
    """
    parent, zone, max_memory, max_cpu_total_secs, max_address_space, ids = arguments
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with contextlib.suppress(OSError):
        os.chdir("/")
    os.closerange(1, 3)
    _set_zone(*zone.rsplit(":", 2))
    prelude()
    if ids and os.geteuid() == 0:
        _become(*map(int, ids.split(",")))
    connection = socket.socket(fileno=0)
    missing = confine(int(parent), int(max_address_space))
    try:
        WorkerLoop(connection, int(max_memory), float(max_cpu_total_secs)).serve("; ".join(missing))
    finally:  # glibc needs a descriptor to end the other threads cleanly, but no descriptor is left
        os._exit(os.EX_SOFTWARE)


def _set_zone(path: str, start: str, size: str) -> None:
    """Set the C library's time zone. The zone is copied to a file in memory, because files on disk will become
    inaccessible."""
    file, zone = os.open(path, os.O_RDONLY), os.memfd_create("zone")
    os.write(zone, os.pread(file, int(size), int(start)))
    os.environ["TZ"] = f":/proc/self/fd/{zone}"
    time.tzset()
    os.close(file)
    os.close(zone)


def _become(user: int, group: int, *groups: int) -> None:
    os.setgroups([group, *groups])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)


class WorkerLoop:
    """Reads frames and does their jobs on the same thread, because a thread switch per frame would be slow.

    Another thread takes over reading if a job computes for long or waits for the hub, or if more jobs are waiting.
    The main thread does no jobs: it prepares Lua states, halts Lua that cannot be stopped, and ensures that a long
    call of a C function in Lua does not stop the reading.
    """

    def __init__(self, connection: socket.socket, max_memory: int, max_cpu_total_secs: float) -> None:
        self._connection = connection
        self._max_memory = max_memory
        self._max_cpu_total_secs = max_cpu_total_secs
        self._sending = threading.Lock()
        self._states: dict[int, LuaState] = {}
        self._most_states = 0
        """The most simultaneous runs since memory was last returned."""
        self._freed_bytes = 0
        """The memory of scripts whose runs have ended since memory was last returned."""
        self._spares: list[LuaState] = []
        self._decoder = Decoder()
        self._jobs: deque[Work] = deque()
        self._reading = threading.Lock()
        """The lock of the reading thread. Idle threads wait for this lock."""
        self._changing = threading.Lock()
        """The lock for changes to the following attributes."""
        self._busy_reader: int | None = None
        """The reading thread while it does a job. Another thread may then end its reading."""
        self._busy_since = 0.0
        self._idle = 0
        """The number of threads that are waiting for `_reading`, or are about to wait for it."""
        self._maintenance = threading.Lock()
        """The lock that the main thread waits for. A job that used a prepared Lua state releases it at its end."""

    def serve(self, missing_confinement: str) -> None:
        """Send READY with the missing protections of the sandbox, then process frames. Never return."""
        threading.stack_size(STACK_BYTES)
        threading.excepthook = lambda _: os._exit(os.EX_SOFTWARE)  # an error on any thread must end the process
        self._send(encode(FrameKind.READY, 0, missing_confinement.encode()))
        if not self._has_successor():
            os._exit(os.EX_OSERR)
        while True:
            if self._maintenance.acquire(timeout=CHECK_INTERVAL_SECS):
                time.sleep(SPARE_PAUSE_SECS)
                self._maintenance.acquire(blocking=False)
            self._hand_over(LONG_JOB_SECS, self._busy_reader)
            for state in list(self._states.values()):
                state.halt_if_stuck()
            self._trim_after_burst()
            self._add_spares()

    def _work(self) -> None:
        """Read frames and do jobs until enough other threads are idle."""
        while True:
            with self._changing:  # threads that become idle at the same time must not exceed the limit together
                if self._idle >= MAX_IDLE_THREADS:
                    return
                self._idle += 1
            self._reading.acquire()
            with self._changing:
                self._idle -= 1
            while self._do_next_job():
                pass

    def _do_next_job(self) -> bool:
        """Read until there is a job, and do the job. Return whether this thread is still the reading thread."""
        while not self._jobs:
            self._read()
        job, this_thread = self._jobs.popleft(), threading.get_ident()
        with self._changing:
            self._busy_reader, self._busy_since = this_thread, time.monotonic()
        if self._jobs:
            self._hand_over(0.0, this_thread)
        job()
        with self._changing:
            is_reader = self._busy_reader == this_thread
            if is_reader:
                self._busy_reader = None
            if not self._states and len(self._spares) < SPARE_STATES and self._maintenance.locked():
                self._maintenance.release()
        return is_reader

    def _hand_over(self, min_secs: float, reader: int | None) -> None:
        """Let another thread read if `reader` is the reading thread and has done its job for `min_secs`."""
        with self._changing:
            is_due = reader is not None and reader == self._busy_reader
            if not is_due or time.monotonic() - self._busy_since < min_secs or not self._has_successor():
                return
            self._busy_reader = None
        self._reading.release()

    def _read(self) -> None:
        data = self._connection.recv(READ_BYTES)
        if not data:
            os._exit(0)
        for frame in self._decoder.feed(data):
            if (job := self._take(frame)) is not None:
                self._jobs.append(partial(self._do, job, frame.run))

    def _has_successor(self) -> bool:
        """Return whether another thread is waiting to read. If no thread is waiting, try to start one."""
        if self._idle:
            return True
        with contextlib.suppress(RuntimeError):  # the system has no memory for another thread
            threading.Thread(target=self._work, daemon=True).start()
            return True
        return False

    def _trim_after_burst(self) -> None:
        remaining = len(self._states)
        is_due = self._freed_bytes >= TRIM_BYTES or self._most_states >= max(BURST_STATES, 2 * remaining)
        if is_due and self._busy_reader is None:
            self._most_states, self._freed_bytes = remaining, 0
            trim_memory()

    def _add_spares(self) -> None:
        """Prepare Lua states while the reading thread does no job."""
        with contextlib.suppress(MemoryError, LuaError):  # the next run reports the lack of memory
            while len(self._spares) < SPARE_STATES and self._busy_reader is None:
                spare = self._new_state()
                spare.prepare()
                self._spares.append(spare)

    def _send(self, data: bytes) -> None:
        """Send a whole frame. Any thread may call this method."""
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError:  # the hub has ended
            os._exit(0)

    def _take(self, frame: WorkerFrame) -> Work | None:
        """Return the job for the frame, if any. Call this method in the order of the frames' arrival."""
        kind, number, parts = frame
        state = self._states.get(number)
        if kind is FrameKind.PING:
            return partial(self._pong, number, b"" if state is None else state.position)
        if kind in (FrameKind.EXECUTE, FrameKind.DESCRIBE, FrameKind.COMPILE, FrameKind.CALL):
            state = self._spares.pop() if self._spares else self._new_state()
            state.number = number
            self._states[number] = state
            self._most_states = max(self._most_states, len(self._states))
            return partial(state.begin, kind, parts)
        if state is None:
            return None
        return state.take_answer(parts) if kind is FrameKind.ANSWER else state.take_stop(Reason(parts[0][0]))

    def _do(self, job: Work, number: int) -> None:
        try:
            job()
        except Exception as error:
            message = f"the Lua worker failed: {type(error).__name__}: {error}"
            state = self._states.pop(number, None)
            if state is not None:
                state.dispose()
            self._send(encode(FrameKind.FAILED, number, message.encode(errors="replace"), b"", b""))

    def _pong(self, number: int, position: bytes) -> None:
        states = list(self._states.values())
        memory, largest = max([(each.memory, each.number) for each in states], default=(0, 0))
        computing = [each for each in states if each.is_computing]
        cpu = b"".join(CPU_SECS.pack(each.number, each.measure_cpu()) for each in computing)
        required = [each.required for each in computing]
        self._send(encode(FrameKind.PONG, number, MEMORY_USE.pack(largest, memory), position, cpu, *required))

    def _new_state(self) -> LuaState:
        return LuaState(self._max_memory, self._send, self._forget, self._hand_over, self._max_cpu_total_secs)

    def _forget(self, number: int) -> None:
        if (state := self._states.pop(number, None)) is not None:
            self._freed_bytes += state.script_memory  # an approximate number is sufficient
