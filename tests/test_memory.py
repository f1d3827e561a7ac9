"""The memory of the process: which objects garbage collections inspect, and when unused pages are returned."""

from __future__ import annotations

import asyncio
import gc
import weakref

from appliance.allocator import resident_bytes, serve_python
from appliance.cli.process.garbage import GROWTH_BYTES, exclude_present, return_unused
from appliance.event_loop import run
from tests.fakes.clock import VirtualClock


class Node:
    me: object = None


def test_cycles_that_are_made_after_the_start_are_freed() -> None:
    exclude_present()
    later = Node()
    later.me = later
    gone = weakref.ref(later)
    del later
    gc.collect()
    assert gone() is None


def test_returning_memory_continues_until_it_is_cancelled() -> None:
    async def pack() -> bool:
        return True

    async def work() -> bool:
        clock = VirtualClock()
        returning = asyncio.get_running_loop().create_task(return_unused(clock, pack))
        blocks = [bytes(1024) for _ in range(2 * GROWTH_BYTES // 1024)]
        for _ in range(3):
            await clock.advance(30, sleepers=1)
        blocks.clear()
        returning.cancel()
        await asyncio.wait({returning})
        return returning.cancelled() or returning.exception() is None

    assert resident_bytes() > 1 << 20
    assert run(work())


def test_objects_from_before_and_after_malloc_are_freed_and_enlarged() -> None:
    before = [[number] for number in range(1000)]
    serve_python()
    after = [[number] for number in range(1000)]
    for each in (*before, *after):
        each.extend(range(100))
        each[:] = each[:3]
    assert before == after and sum(map(len, before)) == 3000
