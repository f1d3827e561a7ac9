"""Memory of the process: the objects that collections inspect, and the return of unused pages."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from pathlib import Path

from appliance.event_loop import run
from appliance.memory import GROWTH_BYTES, Packed, keep_present, resident_bytes, return_unused
from tests.fakes.clock import VirtualClock

ROOT = Path(__file__).parents[1]


class Node:
    me: object = None


def test_cycles_that_are_made_after_the_start_are_freed() -> None:
    keep_present()
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


def test_packed_records_are_found_by_their_whole_id() -> None:
    packed = Packed()
    records = [("lamp:1", {"x": 1.5}), ("lamp:12", [None, b"lamp:1"]), ("p", ("lamp:3",)), ("\ud800é", 3)]
    for record in records:
        packed.add(record)
    assert len(packed) == 4
    assert [packed.take(each) for each in ("lamp", "lamp:3", "lamp:1", "\ud800é")] == [
        None,
        None,
        records[0],
        records[3],
    ]
    assert packed.take_oldest() == records[1]
    assert (packed.take("lamp:1"), packed.take("p"), packed.take("p")) == (None, records[2], None)
    assert (len(packed), packed.size) == (0, 0)
    packed.add(records[0])
    assert [*packed.take_all()] == records[:1] and not len(packed)


def test_objects_from_before_and_after_malloc_are_freed_and_enlarged() -> None:
    before = [[number] for number in range(1000)]
    keep_present()
    after = [[number] for number in range(1000)]
    for each in (*before, *after):
        each.extend(range(100))
        each[:] = each[:3]
    assert before == after and sum(map(len, before)) == 3000


def test_the_mqtt_adapter_imports_no_http_client() -> None:
    code = "import sys, appliance.adapters.mqtt.adapter; print('aiohttp' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
