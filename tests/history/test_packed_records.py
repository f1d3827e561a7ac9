"""Records of removed devices in one block of memory."""

from __future__ import annotations

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
