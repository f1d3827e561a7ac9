"""The C allocator: limits its pools, serves Python's objects after the start, and returns unused pages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from resource import getpagesize

LARGE_BYTES = 1 << 20
"""Blocks of at least this size are mapped separately, so that freeing such a block returns its memory to the
system."""

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1

_RAW, _MEMORY, _OBJECTS = range(3)
"""Python's allocator domains."""


def limit_pools() -> None:
    """Let all threads share one memory pool, and return large blocks to the system. Only glibc has these settings.
    Call this function before the first thread starts, because each earlier thread keeps its pool.

    By default, each thread has its own pool, and glibc keeps large blocks once a block of 12 MB was freed.
    """
    if (mallopt := _find("mallopt")) is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, LARGE_BYTES)


def serve_python() -> None:
    """Let Python allocate new objects with glibc's `malloc`.

    `malloc` can return a single unused page to the system. Python's allocator can return only whole mebibytes.

    Python's functions that free or enlarge a block are kept, because they pass foreign blocks on to `free` and
    `realloc`. Other allocators (`PYTHONMALLOC`, Python without the GIL) do not support foreign blocks, so they remain
    unchanged.
    """
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if "PYTHONMALLOC" in os.environ or not has_gil or _find("mallopt") is None:
        return
    import ctypes

    class Allocator(ctypes.Structure):
        _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]

    raw, present = Allocator(), Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(_RAW, ctypes.byref(raw))
    for domain in (_MEMORY, _OBJECTS):
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(present))
        if present.context is None and raw.context is None:  # only debug allocators have a context
            present.malloc, present.calloc = raw.malloc, raw.calloc
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(present))


def return_pages() -> None:
    """Return unused pages to the system, if the C library can."""
    if (trim := _find("malloc_trim")) is not None:
        trim(0)


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes, or 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()
    except OSError:
        return 0


@cache
def _find(name: str) -> Callable[..., object] | None:
    try:
        import ctypes  # Python builds for routers may lack ctypes

        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (ImportError, MemoryError, AttributeError, OSError):
        return None
    return found
