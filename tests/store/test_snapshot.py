"""Snapshots: what is encoded is decoded, and nothing else is."""

from __future__ import annotations

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.store.snapshot import decode, encode, write_new
from tests.fakes.disk import RecordingDisk
from tests.store.cuts import durable

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
UNHURRIED = settings(deadline=None)
VALUES = st.dictionaries(TEXT, JSON.map(orjson.dumps), max_size=8)


@UNHURRIED
@given(VALUES, st.integers(1, 10**7), st.integers(0, 2**53))
def test_what_is_encoded_is_decoded(values: dict[str, bytes], generation: int, sequence: int) -> None:
    data = encode(generation, sequence, values)
    found = decode(data, generation)
    assert found is not None
    assert (found.values, found.generation, found.sequence) == (values, generation, sequence)
    assert (found.size, found.format) == (len(data), 1)


@UNHURRIED
@given(VALUES)
def test_the_bytes_depend_on_the_document_alone(values: dict[str, bytes]) -> None:
    assert encode(1, 0, values) == encode(1, 0, dict(reversed(values.items())))


@UNHURRIED
@given(VALUES, st.data())
def test_what_is_cut_or_longer_is_not_decoded(values: dict[str, bytes], data: st.DataObject) -> None:
    whole = encode(1, 5, values)
    assert decode(whole[: data.draw(st.integers(0, len(whole) - 1))], 1) is None
    assert decode(whole + data.draw(st.binary(min_size=1, max_size=9)), 1) is None


@UNHURRIED
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_not_decoded(data: bytes) -> None:
    assert decode(data, 1) is None


def test_a_snapshot_of_another_generation_is_not_decoded() -> None:
    assert decode(encode(2, 5, {}), 1) is None


def test_the_first_line_says_format_generation_and_sequence() -> None:
    header = orjson.loads(encode(3, 17, {"a": b"1"}).partition(b"\n")[0])
    assert header["format"] == 1
    assert (header["kind"], header["generation"], header["sequence"], header["length"]) == ("snapshot", 3, 17, 22)


def test_a_written_snapshot_is_on_the_device_once_its_name_is() -> None:
    disk = RecordingDisk()
    write_new(disk, "snapshot", b"content")
    assert not disk.open_descriptors
    assert durable(disk) == {}
    disk.sync_folder()
    assert durable(disk) == {"snapshot": b"content"}
