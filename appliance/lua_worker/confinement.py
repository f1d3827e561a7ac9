"""Confinement: what the worker gives up at its start, so that little can be done with it, whatever runs inside."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal

_SET_PARENT_DEATH_SIGNAL, _SET_NO_NEW_PRIVILEGES = 1, 38
_MAX_ARENAS = -8
_libc = ctypes.CDLL(None)


def confine(parent: int, max_address_bytes: int) -> None:
    """Give up what the worker does not need, for good; exits where the hub, process `parent`, has ended already.

    What the system refuses to take (a service manager may forbid it) stays as it is.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a signal to the group is the hub's to handle
        signal.signal(number, signal.SIG_IGN)
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    _libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    with contextlib.suppress(AttributeError):  # musl has one arena anyway
        _libc.mallopt(_MAX_ARENAS, 2)
    limits = (
        (resource.RLIMIT_AS, max_address_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 0),
    )
    for limit, most in limits:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    gc.freeze()


def trim_memory() -> None:
    """Let the C library return to the machine what it keeps for the next one; only glibc keeps much, and can."""
    with contextlib.suppress(AttributeError):
        _libc.malloc_trim(0)
