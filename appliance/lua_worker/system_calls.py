"""System calls: the filter (seccomp) that leaves the worker those that running Lua needs, as a program in BPF.

A process of another architecture is killed, for its numbers mean other calls. A call that is not on the list fails
with EPERM, so that a C library that merely tries one goes on; one younger than the list fails with ENOSYS, as on an
older kernel, and the C library does without it (it starts threads with `clone` then, whose flags a filter can read).
"""

from __future__ import annotations

import errno
import sys
from struct import Struct

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""By the machine's name: the column of the tables below, and how the kernel marks a call of a 64-bit process."""

ALLOWED = {
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "madvise": (28, 233),
    "recvfrom": (45, 207),  # the worker has one descriptor, the socket to the hub, and can open no other
    "sendto": (44, 206),
    "rt_sigtimedwait": (128, 137),
    "setitimer": (38, 103),
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
    "restart_syscall": (219, 128),  # what waited while the process was halted and goes on
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
"""From here on the numbers are the same on all architectures; none of them is needed."""

X32_BIT = 0x40000000
"""Marks a call of x86_64's other convention, which reports the same architecture."""

KILL, ALLOW, REFUSE, NO_SUCH_CALL = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS

_INSTRUCTION = Struct("=HBBI")
_LOAD, _AND, _RETURN, _IF_EQUAL, _IF_AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # of seccomp_data; of an argument its lower half


def build_filter(machine: str, pid: int) -> bytes | None:
    """The program for a process of this number on `machine`, or None if the machine's calls are not listed here."""
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
    steps += _allow_if(CLONE[column], CLONE_THREAD | CLONE_NAMESPACES, CLONE_THREAD)  # a thread, and no process
    steps += _allow_if(TGKILL[column], 0xFFFFFFFF, pid)  # how abort() ends the process
    steps.append((_RETURN, 0, 0, REFUSE))
    return b"".join(_INSTRUCTION.pack(*step) for step in steps)


def _allow_if(number: int, mask: int, value: int) -> list[tuple[int, int, int, int]]:
    """The steps that allow a call whose first argument, under the mask, has the value."""
    return [
        (_IF_EQUAL, 0, 5, number),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_AND, 0, 0, mask),
        (_IF_EQUAL, 0, 1, value),
        (_RETURN, 0, 0, ALLOW),
        (_RETURN, 0, 0, REFUSE),
    ]
