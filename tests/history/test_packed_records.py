"""Records of removed devices in one block of memory."""

from __future__ import annotations

import tracemalloc

from appliance.history.packed_records import PackedRecords


def test_packed_records_are_found_by_their_whole_id() -> None:
    packed = PackedRecords()
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


def test_records_are_found_after_others_are_removed() -> None:
    packed, known = PackedRecords(), {f"lamp:{number}": (f"lamp:{number}", "x" * number) for number in range(20)}
    for record in known.values():
        packed.add(record)
    for device_id in ("lamp:0", "lamp:7", "oldest", "lamp:19", "oldest", "lamp:9"):
        taken = packed.take_oldest() if device_id == "oldest" else packed.take(device_id)
        assert taken is not None and known.pop(taken[0]) == taken
        assert [*packed] == [*known.values()]
    packed.add(("lamp:0", 1))
    assert packed.take("lamp:0") == ("lamp:0", 1)
    assert packed.take("lamp:18") == known["lamp:18"]


def test_the_oldest_record_is_dropped_without_copying_the_others() -> None:
    packed = PackedRecords()
    for number in range(10_000):
        packed.add((f"lamp:{number}", "on"))
    tracemalloc.start()
    try:
        assert [packed.take_oldest() for _ in range(3)] == [(f"lamp:{number}", "on") for number in range(3)]
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()
