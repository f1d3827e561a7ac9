"""Controls the hub's garbage collections, and returns unused memory to the system.

While the hub works, collections are short. After many requests, there are additional collections.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable

from appliance.allocator import resident_bytes, return_pages
from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.events import CatalogReloaded, DeviceRemoved, DeviceStateChanged, Event
from appliance.shrinking import shrunk

COLLECTION_THRESHOLDS = (700, 3, 170)
"""The thresholds of garbage collection. For the first generation, the threshold is a number of objects. For the other
generations, the threshold is a number of collections of the previous generation.

A collection blocks the loop for up to 0.7 ms per 1,000 objects. The second threshold keeps collections small while
hundreds of automations run. A full collection must be rare.
"""

DEVICES_PER_EXCLUSION = 50
"""Number of devices after which their objects are excluded from garbage collections."""

FILES_PER_EXCLUSION = 1000
"""A reload of a folder with at least this number of files excludes all objects. Each file has about 70 objects."""

CHECK_SECS = 10.0
"""Seconds between two checks of the process's memory."""

CHECK_AGAIN_SECS = 2.0
"""The same after a check that packed objects, because the next checks pack the remaining ones. All of them must end
within 30 seconds of a flood."""

MAX_COLLECTED = 30_000
"""Maximum number of objects in an additional collection, so that the collection does not block the loop."""

GROWTH_BYTES = 3 << 20
"""If the process exceeds its smallest size by more than this, the hub returns unused pages."""


def exclude_present() -> None:
    """Exclude all existing objects from garbage collections, because these collections would be slow in a home with
    many devices. Before, collect only the new objects, because a full collection at the hub's start finds no garbage.

    Excluded objects are still freed when their last reference disappears, except in reference cycles.
    """
    gc.collect(1)
    gc.freeze()


def exclude_devices(bus: Bus) -> None:
    """From now on, also exclude the objects of devices from garbage collections, after the first report of each
    device. Also exclude the objects of a home with many files after each reload.

    Devices that disappear and return exclude nothing, because only a new maximum number of devices matters.
    """
    reported: set[str] = set()
    excluded = 0

    def count(event: Event) -> None:
        nonlocal reported, excluded
        if isinstance(event, CatalogReloaded):
            if event.loaded_count >= FILES_PER_EXCLUSION:
                exclude_present()
        elif isinstance(event, DeviceRemoved) and event.device_id in reported:
            reported.remove(event.device_id)
            reported = shrunk(reported)
        elif isinstance(event, DeviceStateChanged):
            reported.add(event.device.id)
            if len(reported) >= excluded + DEVICES_PER_EXCLUSION:
                excluded = len(reported)
                exclude_present()

    bus.listen(count, CatalogReloaded, DeviceStateChanged, DeviceRemoved)


async def return_unused(clock: Clock, pack: Callable[[], Awaitable[bool]]) -> None:
    """Return unused pages to the system whenever the process has grown. Run until cancelled.

    `pack` packs the small objects that remain after a burst of requests, and returns whether there were any such
    objects. After it has packed some, and whenever the size has changed, a collection frees more pages.
    """
    least = collected = resident_bytes()
    has_packed = False
    while True:
        await clock.sleep(CHECK_AGAIN_SECS if has_packed else CHECK_SECS)
        has_packed = await pack()
        is_due = has_packed or abs(resident_bytes() - collected) > GROWTH_BYTES
        if is_due and sum(len(gc.get_objects(each)) for each in range(3)) < MAX_COLLECTED:
            gc.collect()  # this collection also empties Python's free lists, whose tuples keep pages in use
        if resident_bytes() > least + GROWTH_BYTES:
            # the cache refers to up to 4,096 names that C code has created, such as copies of `utcoffset`; each name
            # keeps a page in use
            sys._clear_type_cache()  # noqa: SLF001 - public in Python's documentation
            return_pages()
        if is_due:
            collected = resident_bytes()
        least = min(least, resident_bytes())
