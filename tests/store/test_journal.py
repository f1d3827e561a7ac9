"""Journals: what is appended is read, what is torn is cut, and a long record harms none."""

from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.store.journal import PREALLOCATED, Journal, encode_header, encode_record, read
from tests.fakes.disk import RecordingDisk, Refusal, Sync, Truncate, Write
from tests.fakes.rows import each_row
from tests.store.test_snapshot import JSON, TEXT, UNHURRIED

CHANGES = st.dictionaries(TEXT, st.none() | JSON.map(orjson.dumps), max_size=6)


def put(changes: dict[str, bytes | None]) -> dict[str, object]:
    """The changes as a record holds them."""
    return {key: None if value is None else orjson.loads(value) for key, value in changes.items()}


@UNHURRIED
@given(st.lists(CHANGES, max_size=6), st.integers(0, 2**53))
def test_what_is_appended_is_read(batches: list[dict[str, bytes | None]], sequence: int) -> None:
    disk = RecordingDisk()
    journal = Journal.create(disk, "journal", 4, sequence)
    for batch in batches:
        journal.append(batch)
    journal.close()
    reading = read(disk.read("journal"), 4)
    assert [record["put"] for record in reading.records] == [put(batch) for batch in batches]
    assert (reading.end, reading.sequence) == (journal.end, sequence + len(batches))
    assert (reading.torn, reading.lost, reading.is_damaged) == (0, 0, False)
    assert reading.last == disk.read("journal")[reading.end - len(reading.last) : reading.end]


@UNHURRIED
@given(st.lists(CHANGES, min_size=1, max_size=4), st.data())
def test_what_is_torn_ends_at_the_record_before(batches: list[dict[str, bytes | None]], data: st.DataObject) -> None:
    lines = [encode_header(1, 0), *(encode_record(number, batch) for number, batch in enumerate(batches, 1))]
    cut = data.draw(st.integers(0, len(lines[-1]) - 1))
    whole = b"".join(lines[:-1])
    reading = read(whole + lines[-1][:cut] + bytes(data.draw(st.integers(0, 50))), 1)
    assert (reading.end, reading.torn, reading.is_damaged) == (len(whole), cut, False)
    assert len(reading.records) == len(batches) - 1


@UNHURRIED
@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_damage(data: bytes) -> None:
    reading = read(data, 1)
    assert reading.is_damaged and reading.header is None and reading.torn == len(data)


@UNHURRIED
@given(st.binary(max_size=300))
def test_arbitrary_bytes_behind_records_are_cut(data: bytes) -> None:
    whole = encode_header(1, 0) + encode_record(1, {"a": b"1"})
    reading = read(whole + data, 1)
    assert reading.end == len(whole) and len(reading.records) == 1 and not reading.is_damaged


def test_records_behind_a_newline_that_was_hit_are_still_counted() -> None:
    lines = [encode_record(number, {"a": b"1"}) for number in (1, 2)]
    reading = read(encode_header(1, 0) + lines[0][:-1] + b"?" + lines[1], 1)
    assert (reading.lost, reading.is_damaged) == (1, True)


def test_values_that_look_like_records_are_not_counted() -> None:
    value = b'{"seq":7,"length":2,"put":{}}'
    line = encode_record(2, {"a": value, "b": orjson.dumps(value.decode())})
    assert read(encode_header(1, 0) + line, 1).lost == 1


def test_an_append_is_one_sync_and_does_not_lengthen_the_file_while_there_is_room() -> None:
    disk = RecordingDisk(most_granted=2 * PREALLOCATED)
    journal = Journal.create(disk, "journal", 1, 0)
    assert disk.syncs == 1
    length = len(disk.read("journal"))
    assert length == len(encode_header(1, 0)) + PREALLOCATED
    for number in range(20):
        journal.append({"key": b"%d" % number})
    assert disk.syncs == 21
    assert len(disk.read("journal")) == length


def test_records_longer_than_what_is_preallocated_harm_none() -> None:
    disk = RecordingDisk(most_granted=PREALLOCATED)
    journal = Journal.create(disk, "journal", 1, 0)
    batches: list[dict[str, bytes | None]] = []
    for size in (10, 40_000, 10, 100_000, 10, 33_000, 5000):
        batches.append({"key": b'"%s"' % (b"x" * size)})
        journal.append(batches[-1])
    assert [record["put"] for record in read(disk.read("journal"), 1).records] == [put(batch) for batch in batches]
    assert len(disk.read("journal")) <= journal.end + 256 * 1024
    ends = [(each.offset, each.offset + len(each.data.rstrip(b"\0"))) for each in disk.log if isinstance(each, Write)]
    assert all(first[1] == second[0] for first, second in pairwise(ends)), "each line is written behind the last"


def test_without_room_for_zeros_it_works_without_them() -> None:
    disk = RecordingDisk()
    disk.fault = lambda index, operation: "ENOSPC" if operation == "allocate" else None
    journal = Journal.create(disk, "journal", 1, 0)
    disk.fault = lambda index, operation: None
    journal.append({"a": b"1"})
    assert len(read(disk.read("journal"), 1).records) == 1
    assert len(disk.read("journal")) == journal.end


def test_zeros_are_written_to_the_end_of_a_block_and_once_only() -> None:
    disk = RecordingDisk()
    journal = Journal.create(disk, "journal", 1, 0)
    for number in range(60):
        journal.append({"key": b"%d" % number})
    writes = [each for each in disk.log if isinstance(each, Write)]
    padded = [each.offset + len(each.data) for each in writes if each.data.endswith(b"\0")]
    assert padded == [4096 * (block + 1) for block in range(len(padded))] and journal.end <= padded[-1]


def test_reopening_cuts_what_is_behind_the_end_before_anything_else() -> None:
    whole = encode_header(1, 0) + encode_record(1, {"a": b"1"})
    disk = RecordingDisk({"journal": whole + b"torn" + bytes(99)})
    journal = Journal.reopen(disk, "journal", len(whole), 1, read(disk.read("journal"), 1).last)
    assert [type(each) for each in disk.log] == [Truncate, Write, Sync]
    assert disk.read("journal") == whole
    journal.append({"a": b"2"})
    assert read(disk.read("journal"), 1).sequence == 2


@each_row("operation", ["open", "truncate", "sync"])
def test_reopening_that_fails_leaves_no_descriptor_open(operation: str) -> None:
    disk = RecordingDisk({"journal": encode_header(1, 0)})
    disk.fault = lambda index, asked: "EIO" if asked == operation else None
    with pytest.raises(OSError):
        Journal.reopen(disk, "journal", 10, 0)
    assert not disk.open_descriptors


@each_row(("operation", "is_broken"), [("write", False), ("sync", True)])
def test_a_failed_append_tells_whether_the_file_can_be_trusted(operation: str, is_broken: bool) -> None:
    disk = RecordingDisk()
    journal = Journal.create(disk, "journal", 1, 0)
    end = journal.end

    def fault(index: int, asked: str) -> Refusal | None:
        return "EIO" if asked == operation else None

    disk.fault = fault
    with pytest.raises(OSError):
        journal.append({"a": b"1"})
    assert journal.is_sync_broken is is_broken
    assert (journal.end, journal.sequence) == (end, 0)
