"""The sandbox. When the worker starts, it gives up all rights that running Lua does not need.

The system call filter (seccomp), a BPF program, allows only the calls that running Lua needs. A call for another
architecture kills the process, because system call numbers have other meanings there. An unlisted call fails with
EPERM, so that a C library that only tries the call continues. A call that was introduced after this list was written
fails with ENOSYS, as on an older kernel. In response, the C library uses an older call, such as `clone` for threads.
A filter can read the flags of `clone`.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import signal
import sys
from struct import Struct, pack

try:
    import ctypes
except (ImportError, MemoryError):  # routers may lack ctypes; an old libffi fails if executable memory is forbidden
    _libc: ctypes.CDLL = None  # type: ignore[assignment]
else:
    _libc = ctypes.CDLL(None, use_errno=True)

MAX_FURTHER_TASKS = 1_024
"""Maximum number of additional threads and processes that the worker may start. The kernel counts the threads and
processes of a user together, so a smaller limit could be exceeded by the user's other programs."""

_SET_PARENT_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_HALT = signal.SIGUSR1
_MAX_ARENAS = -8
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT, _LANDLOCK_VERSION = 444, 446, 1
_NO_CTYPES = "Landlock and seccomp need Python's module ctypes, which is missing"
_LANDLOCK_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of file rights in each version of Landlock. Versions that are missing at the end of the list have the
list's last number."""


def confine(parent: int, max_address_bytes: int) -> list[str]:
    """Give up all unneeded rights permanently. Exit if the hub (process `parent`) has already ended. Return a
    sentence for each restriction that the kernel or a service manager refused to apply. After this call, the
    process cannot open files or import modules."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the hub handles signals to the process group
        signal.signal(number, signal.SIG_IGN)
    if _libc is not None:
        _libc.signal(int(_HALT), _libc.pause)
        _libc.prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
        _libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        with contextlib.suppress(AttributeError):  # musl has no mallopt, and has only one arena
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


def halt_thread(thread: int) -> None:
    """Halt a thread of this process forever. Its code in C must hold no lock that other threads need. Without
    ctypes, end the process."""
    if _libc is None:
        os._exit(os.EX_SOFTWARE)
    signal.pthread_kill(thread, _HALT)


def trim_memory() -> None:
    """Return the C library's unused memory to the machine. Only glibc keeps much unused memory."""
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
        with open("/proc/loadavg") as file:
            tasks = int(file.read().split()[3].partition("/")[2])
        limits.append((resource.RLIMIT_NPROC, tasks + MAX_FURTHER_TASKS))
    return limits


def _enter_landlock() -> str:
    """Give up access to all paths, ports, and other processes. Return a sentence if the kernel cannot enforce
    that."""
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < 1:
        return f"this kernel does not support Landlock ({os.strerror(ctypes.get_errno())})"
    files = (1 << _LANDLOCK_RIGHTS.get(version, 16)) - 1
    ports, scopes = (3 if version >= first else 0 for first in (4, 6))
    rules = pack("=QQQ", files, ports, scopes)
    descriptor = _libc.syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(len(rules)), 0)
    if descriptor < 0 or _libc.syscall(_LANDLOCK_RESTRICT, descriptor, 0) != 0:
        return f"the kernel refuses Landlock ({os.strerror(ctypes.get_errno())})"
    os.close(descriptor)
    return ""


def _filter_system_calls() -> str:
    """Allow only the system calls that Lua needs. Return a sentence if the kernel cannot enforce that."""
    machine = os.uname().machine
    program = build_filter(machine, os.getpid())
    if program is None:
        return f"the hub has no system call filter (seccomp) for machines of type {machine}"
    buffer = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
    if _libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), header, 0, 0) != 0:
        return f"this kernel does not accept a system call filter (seccomp: {os.strerror(ctypes.get_errno())})"
    return ""


ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Maps a machine name to a column of the tables below and to the kernel's architecture number."""

ALLOWED = {
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "madvise": (28, 233),
    "recvfrom": (45, 207),  # the worker's only descriptor is the socket to the hub
    "sendto": (44, 206),
    "mprotect": (10, 226),
    "brk": (12, 214),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "gettid": (186, 178),
    "getpid": (39, 172),
    "rseq": (334, 293),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "rt_sigprocmask": (14, 135),
    "rt_sigaction": (13, 134),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "pause": (34, 73),  # for halted threads; on aarch64, the C library calls ppoll instead
    "restart_syscall": (219, 128),  # resumes an interrupted call after the process was halted
    "gettimeofday": (96, 169),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}

CLONE, TGKILL = (56, 220), (234, 131)
CLONE_THREAD = 0x10000
CLONE_NAMESPACES = 0x7E020080

FIRST_UNLISTED = 424
"""From this number on, system calls have the same numbers on all architectures. Lua needs none of these calls."""

X32_BIT = 0x40000000
"""Marks a system call of the x32 ABI, which has the same architecture number as x86_64."""

KILL, ALLOW, REFUSE, NO_SUCH_CALL = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

_INSTRUCTION = Struct("=HBBI")
_LOAD, _AND, _RETURN, _IF_EQUAL, _IF_AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35
# offsets in seccomp_data; for an argument, the offset of its lower half
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


def build_filter(machine: str, pid: int) -> bytes | None:
    """Return the filter program for a process with this id. Return None for a machine without a column in the
    tables."""
    if machine not in ARCHITECTURES or sys.maxsize < 1 << 32:
        return None
    column, architecture = ARCHITECTURES[machine]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_IF_AT_LEAST, 0, 1, X32_BIT), (_RETURN, 0, 0, KILL)),
        *((_IF_AT_LEAST, 0, 1, FIRST_UNLISTED), (_RETURN, 0, 0, NO_SUCH_CALL)),
    ]
    for numbers in ALLOWED.values():
        steps += [(_IF_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, ALLOW)]
    steps += _allow_if(CLONE[column], CLONE_THREAD | CLONE_NAMESPACES, CLONE_THREAD)  # allow threads, not processes
    steps += _allow_if(TGKILL[column], 0xFFFFFFFF, pid)  # abort() uses this call
    steps.append((_RETURN, 0, 0, REFUSE))
    return b"".join(_INSTRUCTION.pack(*step) for step in steps)


def _allow_if(number: int, mask: int, value: int) -> list[tuple[int, int, int, int]]:
    """Return the filter steps that allow this system call if its first argument, after masking, equals `value`."""
    return [
        (_IF_EQUAL, 0, 5, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_AND, 0, 0, mask),
        (_IF_EQUAL, 0, 1, value),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, REFUSE),
    ]
