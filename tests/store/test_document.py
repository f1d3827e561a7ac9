"""The document: confirmed changes survive a power cut, and readers see only confirmed changes."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.clock import Clock
from appliance.errors import Invalid, StoreFailed
from appliance.home import events
from appliance.home.bus import Bus
from appliance.home.model import DeviceKind, Observation, Report, Room
from appliance.home.registry import Registry
from appliance.store.adapter_secrets import AdapterSecrets
from appliance.store.disk import Disk
from appliance.store.document import Document, open_document
from appliance.store.file_format import EncodedChanges
from appliance.store.layout_changes import LayoutChanges
from tests.fakes.disk import Image, RecordingDisk, Refusal
from tests.store.cuts import durable


class GatedDisk(RecordingDisk):
    """A disk whose syncs wait while its gate is closed."""

    def __init__(self, image: Image | None = None) -> None:
        super().__init__(image)
        self.gate = threading.Event()
        self.gate.set()
        self.is_waiting = threading.Event()

    def sync(self, descriptor: int) -> None:
        if not self.gate.is_set():
            self.is_waiting.set()
            assert self.gate.wait(10)
        super().sync(descriptor)

    async def until_waiting(self) -> None:
        """Wait until a sync waits at the gate."""
        assert await asyncio.to_thread(self.is_waiting.wait, 10)
        self.is_waiting.clear()


@pytest.fixture
def disk() -> GatedDisk:
    return GatedDisk()


@pytest.fixture
async def document(disk: GatedDisk) -> AsyncIterator[Document]:
    async with open_document(disk, Clock()) as document:
        yield document


async def reread(disk: RecordingDisk) -> dict[str, object]:
    """Return the smallest document that a power cut at this moment could leave."""
    async with open_document(RecordingDisk(durable(disk)), Clock()) as document:
        return dict(document.items(""))


async def test_saved_values_are_read_back_and_survive_a_power_cut(document: Document, disk: GatedDisk) -> None:
    await document.put_many({"room/b": {"name": "Büro"}, "room/a": [1, 2.5, None], "other": "x"})
    await document.put_many({"other": None})
    assert document.items("room/") == [("a", [1, 2.5, None]), ("b", {"name": "Büro"})]
    assert document.get("room/a") == b"[1,2.5,null]"
    assert document.get("other") is None
    assert await reread(disk) == {"room/a": [1, 2.5, None], "room/b": {"name": "Büro"}}


async def test_changes_that_wait_together_share_a_sync(document: Document, disk: GatedDisk) -> None:
    before = disk.syncs
    await asyncio.gather(*(document.put_many({f"key/{number}": number}) for number in range(50)))
    assert disk.syncs == before + 1
    assert document.figures()["sequence"] == 1


async def test_changes_that_come_during_a_sync_share_the_next(document: Document, disk: GatedDisk) -> None:
    before = disk.syncs
    disk.gate.clear()
    first = asyncio.create_task(document.put_many({"first": 1}))
    await disk.until_waiting()
    others = [asyncio.create_task(document.put_many({f"other/{number}": number})) for number in range(20)]
    await asyncio.sleep(0)
    disk.gate.set()
    await asyncio.gather(first, *others)
    assert disk.syncs == before + 2


async def test_the_later_of_two_changes_that_share_a_sync_wins(document: Document, disk: GatedDisk) -> None:
    await asyncio.gather(document.put_many({"a": 1, "b": 1}), document.put_many({"a": 2, "b": None}))
    assert document.items("") == [("a", 2)]
    assert await reread(disk) == {"a": 2}


async def test_a_change_is_invisible_before_its_sync(document: Document, disk: GatedDisk) -> None:
    await document.put_many({"a": 1})
    disk.gate.clear()
    change = asyncio.create_task(document.put_many({"a": 2, "b": 2}))
    await disk.until_waiting()
    assert document.items("") == [("a", 1)]
    assert not change.done()
    assert await reread(disk) == {"a": 1}
    disk.gate.set()
    await change
    assert document.items("") == [("a", 2), ("b", 2)]


@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_a_failed_write_fails_all_changes_in_it(
    operation: str, document: Document, disk: GatedDisk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "store")
    await document.put_many({"a": 1})

    def fault(index: int, asked: str) -> Refusal | None:
        return "EIO" if asked == operation else None

    disk.fault = fault
    for _ in range(3):
        answers = await asyncio.gather(
            *(document.put_many({f"key/{number}": 1}) for number in range(5)), return_exceptions=True
        )
        assert all(isinstance(answer, StoreFailed) for answer in answers)
        assert "input/output error" in str(answers[0])
    assert document.items("") == [("a", 1)]
    assert document.figures()["failure"] == "input/output error"
    assert await reread(disk) == {"a": 1}
    disk.fault = lambda index, operation: None
    await document.put_many({"b": 2})
    assert document.figures()["failure"] is None
    assert await reread(disk) == {"a": 1, "b": 2}
    messages = [record.message for record in caplog.records if record.name == "store" and "stored" in record.message]
    assert messages == [
        "changes cannot be stored: input/output error; the hub continues and retries",
        "changes can be stored again",
    ]


async def test_a_refused_change_is_removed_at_the_stop_at_the_latest(disk: GatedDisk) -> None:
    async with open_document(disk, Clock()) as document:
        await document.put_many({"a": 1})
        disk.fault = lambda index, asked: "EIO" if asked in ("sync", "truncate") else None
        with pytest.raises(StoreFailed):
            await document.put_many({"a": 2})
        disk.fault = lambda index, operation: None
    async with open_document(RecordingDisk(disk.image()), Clock()) as document:
        assert document.items("") == [("a", 1)]


async def test_a_cancelled_caller_does_not_undo_the_change(document: Document, disk: GatedDisk) -> None:
    disk.gate.clear()
    given_up = asyncio.create_task(document.put_many({"a": 1}))
    await disk.until_waiting()
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    disk.gate.set()
    await document.put_many({"b": 2})
    assert document.items("") == [("a", 1), ("b", 2)]
    assert await reread(disk) == {"a": 1, "b": 2}


async def test_leaving_waits_for_the_running_write(disk: GatedDisk) -> None:
    async with open_document(disk, Clock()) as document:
        disk.gate.clear()
        changes = [asyncio.create_task(document.put_many({"a": 1}))]
        await disk.until_waiting()
        changes.append(asyncio.create_task(document.put_many({"b": 2})))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.02, disk.gate.set)
    await asyncio.gather(*changes)
    assert await reread(disk) == {"a": 1, "b": 2}
    assert not disk.open_descriptors


async def test_a_change_after_the_end_is_refused(disk: GatedDisk, caplog: pytest.LogCaptureFixture) -> None:
    async with open_document(disk, Clock()) as document:
        await document.put_many({"a": 1})
    with pytest.raises(StoreFailed):
        await document.put_many({"b": 2})
    assert document.items("") == [("a", 1)]


def modes(folder: Path) -> set[int]:
    return {file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_snapshots_add_less_than_a_third_to_the_written_changes(tmp_path: Path) -> None:
    async with open_document(Disk(tmp_path), Clock()) as document:
        for number in range(10):
            await document.put_many({f"key/{number}": "x" * 40_000})
        before = document.figures()["bytes_written"]
        for number in range(200):
            await document.put_many({f"key/{number % 10}": "x" * 40_000})
        assert 200 * 40_000 < document.figures()["bytes_written"] - before < 4 / 3 * 200 * 40_000


async def test_a_long_journal_is_compacted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "store")
    disk = Disk(tmp_path)
    async with open_document(disk, Clock()) as document:
        for number in range(30):
            await document.put_many({f"key/{number % 3}": "x" * 20_000})
        figures = document.figures()
        assert figures["generation"] == 3
        assert figures["journal_bytes"] < 256 * 1024
        assert figures["syncs"] == 3 + 30 + 2 * 3
    assert disk.list_names() == [
        "journal.000002.json",
        "journal.000003.json",
        "snapshot.000002.json",
        "snapshot.000003.json",
    ]
    assert modes(tmp_path) == {0o600}
    async with open_document(Disk(tmp_path), Clock()) as document:
        assert dict(document.items("key/")) == {str(number): "x" * 20_000 for number in range(3)}
        assert document.recovered.is_clean
    assert not caplog.records


async def test_a_rejected_change_is_freed_without_a_garbage_collection(document: Document) -> None:
    class Request:
        """An object to which a frame of the rejected change refers."""

    async def change(requests: list[weakref.ref[Request]]) -> None:
        request = Request()
        requests.append(weakref.ref(request))

        def reject(_: EncodedChanges) -> EncodedChanges:
            raise Invalid(f"{request} is wrong")

        await document.change(reject)

    requests: list[weakref.ref[Request]] = []
    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(Invalid):
                await change(requests)
        await asyncio.gather(*(change(requests) for _ in range(3)), return_exceptions=True)
        await asyncio.sleep(0)
        assert [request() for request in requests] == [None] * 6
    finally:
        gc.enable()


async def test_many_removed_values_leave_no_large_dictionary(document: Document) -> None:
    keys = [f"wait/{number}" for number in range(5_000)]
    await document.put_many({"state/lamp": {}, **dict.fromkeys(keys, 1)})
    await document.put_many(dict.fromkeys(keys))
    assert [*document._files.values] == ["state/lamp"] and sys.getsizeof(document._files.values) < 1_000


async def test_a_compaction_that_fails_refuses_nothing() -> None:
    disk = RecordingDisk()
    async with open_document(disk, Clock()) as document:
        await document.put_many({"big": "x" * 200_000})
        disk.fault = lambda index, operation: "ENOSPC" if operation == "create" else None
        for number in range(8):
            await document.put_many({"big": "x" * 20_000 + str(number)})
        assert document.figures()["generation"] == 1
        disk.fault = lambda index, operation: None
        for number in range(8):
            await document.put_many({"big": "x" * 20_000 + str(number)})
        assert document.figures()["generation"] == 2
    assert await reread(disk) == {"big": "x" * 20_000 + "7"}


async def test_a_failure_of_the_code_blocks_no_caller(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    disk = RecordingDisk()

    def fault(index: int, operation: str) -> None:
        raise RuntimeError("nobody foresaw this")

    async with open_document(disk, Clock()) as document:
        await document.put_many({"before": 1})
        disk.fault = fault
        first = asyncio.ensure_future(document.put_many({"a": 1}))
        await asyncio.sleep(0)
        others = [asyncio.ensure_future(document.put_many({f"b{number}": 1})) for number in range(3)]
        async with asyncio.timeout(10):
            answers = await asyncio.gather(first, *others, return_exceptions=True)
        assert [type(each) for each in answers] == [StoreFailed] * 4
        assert dict(document.items("")) == {"before": 1}
        disk.fault = lambda index, operation: None
        await document.put_many({"after": 1})
        assert dict(document.items("")) == await reread(disk) == {"before": 1, "after": 1}
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("changes can be stored again") == 1
    assert any("RuntimeError" in each and "retries" in each for each in messages)


async def test_a_value_without_json_fails_only_its_caller(disk: GatedDisk, document: Document) -> None:
    disk.gate.clear()
    first = asyncio.ensure_future(document.put_many({"a": 1}))
    await disk.until_waiting()
    second = asyncio.ensure_future(document.put_many({"b": 2}))
    for key, value in (("c", object()), ("c", "\ud800"), ("\ud800", 1), ("c", 1 << 70)):
        with pytest.raises(TypeError, match="cannot be stored"):
            await document.put_many({key: value})
    disk.gate.set()
    await asyncio.gather(first, second)
    assert await reread(disk) == {"a": 1, "b": 2}


async def test_a_failing_card_at_the_start_and_its_recovery_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    disk = RecordingDisk()
    disk.fault = lambda index, operation: "EIO"
    async with open_document(disk, Clock()) as document:
        disk.fault = lambda index, operation: None
        await document.put_many({"a": 1})
    messages = [record.getMessage() for record in caplog.records if record.name == "store"]
    assert messages[0].startswith("changes cannot be stored: ") and messages[-1] == "changes can be stored again"


async def test_values_of_an_adapter_survive_a_restart_and_are_private(tmp_path: Path) -> None:
    async with open_document(Disk(tmp_path), Clock()) as document:
        await AdapterSecrets(document, "hall").put("token", "abc")
    async with open_document(Disk(tmp_path), Clock()) as document:
        assert AdapterSecrets(document, "hall").get("token") == "abc"
        assert AdapterSecrets(document, "hal").get("l/token") is None
        assert AdapterSecrets(document, "attic").get("token") is None


async def test_each_change_in_a_sync_includes_the_earlier_ones() -> None:
    registry = Registry(Bus(), Clock())
    seen = Observation(device_id="lamp", kind=DeviceKind.LIGHT, attributes={}, vendor_specific={})
    async with open_document(RecordingDisk(), Clock()) as document:
        changes = LayoutChanges(registry, document, Clock())
        registry.apply(Report(adapter="x", present=frozenset({"lamp"}), observations=(seen,)))
        await changes.make(lambda layout, _: layout.put_room(Room(id="attic", name="Attic")))
        layouts = await asyncio.gather(
            changes.make(lambda layout, _: layout.put_room(Room(id="hall", name="Hall"))),
            changes.make(lambda layout, devices: layout.assign_room("lamp", "hall", devices)),
            changes.make(lambda layout, _: layout.remove_room("hall")),
            changes.make(lambda layout, _: layout.put_room(Room(id="hall", name="Again"))),
            changes.make(lambda layout, _: layout.remove_room("attic")),
        )
        assert [dict(each.room_assignments) for each in layouts] == [{}, {"lamp": "hall"}, {}, {}, {}]
        assert registry.get_device("lamp").room_id is None
        assert dict(document.items("")) == {"room/hall": {"name": "Again"}}
        assert registry.layout.devices_in("hall") == [] and registry.list_room_devices("hall") == []


class SlowClock(Clock):
    """A clock on which each step takes long enough to cause a pause."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 0.0015
        return self._now


