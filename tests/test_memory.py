"""The memory of the process: which objects garbage collections inspect, and when unused pages are returned."""

from __future__ import annotations

import asyncio
import gc
import mmap
import sys
import weakref
from collections.abc import Collection

import pytest
from msgspec.structs import replace

from appliance.adapters.mqtt.newest_messages import MAX_REMEMBERED_BYTES
from appliance.adapters.mqtt.templates.texts import MAX_KEPT_PATTERNS
from appliance.allocator import resident_bytes, serve_python
from appliance.api.device_encoder import DeviceEncoder
from appliance.automations.names.name_watcher import MAX_PAST_BYTES
from appliance.automations.timers import MAX_BYTES_IN_ALL
from appliance.automations.variables import MAX_TOTAL_BYTES
from appliance.cli.process import garbage
from appliance.cli.process.garbage import (
    CHECK_AGAIN_SECS,
    CHECK_SECS,
    COLLECTION_THRESHOLDS,
    DEVICES_PER_EXCLUSION,
    FILES_PER_EXCLUSION,
    GROWTH_BYTES,
    exclude_devices,
    exclude_present,
    return_unused,
)
from appliance.event_loop import run
from appliance.history.collector import MAX_ENTRY_BYTES_WAITING, MAX_PACKED_BYTES, Collector
from appliance.history.device_history import DeviceHistory
from appliance.history.execution_history import MAX_EXECUTION_HISTORY_BYTES
from appliance.home.bus import Bus
from appliance.home.events import CatalogReloaded, DeviceRemoved
from appliance.home.layout import Layout
from appliance.home.registry import Registry
from appliance.home.values import Value
from appliance.log_buffer import MAX_LOG_BUFFER_BYTES
from appliance.lua.running.worker import MAX_IDLE_GROWTH_BYTES
from appliance.store.changed_devices import ChangedDevices
from appliance.store.recorder import MAX_STOPPED_BYTES
from tests.fakes.clock import VirtualClock
from tests.fakes.furnished import ADAPTER, many, show


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


def test_the_exclusion_of_a_large_home_inspects_only_new_objects() -> None:
    generations: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    gc.callbacks.append(note)
    try:
        exclude_present()
    finally:
        gc.callbacks.remove(note)
    assert generations == [1]


@pytest.mark.parametrize(("files", "is_excluded"), [(FILES_PER_EXCLUSION - 1, False), (FILES_PER_EXCLUSION, True)])
def test_the_objects_of_many_reloaded_files_are_excluded(files: int, is_excluded: bool) -> None:
    bus = Bus()
    exclude_devices(bus)
    later = Node()
    bus.publish(CatalogReloaded(target="automations", loaded_count=files, faults=(), duration_ms=1))
    assert _is_excluded(later) is is_excluded


def _is_excluded(tracked: object) -> bool:
    return all(each is not tracked for each in gc.get_objects())


def test_objects_of_new_devices_are_excluded_once() -> None:
    """Devices that disappear and return exclude nothing, so the number of exclusions is limited."""
    bus = Bus()
    registry = Registry(bus, VirtualClock())
    exclude_devices(bus)

    def is_excluded_after(devices: int) -> bool:
        later = Node()
        show(registry, *many(devices))
        return _is_excluded(later)

    assert not is_excluded_after(DEVICES_PER_EXCLUSION - 1)
    assert is_excluded_after(DEVICES_PER_EXCLUSION)
    for device in registry.list_devices():
        registry.remove(ADAPTER, device.id)
    assert not is_excluded_after(DEVICES_PER_EXCLUSION)
    assert not is_excluded_after(2 * DEVICES_PER_EXCLUSION - 1)
    assert is_excluded_after(2 * DEVICES_PER_EXCLUSION)

    restored = [replace(each, attributes={"state": "offline"}) for each in registry.list_devices()]
    registry.restore(Layout(), restored)
    exclude_devices(bus)
    assert is_excluded_after(DEVICES_PER_EXCLUSION)


def test_collections_while_many_objects_appear_are_small() -> None:
    sizes: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 1:
            sizes.append(sum(len(gc.get_objects(each)) for each in (0, 1)))

    gc.collect()
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    gc.callbacks.append(note)
    try:
        alive = [[number] for number in range(100_000)]
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
    assert len(alive) == 100_000
    assert 0 < max(sizes) <= 4_000


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


