"""Protects the hub's memory from other processes."""

from __future__ import annotations

_SET_DUMPABLE = 4


def protect_memory() -> bool:
    """Prevent other processes of this user from reading the hub's memory through /proc, a debugger, or a core
    dump. Return whether the kernel allowed this protection. Afterwards, the process's files in /proc belong to
    root, and root can still read the memory."""
    try:
        import ctypes  # Python builds for routers may lack ctypes
    except (ImportError, MemoryError):  # an old libffi raises MemoryError if executable memory is forbidden
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
