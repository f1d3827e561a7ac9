"""Keeps garbage collections short, and returns memory to the system after a flood of requests."""

from __future__ import annotations

import gc
import marshal
import os
import sys
from array import array
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from resource import getpagesize
from typing import Any

from appliance.clock import Clock

COLLECTION_THRESHOLDS = (700, 10, 50)
"""The thresholds of garbage collection: objects for the first generation, collections of the previous generation for
the others.

A full collection in a home of 2,000 devices blocks the loop for 100 ms, so it must be rare.
"""

TRIM_SECS = 10.0
"""Seconds between two checks of the process's memory."""

MAX_COLLECTED = 50_000
"""Maximum number of objects in an additional collection, so that it does not block the loop."""

GROWTH_BYTES = 3 << 20
"""Growth above the smallest process size after which the hub searches for unused pages."""

LARGE_BYTES = 1 << 20
"""Blocks of at least this size get their own mappings, so that the system gets each block back when it is freed."""

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1

_RAW, _MEMORY, _OBJECTS = range(3)
"""Python's allocator domains."""


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

    Excluded objects are still freed when their last reference disappears, except in reference cycles. With glibc,
    later objects come from its `malloc`, which returns single pages. Python's allocator returns only whole mebibytes.
    """
    gc.collect()
    gc.freeze()
    if _find("mallopt") is not None:
        _allocate_by_malloc()


def _allocate_by_malloc() -> None:
    """Let Python allocate new objects by `malloc`.

    Keep Python's functions that free or enlarge a block, because they pass foreign blocks on to `free` and `realloc`.
    Other allocators (`PYTHONMALLOC`, Python without the GIL) do not, so they stay as they are.
    """
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if "PYTHONMALLOC" in os.environ or not has_gil:
        return
    import ctypes

    class Allocator(ctypes.Structure):
        _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]

    raw, present = Allocator(), Allocator()
    ctypes.pythonapi.PyMem_GetAllocator(_RAW, ctypes.byref(raw))
    for domain in (_MEMORY, _OBJECTS):
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(present))
        if present.context is None and raw.context is None:  # only allocators of a debugger have a context
            present.malloc, present.calloc = raw.malloc, raw.calloc
            ctypes.pythonapi.PyMem_SetAllocator(domain, ctypes.byref(present))


async def return_unused(clock: Clock, pack: Callable[[], Awaitable[bool]]) -> None:
    """Run until cancelled; whenever the process has grown, return unused pages to the system.

    `pack` packs small objects that outlive a flood, and returns whether there were any.
    """
    trim, least = _find("malloc_trim"), resident_bytes()
    while True:
        await clock.sleep(TRIM_SECS)
        if await pack() and sum(len(gc.get_objects(each)) for each in range(3)) < MAX_COLLECTED:
            gc.collect()  # also empties Python's lists of free tuples, which keep pages of the packed objects
        if trim is not None and resident_bytes() > least + GROWTH_BYTES:
            trim(0)
        least = min(least, resident_bytes())


class Packed:
    """Records of removed devices in one block of memory, oldest first. A record begins with the id of its device.

    Small objects that outlive a flood would keep its memory: Python returns only whole mebibytes.
    """

    def __init__(self) -> None:
        self._forget()

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size(self) -> int:
        """Bytes of all records."""
        return len(self._block)

    def add(self, record: tuple[Any, ...]) -> None:
        """Add a record of plain values."""
        self._block += marshal.dumps(record, 2)  # later formats replace repeated texts by references
        self._ends.append(len(self._block))

    def take(self, device_id: str) -> tuple[Any, ...] | None:
        """Remove and return the device's record, or return None without a record."""
        word, at = device_id.encode(errors="surrogatepass"), -1
        while self._ends and (at := self._block.find(word, at + 1)) >= 0:
            index = bisect_right(self._ends, at)
            if self._read(index)[0] == device_id:
                return self._remove(index)
        return None

    def take_oldest(self) -> tuple[Any, ...]:
        """Remove and return the oldest record."""
        return self._remove(0)

    def take_all(self) -> Iterator[tuple[Any, ...]]:
        """Remove all records, and yield them."""
        for index in range(len(self._ends)):
            yield self._read(index)
        self._forget()

    def _forget(self) -> None:
        self._block, self._ends = bytearray(), array("L")

    def _read(self, index: int) -> tuple[Any, ...]:
        first = self._ends[index - 1] if index else 0
        record: tuple[Any, ...] = marshal.loads(self._block[first : self._ends[index]])  # noqa: S302 - made by `add`
        return record

    def _remove(self, index: int) -> tuple[Any, ...]:
        record, first = self._read(index), self._ends[index - 1] if index else 0
        size = self._ends[index] - first
        del self._block[first : first + size]
        self._ends = array("L", [*self._ends[:index], *(end - size for end in self._ends[index + 1 :])])
        return record


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