def test_a_collection_follows_each_change_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of many executions leaves full free lists and nothing to pack."""
    size, collections = [20], list[int]()
    monkeypatch.setattr(garbage, "resident_bytes", lambda: size[0] << 20)

    async def work() -> None:
        clock = VirtualClock()

        async def pack() -> bool:
            return False

        monkeypatch.setattr(gc, "collect", lambda: collections.append(size[0]))
        returning = asyncio.get_running_loop().create_task(return_unused(clock, pack))
        for size[0] in (20, 21, 40, 40, 30, 30, 30):
            await clock.advance(CHECK_SECS, sleepers=1)
        returning.cancel()
        await asyncio.wait({returning})

    run(work())
    assert collections == [40, 30]


def test_checks_of_the_memory_follow_soon_until_all_is_packed() -> None:
    checks: list[float] = []

    async def work() -> None:
        clock = VirtualClock()

        async def pack() -> bool:
            checks.append(clock.monotonic() - began)
            return len(checks) in (2, 3)

        began = clock.monotonic()
        returning = asyncio.get_running_loop().create_task(return_unused(clock, pack))
        await clock.advance(3 * CHECK_SECS + 2 * CHECK_AGAIN_SECS, sleepers=1)
        returning.cancel()
        await asyncio.wait({returning})

    run(work())
    soon = 2 * CHECK_SECS + CHECK_AGAIN_SECS
    assert checks == [
        CHECK_SECS,
        2 * CHECK_SECS,
        soon,
        soon + CHECK_AGAIN_SECS,
        3 * CHECK_SECS + 2 * CHECK_AGAIN_SECS,
    ]


def test_objects_from_before_and_after_malloc_are_freed_and_enlarged() -> None:
    before = [[number] for number in range(1000)]
    serve_python()
    after = [[number] for number in range(1000)]
    for each in (*before, *after):
        each.extend(range(100))
        each[:] = each[:3]
    assert before == after and sum(map(len, before)) == 3000


def test_many_removed_devices_leave_no_large_sets_of_changes() -> None:
    registry, changed = Registry(Bus(), VirtualClock()), ChangedDevices()
    show(registry, *many(1))
    (device,) = registry.list_devices()
    values: dict[str, Value] = {"temperature": {"value": 20, "unit": "°C"}}
    for number in range(10_000):
        state = "offline" if number % 2 else "online"
        known = replace(device, id=f"{number}", attributes={**values, "state": state})
        changed.note_change(known, ["temperature"])
    for number in range(10_000):
        changed.note_removal(f"{number}", is_deleted=True)
    changed.take_due()
    changed.note_flush()
    assert all(sys.getsizeof(each) < 1_000 for each in vars(changed).values())


def test_many_removed_devices_leave_no_large_dictionaries() -> None:
    bus, clock = Bus(), VirtualClock()
    registry, encoder = Registry(bus, clock), DeviceEncoder()
    history, collector = DeviceHistory(bus, clock, 16 << 20), Collector(bus, 0)
    bus.listen(encoder.forget_removed, DeviceRemoved)
    show(registry, *many(2_000))
    encoder.encode_list(registry.list_devices())
    parts = (registry, encoder, history, collector)
    entries = {id(each) for each in _list_entries(*parts) if len(each) >= 2_000}
    assert len(entries) >= 5
    for device in registry.list_devices()[1:]:
        registry.remove(ADAPTER, device.id)
        history.pack(device.id)
        collector.pack(device.id)
    assert [sys.getsizeof(each) for each in _list_entries(*parts) if sys.getsizeof(each) > 1_000] == []


def _list_entries(*parts: object) -> list[Collection[object]]:
    """Return the dictionaries and sets of these objects, and the dictionaries in them."""
    entries = [each for part in parts for each in vars(part).values() if isinstance(each, dict | set)]
    inner = [each for outer in entries if isinstance(outer, dict) for each in outer.values()]
    return [*entries, *(each for each in inner if isinstance(each, dict))]


def test_names_of_attributes_are_freed_when_memory_is_returned() -> None:
    """Python's type cache refers to names that C code creates, and each name may keep a page in use."""

    async def pack() -> bool:
        return False

    async def work() -> bool:
        clock = VirtualClock()
        returning = asyncio.get_running_loop().create_task(return_unused(clock, pack))
        await clock.advance(5, sleepers=1)
        block = mmap.mmap(-1, 4 * GROWTH_BYTES)  # freed memory of other tests would not let the process grow
        block.write(bytes(len(block)))
        names = ["".join(("attribute_", str(number))) for number in range(100)]
        alone = sum(map(sys.getrefcount, names))
        assert not any(hasattr(Node, name) for name in names)
        cached = sum(map(sys.getrefcount, names))
        await clock.advance(30, sleepers=1)
        returning.cancel()
        await asyncio.wait({returning})
        block.close()
        return sum(map(sys.getrefcount, names)) == alone < cached

    assert run(work())


def test_no_part_keeps_more_than_memory_may_grow_in_a_flood() -> None:
    """Each of these limits can be filled by a flood, and its content remains afterwards. The whole hub may grow by at
    most 10 MB, so each part must leave room for the others."""
    limits = (
        MAX_REMEMBERED_BYTES,
        MAX_EXECUTION_HISTORY_BYTES,
        MAX_IDLE_GROWTH_BYTES,
        MAX_LOG_BUFFER_BYTES,
        MAX_PACKED_BYTES,
        MAX_PAST_BYTES,
        MAX_STOPPED_BYTES,
        MAX_KEPT_PATTERNS * 22_000,
        MAX_ENTRY_BYTES_WAITING,
        MAX_TOTAL_BYTES,
        MAX_BYTES_IN_ALL,
    )
    assert max(limits) < 7_000_000
