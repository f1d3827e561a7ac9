"""Starts worker processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import BinaryIO
from zoneinfo import ZoneInfo

from appliance.home_locale import find_zone, load_zone
from appliance.lua.running.run_limits import RunLimits
from appliance.lua_worker.protocol import Decoder
from appliance.program_folder import PROGRAM_FOLDER, describe_missing_program

_START = """
import sys
sys.dont_write_bytecode, sys.path[:] = sys.argv[1] == "True", sys.argv[8:]
from appliance.lua_worker.worker_main import main
main(sys.argv[2:8])
"""
_ROOM_BYTES = 1 << 30
"""The part of a worker's address space that does not depend on the limits of executions. Unused stacks need most of
this space."""

PROBE_SECS = 20.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class WorkerProcess:
    """A process that runs Lua. `socket` is the hub's end of the connection."""

    def __init__(self, limits: RunLimits, zone: ZoneInfo) -> None:
        """Start the process. The process ends if the calling thread ends. Raise `OSError` if the system cannot
        start another process."""
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as on_failure:
            on_failure.callback(ours.close)
            ours.setblocking(False)
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, *_arguments(limits, zone)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )
            on_failure.pop_all()
        self.socket = ours
        self.pid = self._popen.pid
        self._stat: BinaryIO | None = None
        self._has_ended = False
        self._reading = Lock()
        self.resident_bytes()

    def resident_bytes(self) -> int:
        """Return the resident memory in bytes, or 0 if it cannot be read."""
        return int(self._read_stat(21)) * _PAGE_BYTES

    def is_halted(self) -> bool:
        """Return whether a signal such as SIGSTOP has halted the process."""
        return self._read_stat(0) in ("T", "t")

    def kill(self) -> None:
        self._popen.kill()

    def wait(self) -> str:
        """Wait until the process ends, and return how it ended. The method blocks, and may be called more than
        once."""
        code = self._popen.wait()
        with self._reading:
            self._has_ended = True
            if self._stat is not None:
                self._stat.close()
        if code >= 0:
            return describe_missing_program() or f"exit code {code}"
        name = signal.Signals(-code).name
        return f"{name}, perhaps for lack of memory" if -code == signal.SIGKILL else name

    def _read_stat(self, field: int) -> str:
        """Return a field of /proc/PID/stat, or "0" if the file is unreadable. Field 0 is the state.

        Keep the file open, because a confined process may be invisible in /proc even to its own user. A process that
        is just starting may also be invisible. In this case, the next call tries again. The lock is necessary because
        `wait` closes the file on another thread.
        """
        with self._reading, suppress(OSError, IndexError):
            if self._has_ended:
                return "0"
            if self._stat is None:
                self._stat = Path(f"/proc/{self.pid}/stat").open("rb", buffering=0)  # noqa: SIM115 - until `wait`
            return os.pread(self._stat.fileno(), 1024, 0).decode().rsplit(") ", 1)[1].split()[field]
        return "0"


def _arguments(limits: RunLimits, zone: ZoneInfo) -> list[str]:
    room = _ROOM_BYTES + 4 * limits.max_memory
    zone_place = ":".join(map(str, find_zone(str(zone.key))))
    most = limits.max_memory, limits.max_cpu_total_secs, room
    ids = ",".join(map(str, limits.user_ids))
    return [str(each) for each in (sys.dont_write_bytecode, os.getpid(), zone_place, *most, ids, *list_import_path())]


def list_import_path() -> list[str]:
    """Return `sys.path` for a process that imports the same packages as this process."""
    return [str(PROGRAM_FOLDER.parent), *(each for each in sys.path if Path(each).is_absolute())]


def probe_confinement() -> str:
    """Start a worker. Return a description of the protections that the worker's sandbox lacks, or an empty string.
    The call blocks for a fraction of a second. Raise `OSError` if no worker can be started."""
    process = WorkerProcess(RunLimits(), load_zone("UTC"))
    try:
        process.socket.settimeout(PROBE_SECS)
        frames = Decoder().feed(process.socket.recv(1 << 16))
        if not frames:
            raise OSError(f"the Lua worker ended while it was starting ({process.wait()})")
        return frames[0].parts[0].decode()
    finally:
        process.socket.close()
        process.kill()
        process.wait()
