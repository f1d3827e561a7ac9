"""The worker's own process: it reads frames from its one descriptor, and runs Lua on its threads."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence

from appliance.lua_worker import prelude
from appliance.lua_worker.confinement import confine, lower_priority
from appliance.lua_worker.execution import Execution
from appliance.lua_worker.protocol import LARGEST, Decoder, Frame, Kind, encode
from appliance.lua_worker.threads import Job, Threads


def main(arguments: Sequence[str]) -> None:
    """Serve the hub until it closes the socket, which is descriptor 0; does not return.

    The arguments are the hub's process, the file of its time zone, the bytes of memory that one execution may use,
    and the bytes of address space that the worker may.
    """
    parent, zone, max_memory, max_address_space = arguments
    lower_priority()
    with contextlib.suppress(OSError):
        os.chdir("/")
    os.closerange(1, 3)
    os.environ["TZ"] = f":{zone}"
    time.tzset()
    prelude.bytecode()
    confine(int(parent), int(max_address_space))
    try:
        Worker(socket.socket(fileno=0), int(max_memory)).serve()
        threading.Event().wait()  # whoever reads the end of the socket ends the process
    finally:  # glibc needs a descriptor to end the other threads in order, and there is none
        os._exit(os.EX_SOFTWARE)


class Worker:
    """Takes frames from the hub, one after another, and runs Lua on its threads."""

    def __init__(self, connection: socket.socket, max_memory: int) -> None:
        self._connection = connection
        self._max_memory = max_memory
        self._sending = threading.Lock()
        self._decoder = Decoder()
        self._frames: deque[Frame] = deque()
        self._executions: dict[int, Execution] = {}

    def serve(self) -> None:
        """Begin; the process ends when the hub has closed the socket."""
        self.send(encode(Kind.READY))
        Threads(self._read).run()

    def send(self, data: bytes) -> None:
        """Send the whole of a frame, from any thread."""
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError:  # the hub is gone
            os._exit(0)

    def _read(self) -> Job | None:
        """Wait for a frame; what there is to do because of it."""
        while not self._frames:
            data = self._connection.recv(1 << 16)
            if not data:
                os._exit(0)
            self._frames += self._decoder.feed(data)
        return self._take(self._frames.popleft())

    def _take(self, frame: Frame) -> Job | None:
        if frame.kind is Kind.PING:
            self.send(encode(Kind.PONG, 0, self._largest()))
            return None
        execution = self._executions.get(frame.execution)
        if execution is None and frame.kind in (Kind.EXECUTE, Kind.DESCRIBE, Kind.COMPILE):
            execution = Execution(frame.execution, self._max_memory, self.send, self._forget)
            self._executions[frame.execution] = execution
        return None if execution is None else execution.take(frame)

    def _forget(self, number: int) -> None:
        self._executions.pop(number, None)

    def _largest(self) -> bytes:
        memory, number = max(((each.memory, each.number) for each in list(self._executions.values())), default=(0, 0))
        return LARGEST.pack(number, memory)
