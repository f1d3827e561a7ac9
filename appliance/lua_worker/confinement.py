"""Confinement: what the worker gives up at its start, so that little can be done with it, whatever runs inside."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
from pathlib import Path
from struct import pack
from typing import Any

from appliance.lua_worker.system_calls import build_filter

try:
    import ctypes
except (ImportError, MemoryError):  # a router may lack it; an old libffi fails where nothing may be made executable
    _libc: Any = None
else:
    _libc = ctypes.CDLL(None, use_errno=True)

MAX_FURTHER_TASKS = 1_024
"""Threads and processes that may come to those of the whole machine before the worker cannot start one; the kernel
counts all of one user's, so a limit of the worker's own few would depend on what else this user runs."""

_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_MAX_ARENAS = -8
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT, _LANDLOCK_VERSION = 444, 446, 1
_NO_CTYPES = "Python's module ctypes is missing, without which neither Landlock nor seccomp can be asked for"
_LANDLOCK_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights to files each version of Landlock knows; later ones as many as the last."""


def confine(parent: int, max_address_bytes: int) -> list[str]:
    """Give up what the worker does not need, for good; exits where the hub, process `parent`, has ended already.

    What the system refuses to take (a service manager may forbid it) stays as it is; the sentences say which walls
    are missing. Nothing can be opened or imported afterwards.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a signal to the group is the hub's to handle
        signal.signal(number, signal.SIG_IGN)
    if _libc is not None:
        _libc.prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
        _libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        with contextlib.suppress(AttributeError):  # musl has one arena anyway
            _libc.mallopt(_MAX_ARENAS, 2)
    if os.getppid() != parent:
        os._exit(0)
    limits = _list_limits(max_address_bytes)
    missing = [_NO_CTYPES] if _libc is None else [_enter_landlock()]
    for limit, most in limits:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    gc.freeze()
    if _libc is not None:
        _libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        missing.append(_filter_system_calls())
    return [each for each in missing if each]


def trim_memory() -> None:
    """Let the C library return to the machine what it keeps for the next one; only glibc keeps much, and can."""
    with contextlib.suppress(AttributeError):
        _libc.malloc_trim(0)


def _list_limits(max_address_bytes: int) -> list[tuple[int, int]]:
    limits = [
        (resource.RLIMIT_AS, max_address_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    ]
    with contextlib.suppress(OSError, ValueError, IndexError):
        tasks = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
        limits.append((resource.RLIMIT_NPROC, tasks + MAX_FURTHER_TASKS))
    return limits


def _enter_landlock() -> str:
    """Give up every path, port and process outside; a sentence if the kernel cannot take them."""
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < 1:
        return f"this kernel has no Landlock ({os.strerror(ctypes.get_errno())})"
    files = (1 << _LANDLOCK_RIGHTS.get(version, 16)) - 1
    ports, scopes = (3 if version >= first else 0 for first in (4, 6))
    rules = pack("=QQQ", files, ports, scopes)
    descriptor = _libc.syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(len(rules)), 0)
    if descriptor < 0 or _libc.syscall(_LANDLOCK_RESTRICT, descriptor, 0) != 0:
        return f"Landlock refuses ({os.strerror(ctypes.get_errno())})"
    os.close(descriptor)
    return ""


def _filter_system_calls() -> str:
    """Leave the system calls that running Lua needs; a sentence if the kernel cannot."""
    machine = os.uname().machine
    program = build_filter(machine, os.getpid())
    if program is None:
        return f"no filter of system calls (seccomp) is known for a machine of the kind {machine}"
    buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
    if _libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header, 0, 0) != 0:
        return f"this kernel takes no filter of system calls (seccomp: {os.strerror(ctypes.get_errno())})"
    return ""
