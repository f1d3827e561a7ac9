"""Keeps garbage collections short, and returns memory to the system after a flood of requests."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from resource import getpagesize

from appliance.clock import Clock

COLLECTION_THRESHOLDS = (700, 10, 50)
"""The thresholds of garbage collection: objects for the first generation, collections of the previous generation for
the others.

A full collection in a home of 2,000 devices blocks the loop for 100 ms, so it must be rare.
"""

TRIM_SECS = 10.0
"""Seconds between two checks of the process's memory."""

GROWTH_BYTES = 3 << 20
"""Growth above the smallest process size that justifies a search for unused pages."""

LARGE_BYTES = 1 << 20
"""Blocks of at least this size get their own mappings, so that the system gets each block back when it is freed."""

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1


def limit_allocator() -> None:
    """Let all threads share one memory pool, and return large blocks to the system. Only glibc has these settings.

    By default, each thread has its own pool, and glibc keeps large blocks after the first block of 12 MB.
    """
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    if (mallopt := _find("mallopt")) is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, LARGE_BYTES)


def keep_present() -> None:
    """Exclude all present objects from garbage collections, which would take long in a home with many devices.

    Excluded objects are still freed when their last reference disappears, except in reference cycles.
    """
    gc.collect()
    gc.freeze()


async def return_unused(clock: Clock) -> None:
    """Run until cancelled; whenever the process has grown, return unused pages to the system."""
    if (trim := _find("malloc_trim")) is None:
        return
    least = resident_bytes()
    while True:
        await clock.sleep(TRIM_SECS)
        if resident_bytes() > least + GROWTH_BYTES:
            trim(0)
        least = min(least, resident_bytes())


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes, or 0 if the system does not report it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()
    except OSError:
        return 0


def _find(name: str) -> Callable[..., object] | None:
    try:
        import ctypes  # a part of Python that a router may lack

        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (ImportError, MemoryError, AttributeError, OSError):
        return None
    return found
