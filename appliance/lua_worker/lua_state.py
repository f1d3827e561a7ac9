"""The worker's side of a run: a Lua state, and the Python functions that Lua can call.

Three rules protect the worker's memory. Lua and Python exchange only texts and integers. User code has no access to
the real globals. The memory limit is lifted while Python passes a value to Lua, because a lack of memory would then
abort the process.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from math import inf
from time import clock_gettime, monotonic, pthread_getcpuclockid, thread_time

from lupa import lua54

from appliance.lua_worker.confinement import halt_thread
from appliance.lua_worker.ctx_methods import methods_in_lua
from appliance.lua_worker.protocol import CPU, TIMING, FrameKind, Reason, encode

MAX_LOG_LINES = 1_000
MAX_LOG_BYTES = 1 << 20
"""Maximum bytes that a run may log. Lines beyond this limit are held back until the run ends. Only the newest of
these lines are then sent."""

MAX_LATE_LOG_LINES = 50

LONG_JOB_SECS = 0.005
"""If Lua computes for longer than this number of seconds, another thread reads the next frames."""

MAX_COMPILED_BYTES, MAX_COMPILED_FILES = 40 << 10, 32
"""The maximum size of a file whose compiled code is kept for its next run, and the maximum number of these files.
Text and code have about the same size, so the largest files need 2.5 MiB together."""

MAX_STUCK_CHECKS = 4
"""Number of calls of `halt_if_stuck` before Lua is halted. Meanwhile, Lua that polls stops, even on a busy
machine."""

CALLABLE = ("poll", "emit", "ask", "take", "limit", "instant", "note_required")
"""Python functions that Lua can call. Each function returns an integer, bytes, or None, and never raises."""

PRELUDE = ("stop", "json", "protected", "sandbox", "ctx", "driver")
"""The Lua files that every Lua state runs first, in this order. All files fill the same table. A state for a kind
of adapter also runs `kind.lua`."""

_FOLDER = os.path.join(os.path.dirname(__file__), "prelude")

Work = Callable[[], None]

_NO_MEMORY = b"not enough memory"


class LuaState:
    """The worker's side of a run. At the end, `forget` is called with the run's number.

    `hand_over` is called while Lua computes or is about to wait for the hub. Its arguments are a minimum duration in
    seconds, and the id of the thread that runs Lua.

    The thread that handles a frame owns the Lua state until this thread has sent the reply. If the reply is a
    request, no thread owns the state until the next frame arrives. `_lock` is held while the owner changes.
    """

    def __init__(
        self,
        max_memory: int,
        send: Callable[[bytes], None],
        forget: Callable[[int], object],
        hand_over: Callable[[float, int], object],
        max_cpu_total_secs: float = inf,
    ) -> None:
        self.number = 0
        self.position = b""
        """The line of the user's file at Lua's last poll, as `file:line`."""
        self.required = b""
        """The file that `require` is loading, or empty."""
        self.cpu_secs = 0.0
        """The processor time of Lua, as last measured."""
        self._thread: int | None = None
        """The thread that runs Lua. If it is halted, it never releases its memory."""
        self._cpu_clock: tuple[int, float] | None = None
        """The clock of the thread that runs Lua, and the difference between `cpu_secs` and this clock."""
        self._cpu_secs_at_limit = 0.0
        self._max_cpu_total_secs = max_cpu_total_secs
        self._send = send
        self._forget = forget
        self._hand_over = hand_over
        self._lock = threading.Lock()
        self._reason: Reason | None = None
        self._stuck_checks = 0
        self._is_suspended = False
        self._is_blocked = False
        self._answers: queue.SimpleQueue[Sequence[bytes] | None] = queue.SimpleQueue()
        self._answer_parts: list[bytes] = []
        self._until, self._reason_then = 0.0, 0
        self._now, self._now_at = 0.0, 0.0
        self._log_lines = self._log_bytes = self._held_back = 0
        self._late_lines: list[bytes] = []
        self._lua: lua54.LuaRuntime = None
        self._table: lua54.LuaRuntime = None
        self._set_answer: lua54.LuaRuntime = None
        self._start: lua54.LuaRuntime = None
        self._step: lua54.LuaRuntime = None
        self._find_position: lua54.LuaRuntime = None
        self._max_memory = max_memory
        self._prelude_bytes = 0

    def prepare(self) -> None:
        if self._lua is not None:
            return
        self._lua = lua54.LuaRuntime(
            encoding=None,
            source_encoding="utf-8",
            register_eval=False,
            register_builtins=False,
            attribute_filter=_refuse,
            max_memory=0,
        )
        given = self._lua.table_from({name.encode(): getattr(self, name) for name in CALLABLE})
        self._table, *functions = self._lua.execute(prelude()[0], given, mode="b")
        self._set_answer, self._start, self._step, self._find_position = functions
        self._charge_prelude(self.memory)

    @property
    def is_computing(self) -> bool:
        """Return whether the run's Lua is running. Another thread may change the result at any moment."""
        return not (self._is_suspended or self._is_blocked)

    @property
    def memory(self) -> int:
        """Return the bytes that Lua uses. Any thread may read this property."""
        lua = self._lua
        return 0 if lua is None else int(lua.get_memory_used())

    @property
    def script_memory(self) -> int:
        """Return the bytes that Lua uses, without the prelude."""
        return self.memory - self._prelude_bytes

    def take_answer(self, parts: Sequence[bytes]) -> Work | None:
        if self._is_blocked:
            self._answers.put(parts)
            return None
        self._is_suspended = False
        return partial(self._answer, parts)

    def take_stop(self, reason: Reason) -> Work | None:
        """Stop Lua for this reason: at once if Lua is waiting for the hub, otherwise at its next poll."""
        with self._lock:
            self._reason = reason
            is_suspended, self._is_suspended = self._is_suspended, False
        if is_suspended:
            return partial(self._end_stopped, reason)
        if self._is_blocked:
            self._answers.put(None)
        return None

    def halt_if_stuck(self) -> None:
        """Halt Lua's thread forever if Lua must stop because it is stuck, and still does not poll. Call this method
        regularly. A thread that polls must not be halted, because it may wait for the lock of the interpreter."""
        if self._reason is not Reason.STUCK:
            return
        self._stuck_checks += 1
        with self._lock:
            if self._stuck_checks > MAX_STUCK_CHECKS and self._thread is not None and not self._is_blocked:
                self._forget(self.number)
                halt_thread(self._thread)

    def begin(self, kind: FrameKind, parts: Sequence[bytes]) -> None:
        """Run the file in an EXECUTE, DESCRIBE, COMPILE, or CALL frame."""
        self.prepare()
        timing, text, name, event = parts
        if kind is FrameKind.CALL or (kind is FrameKind.DESCRIBE and event):
            self._open_kind()
        compiled = None
        if kind in (FrameKind.EXECUTE, FrameKind.CALL) and len(text) <= MAX_COMPILED_BYTES:
            compiled = compile_file(text, name)
        self._start(int(kind), name, event, *((text, b"t") if compiled is None else (compiled, b"b")))
        self._run(timing)

    def _open_kind(self) -> None:
        """Add the globals for adapter kinds."""
        before = self.memory
        self._lua.execute(prelude()[1], self._table, mode="b")
        self._charge_prelude(self.memory - before)

    def _charge_prelude(self, count: int) -> None:
        """Do not charge the script for this number of bytes of the prelude."""
        self._prelude_bytes += count
        self._max_memory += count

    def poll(self, position: bytes | None = None) -> int | None:
        """Return the reason to stop, or None. `position` is the current line."""
        self.position = position or self.position
        self._hand_over(LONG_JOB_SECS, threading.get_ident())
        if self._reason is not None:
            return int(self._reason)
        if self.measure_cpu() > self._max_cpu_total_secs:
            return int(Reason.CPU_TOTAL)
        if self.cpu_secs > self._cpu_secs_at_limit:
            return int(Reason.RUNNING_TIME)
        return self._reason_then if monotonic() > self._until else None

    def measure_cpu(self) -> float:
        """Measure and return the processor time of Lua. Any thread may call this method."""
        if (measure := self._cpu_clock) is not None:
            clock, offset = measure
            try:
                self.cpu_secs = offset + clock_gettime(clock)
            except OSError:  # the thread has ended
                return self.cpu_secs
        return self.cpu_secs

    def note_required(self, file: bytes) -> None:
        self.required = file

    def instant(self) -> int:
        """Return the hub's current time, in seconds since 1970."""
        return int(self._now + monotonic() - self._now_at)

    def emit(self, level: bytes, message: bytes, fields: bytes | None) -> None:
        """Log a line. If the run has already logged too much, hold the line back until the run ends."""
        fields = fields or b""
        self._log_lines += 1
        self._log_bytes += len(message) + len(fields)
        line = encode(FrameKind.LOG, self.number, level, message, fields)
        if self._log_lines <= MAX_LOG_LINES and self._log_bytes <= MAX_LOG_BYTES:
            self._send(line)
        else:
            self._held_back += 1
            self._late_lines.append(line)
            del self._late_lines[:-MAX_LATE_LOG_LINES]

    def _send_late_lines(self) -> None:
        """Send the newest lines that were held back, and the number of dropped lines."""
        omitted = self._held_back - len(self._late_lines)
        if omitted:
            message = f"{omitted} log lines are omitted: an execution logs at most {MAX_LOG_LINES} lines and 1 MiB"
            self._send(encode(FrameKind.LOG, self.number, b"warn", message.encode(), b""))
        for line in self._late_lines:
            self._send(line)
        self._late_lines.clear()

    def ask(self, operation: bytes, arguments: bytes, position: bytes | None) -> int | None:
        """Send a request and wait for the answer on this thread. Return 1 for a result, 0 for an error, and None if
        Lua must stop.

        When an answer arrives, the memory limit is lifted, so that Lua can `take` the answer's parts. Afterwards, Lua
        calls `limit` to restore the limit.
        """
        self._is_blocked = True
        if self._reason is not None:
            return None
        self.measure_cpu()
        self._request(operation, arguments, position or b"")
        self._hand_over(0.0, threading.get_ident())
        answer = self._answers.get()
        self._is_blocked = False
        if answer is None or self._reason is not None:
            return None
        timing, is_ok, *self._answer_parts = answer
        self._set_timing(timing)
        self._lua.set_max_memory(0)
        return len(is_ok)

    def take(self) -> bytes:
        return self._answer_parts.pop(0) if self._answer_parts else b""

    def limit(self) -> None:
        self._lua.set_max_memory(self._max_memory)

    def _answer(self, parts: Sequence[bytes]) -> None:
        timing, is_ok, *rest = parts
        self._lua.set_max_memory(0)
        self._set_answer(bool(is_ok), *rest)
        self._run(timing)

    def _set_timing(self, timing: bytes) -> None:
        self._cpu_secs_at_limit, secs, self._reason_then, self._now = TIMING.unpack(timing)
        self._now_at = monotonic()
        self._until = self._now_at + secs

    def _run(self, timing: bytes) -> None:
        """Resume Lua, and send the reply to the hub. If the reply is a request, this thread no longer owns the
        state."""
        self._set_timing(timing)
        self.limit()
        self._thread = threading.get_ident()
        self._cpu_clock = pthread_getcpuclockid(self._thread), self.cpu_secs - thread_time()
        try:
            kind, *parts = self._step()
        except lua54.LuaMemoryError:  # Lua had no memory left for a reply
            kind, parts = FrameKind.FAILED, [_NO_MEMORY]
        self.measure_cpu()
        with self._lock:  # `halt_if_stuck` must not halt this thread once it has another job
            self._thread = self._cpu_clock = None
        if kind == FrameKind.REQUEST:
            with self._lock:
                reason = self._reason
                self._is_suspended = reason is None
            if reason is None:
                self._request(*parts)
            else:
                self._end_stopped(reason)
        elif kind == FrameKind.FAILED and parts[0] == _NO_MEMORY:
            self._end_stopped(Reason.MEMORY)
        elif kind == FrameKind.STOPPED:
            self._end_stopped(parts[0], parts[1])
        else:
            self._end(kind, *parts)

    def _request(self, operation: bytes, arguments: bytes, position: bytes) -> None:
        self.position = position or self.position
        self._send(encode(FrameKind.REQUEST, self.number, operation, arguments, position, CPU.pack(self.cpu_secs)))

    def _end_stopped(self, reason: int, position: bytes = b"") -> None:
        self._lua.set_max_memory(0)
        self._end(FrameKind.STOPPED, bytes([reason]), position or self._find_position(), self.required)

    def _end(self, kind: int, *parts: bytes) -> None:
        self._send_late_lines()
        self._forget(self.number)
        self._send(encode(kind, self.number, *parts))
        self.dispose()

    def dispose(self) -> None:
        """Close the Lua state and free its memory."""
        self._lua = self._table = self._set_answer = self._start = self._step = self._find_position = (
            None  # break all reference cycles
        )