async def test_the_events_of_a_large_room_are_published_in_steps_and_in_order() -> None:
    bus, count = Bus(), 200
    registry = Registry(bus, Clock())
    ids = [f"x:{number:03}" for number in range(count)]
    lamps = tuple(Observation(device_id=each, kind=DeviceKind.LIGHT, attributes={}) for each in ids)
    registry.apply(Report(adapter="x", present=frozenset(ids), observations=lamps))
    async with (
        open_document(RecordingDisk(), Clock()) as document,
        LayoutChanges(registry, document, SlowClock()) as changes,
    ):
        for room in ("hall", "attic"):
            await changes.make(lambda layout, _, room=room: layout.put_room(Room(id=room, name=room)))  # type: ignore[misc]
        for each in ids:
            await changes.make(lambda layout, devices, id_=each: layout.assign_room(id_, "hall", devices))  # type: ignore[misc]
        moves, rooms, turns, turn = list[tuple[str, str | None]](), set[str | None](), set[int](), 0

        def note(event: events.Event) -> None:
            assert isinstance(event, events.DeviceRoomChanged)
            moves.append((event.device_id, event.room_id))
            rooms.update(device.room_id for device in registry.list_devices())
            turns.add(turn)

        def count_turn() -> None:
            nonlocal turn
            turn += 1
            asyncio.get_running_loop().call_soon(count_turn)

        bus.listen(note, events.DeviceRoomChanged)
        count_turn()
        await asyncio.gather(
            changes.make(lambda layout, _: layout.remove_room("hall")),
            changes.make(lambda layout, devices: layout.assign_room(ids[-1], "attic", devices)),
        )
    assert moves == [*((each, None) for each in ids), (ids[-1], "attic")]
    assert rooms == {None, "attic"}, "the change is visible as a whole"
    assert len(turns) > count / 2
