"""Controls the hub's garbage collections: short collections while it works, and additional ones after many
requests."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable

from appliance.allocator import resident_bytes, return_pages
from appliance.clock import Clock

COLLECTION_THRESHOLDS = (700, 10, 50)
"""The thresholds of garbage collection: objects for the first generation, collections of the previous generation for
the others.

A full collection in a home of 2,000 devices blocks the loop for 100 ms, so it must be rare.
"""

CHECK_SECS = 10.0
"""Seconds between two checks of the process's memory."""

MAX_COLLECTED = 50_000
"""Maximum number of objects in an additional collection, so that the collection does not block the loop."""

GROWTH_BYTES = 3 << 20
"""If the process has grown by more than this above its smallest size, the hub returns unused pages."""


def exclude_present() -> None:
    """Exclude all existing objects from garbage collections, which would be slow in a home with many devices.

    Excluded objects are still freed when their last reference disappears, except in reference cycles.
    """
    gc.collect()
    gc.freeze()


async def return_unused(clock: Clock, pack: Callable[[], Awaitable[bool]]) -> None:
    """Return unused pages to the system whenever the process has grown. Run until cancelled.

    `pack` packs small objects that survive a burst of requests, and returns whether there were any.
    """
    least = resident_bytes()
    while True:
        await clock.sleep(CHECK_SECS)
        if await pack() and sum(len(gc.get_objects(each)) for each in range(3)) < MAX_COLLECTED:
            gc.collect()  # also empties Python's free lists, whose tuples keep pages in use
        if resident_bytes() > least + GROWTH_BYTES:
            return_pages()
        least = min(least, resident_bytes())
