"""Starting a worker: its interpreter, its socket, and its state in /proc."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import appliance
from appliance.lua.execution_limits import ExecutionLimits

_START = """
import sys
sys.dont_write_bytecode, sys.path[:] = sys.argv[1] == "True", sys.argv[6:]
from appliance.lua_worker.worker_main import main
main(sys.argv[2:6])
"""
_ROOM_BYTES = 1 << 30
"""Address space of a worker beside what its executions may use: most of it is stacks, and never touched."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def start_process(limits: ExecutionLimits, zone: ZoneInfo) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a worker and give our end of its socket. Must be called on a thread that lasts as long as the worker.

    `OSError` where the system has no room for another process.
    """
    ours, theirs = socket.socketpair()
    with theirs, ExitStack() as on_failure:
        on_failure.callback(ours.close)
        ours.setblocking(False)
        path = [str(Path(appliance.__file__).parents[1]), *(each for each in sys.path if Path(each).is_absolute())]
        room = _ROOM_BYTES + 4 * limits.max_memory
        zone_file = str(files("tzdata").joinpath("zoneinfo", *str(zone.key).split("/")))
        arguments = [sys.dont_write_bytecode, os.getpid(), zone_file, limits.max_memory, room, *path]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _START, *map(str, arguments)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
        on_failure.pop_all()
    return process, ours


def resident_bytes(pid: int) -> int:
    """Resident memory of the process in bytes; 0 where that cannot be read."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def is_halted(pid: int) -> bool:
    """Whether the process was stopped by a signal, and so does not merely wait for the processor."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] in "Tt"
    except (OSError, IndexError):
        return False


def describe_exit(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}, perhaps for want of memory" if -code == signal.SIGKILL else name
