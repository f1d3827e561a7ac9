"""What one durable change costs in a home of 1,000 entries and in one of 25,000."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from appliance.clock import Clock
from appliance.home.bus import Bus
from appliance.home.changes import PutRoom, SetMembers
from appliance.home.layout import Layout
from appliance.home.model import Group, Room
from appliance.home.registry import Registry
from appliance.store.changes import Changes
from appliance.store.disk import Disk
from appliance.store.document import Document
from appliance.store.records import encode_layout

SMALL, LARGE = 1_000, 25_000
TIMES = 400
MAX_RATIO = 2.0
"""What a change in the large home may cost, beside one in the small."""


def measure() -> Iterator[tuple[str, str]]:
    """Milliseconds of a change, and the longest time that the loop was held meanwhile, compactions included."""
    figures = [asyncio.run(_measure(entries)) for entries in (SMALL, LARGE)]
    for entries, (p50, p99, held) in zip((SMALL, LARGE), figures, strict=True):
        yield (
            f"{entries} entries: a change, p50 ms (p99), loop held at most, ms",
            f"{p50:.2f} ({p99:.2f}), {held:.1f}",
        )
    yield f"ratio of the two p50 (target: at most {MAX_RATIO:g})", f"{figures[1][0] / figures[0][0]:.2f}"


async def _measure(entries: int) -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory(prefix="lares-benchmark-") as folder:
        clock, registry = Clock(), Registry(Bus(), Clock())
        async with Document(Disk(Path(folder)), clock) as document:
            layout = _layout(entries)
            await document.put_many(encode_layout(layout))
            registry.restore(layout, [])
            async with Changes(registry, document) as changes:
                watching = asyncio.ensure_future(_watch_loop())
                times = []
                for number in range(TIMES):
                    change = PutRoom(room=Room(id=f"room_{number % 100}", name=f"Room {number}"))
                    began = time.perf_counter()
                    await changes.make(change if number % 2 else SetMembers(group_id="group", members=()))
                    times.append(1000 * (time.perf_counter() - began))
                watching.cancel()
                held = await watching
        times.sort()
        return times[TIMES // 2], times[TIMES * 99 // 100], held


async def _watch_loop() -> float:
    """The longest time, in milliseconds, that the loop took to come round; until it is cancelled."""
    longest, before = 0.0, time.perf_counter()
    try:
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, before = max(longest, 1000 * (now - before)), now
    except asyncio.CancelledError:
        return longest


def _layout(entries: int) -> Layout:
    group = Group(id="group", name="Group", members=())
    rooms = {f"room_{number}": Room(id=f"room_{number}", name=f"Room {number}") for number in range(entries)}
    return Layout(rooms=rooms, groups={"group": group})
