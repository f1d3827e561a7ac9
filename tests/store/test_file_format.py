"""The bytes of snapshots and journals. Written data can be read, incomplete data is ignored, and a long record is
harmless."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.store.file_format import (
    decode_snapshot,
    encode_header,
    encode_record,
    encode_snapshot,
    read_journal,
    with_crc,
)
from appliance.store.journal import PREALLOCATED, Journal
from tests.fakes.disk import RecordingDisk, Write
from tests.fakes.rows import each_row

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = TEXT | st.sampled_from([0, -1.5, True, None, 2**64 - 1, "}\n{", '","crc":"', [{"put": [1, {}]}, "\u2028"]])
UNHURRIED = settings(deadline=None)
VALUES = st.dictionaries(TEXT, JSON.map(orjson.dumps), max_size=8)
CHANGES = st.dictionaries(TEXT, st.none() | JSON.map(orjson.dumps), max_size=6)
FILE = "journal.000001.json.part"


def put(changes: dict[str, bytes | None]) -> dict[str, object]:
    return {key: None if value is None else orjson.loads(value) for key, value in changes.items()}


@UNHURRIED
@given(VALUES, st.data())
def test_a_snapshot_is_read_as_it_was_written_or_not_at_all(values: dict[str, bytes], data: st.DataObject) -> None:
    generation, sequence = data.draw(st.integers(1, 10**7)), data.draw(st.integers(0, 2**53))
    whole = encode_snapshot(generation, sequence, values)
    found = decode_snapshot(whole, generation)
    assert found is not None
    assert (found.values, found.generation, found.sequence) == (values, generation, sequence)
    assert (found.size, found.format) == (len(whole), 1)
    cut, longer = whole[: data.draw(st.integers(0, len(whole) - 1))], whole + data.draw(st.binary(min_size=1))
    assert decode_snapshot(cut, generation) is decode_snapshot(longer, generation) is None
    assert decode_snapshot(whole, generation + 1) is None


@UNHURRIED
@given(st.lists(CHANGES, max_size=6), st.integers(0, 2**53))
def test_appended_records_are_read(batches: list[dict[str, bytes | None]], sequence: int) -> None:
    disk = RecordingDisk()
    journal = Journal(disk, 1, sequence)
    journal.create()
    for batch in batches:
        journal.append(batch)
    journal.close()
    reading = read_journal(disk.read(FILE), 1)
    assert [record["put"] for record in reading.records] == [put(batch) for batch in batches]
    assert (reading.end, reading.sequence) == (journal.end, sequence + len(batches))
    assert (reading.torn, reading.lost, reading.is_damaged) == (0, 0, False)
    assert reading.last == disk.read(FILE)[reading.end - len(reading.last) : reading.end]


@UNHURRIED
@given(st.lists(CHANGES, min_size=1, max_size=4), st.data())
def test_a_torn_record_ends_at_the_record_before(batches: list[dict[str, bytes | None]], data: st.DataObject) -> None:
    lines = [encode_header(1, 0), *(encode_record(number, batch) for number, batch in enumerate(batches, 1))]
    cut = data.draw(st.integers(0, len(lines[-1]) - 1))
    whole = b"".join(lines[:-1])
    reading = read_journal(whole + lines[-1][:cut] + bytes(data.draw(st.integers(0, 50))), 1)
    assert (reading.end, reading.torn, reading.is_damaged) == (len(whole), cut, False)
    assert len(reading.records) == len(batches) - 1


@UNHURRIED
@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_damage_and_after_records_a_torn_end(data: bytes) -> None:
    assert decode_snapshot(data, 1) is None
    reading = read_journal(data, 1)
    assert reading.is_damaged and reading.header is None and reading.torn == len(data)
    whole = encode_header(1, 0) + encode_record(1, {"a": b"1"})
    reading = read_journal(whole + data, 1)
    assert reading.end == len(whole) and len(reading.records) == 1 and not reading.is_damaged


@each_row("wrong", [{"format": "1"}, {"format": None}, {"sequence": "0"}, {"sequence": True}, {"sequence": 0.5}])
def test_a_header_without_whole_numbers_is_damaged(wrong: dict[str, Any]) -> None:
    journal, snapshot = encode_header(1, 0), encode_snapshot(1, 0, {})
    assert decode_snapshot(snapshot, 1) is not None and not read_journal(journal, 1).is_damaged
    assert read_journal(_changed(journal, wrong), 1).header is None
    assert decode_snapshot(_changed(snapshot, wrong), 1) is None


@each_row("wrong", [{"seq": "1"}, {"seq": None}, {"put": []}])
def test_a_record_with_fields_of_other_types_is_not_a_record(wrong: dict[str, Any]) -> None:
    reading = read_journal(encode_header(1, 0) + _changed(encode_record(1, {"a": b"1"}), wrong), 1)
    assert (reading.records, reading.lost) == ([], 0)


def _changed(line: bytes, fields: dict[str, Any]) -> bytes:
    """Return the line with these fields and a valid checksum."""
    content = orjson.loads(line) | fields
    del content["crc"]
    return with_crc(orjson.dumps(content))


def test_records_are_counted_after_a_damaged_newline_and_not_within_values() -> None:
    lines = [encode_record(number, {"a": b"1"}) for number in (1, 2)]
    reading = read_journal(encode_header(1, 0) + lines[0][:-1] + b"?" + lines[1], 1)
    assert (reading.lost, reading.is_damaged) == (1, True)
    value = b'{"seq":7,"length":2,"put":{}}'
    line = encode_record(2, {"a": value, "b": orjson.dumps(value.decode())})
    assert read_journal(encode_header(1, 0) + line, 1).lost == 1


def test_an_append_is_one_sync_and_uses_reserved_space() -> None:
    disk = RecordingDisk(most_granted=2 * PREALLOCATED)
    journal = Journal(disk, 1, 0)
    journal.create()
    assert disk.syncs == 1
    length = len(disk.read(FILE))
    assert length == len(encode_header(1, 0)) + PREALLOCATED
    for number in range(20):
        journal.append({"key": b"%d" % number})
    assert disk.syncs == 21
    assert len(disk.read(FILE)) == length


def test_records_longer_than_the_preallocation_are_harmless() -> None:
    disk = RecordingDisk(most_granted=PREALLOCATED)
    journal = Journal(disk, 1, 0)
    journal.create()
    batches: list[dict[str, bytes | None]] = []
    for size in (10, 40_000, 10, 100_000, 10, 33_000, 5000):
        batches.append({"key": b'"%s"' % (b"x" * size)})
        journal.append(batches[-1])
    assert [record["put"] for record in read_journal(disk.read(FILE), 1).records] == [put(batch) for batch in batches]
    assert len(disk.read(FILE)) <= journal.end + 256 * 1024
    ends = [(each.offset, each.offset + len(each.data.rstrip(b"\0"))) for each in disk.log if isinstance(each, Write)]
    assert all(first[1] == second[0] for first, second in pairwise(ends)), "each line is written behind the last"


def test_without_room_for_zeros_it_works_without_them() -> None:
    disk = RecordingDisk()
    disk.fault = lambda index, operation: "ENOSPC" if operation == "allocate" else None
    journal = Journal(disk, 1, 0)
    journal.create()
    disk.fault = lambda index, operation: None
    journal.append({"a": b"1"})
    assert len(read_journal(disk.read(FILE), 1).records) == 1
    assert len(disk.read(FILE)) == journal.end


def test_zeros_are_written_to_the_end_of_a_block_and_once_only() -> None:
    disk = RecordingDisk()
    journal = Journal(disk, 1, 0)
    journal.create()
    for number in range(60):
        journal.append({"key": b"%d" % number})
    writes = [each for each in disk.log if isinstance(each, Write)]
    padded = [each.offset + len(each.data) for each in writes if each.data.endswith(b"\0")]
    assert padded == [4096 * (block + 1) for block in range(len(padded))] and journal.end <= padded[-1]
