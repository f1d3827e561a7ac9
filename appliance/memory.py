"""The memory of the process: keeps garbage collections short, and returns memory that a flood took."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from resource import getpagesize

from appliance.clock import Clock

COLLECTION_THRESHOLDS = (700, 10, 50)
"""The numbers of objects, and then of collections of the previous generation, that trigger a collection.

A full collection in a home of 2,000 devices blocks the loop for 100 ms, so it must be rare.
"""

TRIM_SECS = 10.0
"""Seconds between two checks of the process's memory."""

GROWTH_BYTES = 3 << 20
"""Growth above the smallest size seen that makes a search for unused pages worthwhile."""

LARGE_BYTES = 1 << 20
"""Blocks of this size or more get their own mappings, so that each is returned when it is freed."""

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1


def limit_allocator() -> None:
    """Let all threads share one pool, and return large blocks to the system; only glibc has these settings.

    By default, each thread has its own pool, and after the first block of 12 MB glibc keeps later ones.
    """
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    if (mallopt := _find("mallopt")) is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        mallopt(_TRIM_THRESHOLD, LARGE_BYTES)


def keep_present() -> None:
    """Exclude the present objects from garbage collections, which would take long in a home with many devices.

    They are still freed when nothing refers to them, except for reference cycles.
    """
    gc.collect()
    gc.freeze()


async def return_unused(clock: Clock) -> None:
    """Return unused pages to the system while the process is larger than before; run until cancelled."""
    if (trim := _find("malloc_trim")) is None:
        return
    least = resident_bytes()
    while True:
        await clock.sleep(TRIM_SECS)
        if resident_bytes() > least + GROWTH_BYTES:
            trim(0)
        least = min(least, resident_bytes())


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 if the system does not show it."""
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
