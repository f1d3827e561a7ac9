"""One execution in the worker: its Lua state, and which thread may touch it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from appliance.lua_worker.guard import Guard, Send
from appliance.lua_worker.protocol import Frame, Kind, Reason, encode
from appliance.lua_worker.state import State, Step, compile_text
from appliance.lua_worker.threads import Job


class Execution:
    """What the hub began under this number. `forget` is told when it is over."""

    def __init__(self, number: int, max_memory: int, send: Send, forget: Callable[[int], None]) -> None:
        self.number = number
        self._max_memory = max_memory
        self._send = send
        self._forget = forget
        self._guard = Guard(number, send)
        self._state: State | None = None
        self._lock = threading.Lock()
        self._is_suspended = False

    @property
    def memory(self) -> int:
        """Bytes that its Lua uses; may be asked by any thread."""
        state = self._state
        return 0 if state is None else state.memory

    def take(self, frame: Frame) -> Job | None:
        """What there is to do because of the hub's frame; for the thread that reads."""
        if frame.kind is Kind.STOP:
            return self._stop(Reason(frame.parts[0][0]))
        if frame.kind is Kind.ANSWER and self._guard.is_blocked:
            self._guard.answers.put(frame.parts)
            return None
        if frame.kind is Kind.COMPILE:
            return partial(self._run, partial(compile_text, *frame.parts[1:]))
        self._is_suspended = False
        return partial(self._run, partial(self._enter, frame))

    def _stop(self, reason: Reason) -> Job | None:
        with self._lock:
            self._guard.reason = reason
            is_suspended, self._is_suspended = self._is_suspended, False
        if is_suspended:
            return self._conclude
        if self._guard.is_blocked:
            self._guard.answers.put(None)
        return None

    def _enter(self, frame: Frame) -> Step:
        if self._state is None:
            self._state = State(self._guard, self._max_memory)
        if frame.kind is Kind.ANSWER:
            return self._state.answer(*frame.parts)
        if frame.kind is Kind.EXECUTE:
            return self._state.execute(*frame.parts)
        return self._state.describe(*frame.parts)

    def _run(self, work: Callable[[], Step]) -> None:
        """Do it on this thread, and tell the hub what became of it."""
        try:
            step = work()
        except Exception as error:
            step = Kind.FAILED, (f"the Lua worker failed: {type(error).__name__}: {error}".encode(), b"", b"")
        if step[0] is Kind.REQUEST:
            with self._lock:
                self._is_suspended = self._guard.reason is None
                is_stopped = not self._is_suspended
            if is_stopped:
                self._conclude()
                return
        self._tell(step)

    def _conclude(self) -> None:
        assert self._state is not None and self._guard.reason is not None
        self._tell(self._state.stop(self._guard.reason))

    def _tell(self, step: Step) -> None:
        kind, parts = step
        if kind is Kind.REQUEST:  # from here on the state is another thread's, which may even have ended it already
            self._send(encode(kind, self.number, *parts))
            return
        state, self._state = self._state, None
        self._forget(self.number)
        self._send(encode(kind, self.number, *parts))
        if state is not None:
            state.dispose()