@cache
def _compiler() -> Callable[[bytes, bytes, bool], bytes | None]:
    """Return a Lua function that compiles a text, in a Lua state of its own. The last argument omits line numbers.
    The function returns None if the text is not valid Lua."""
    lua = lua54.LuaRuntime(encoding=None, register_eval=False, register_builtins=False)
    return lua.eval(  # type: ignore[no-any-return]
        b"function(text, name, strip) local chunk = load(text, name, 't') "
        b"return chunk and string.dump(chunk, strip) end"
    )


@lru_cache(MAX_COMPILED_FILES)
def compile_file(text: bytes, name: bytes) -> bytes | None:
    """Return the compiled file, or None if the file is not valid Lua."""
    return _compiler()(text, b"@" + name, False)


@cache
def prelude() -> tuple[bytes, bytes]:
    """Return the compiled prelude, and the compiled code that only adapter kinds need. The compiled code has no
    line numbers, so that the prelude can recognise its own stack frames."""
    *texts, kind = [_read(f"{_FOLDER}/{part}.lua") for part in (*PRELUDE, "kind")]
    *parts, driver = [f"(function(...)\n{text}\nend)(lares);" for text in texts]
    whole = f"local lares = ...\nlares.methods = {methods_in_lua()}\n{''.join(parts)}\nreturn lares, {driver}"
    compiled, compiled_kind = [_compiler()(each.encode(), b"=prelude", True) for each in (whole, kind)]
    assert compiled is not None and compiled_kind is not None
    return compiled, compiled_kind


def _refuse(*_: object) -> str:
    raise AttributeError("Python objects are not accessible from Lua")


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
