"""Damaged files: each kind of damage is detected or harmless, and never causes wrong data.

Each check gets a function that creates a store, so that mutants (stores without one precaution) can be tested too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations

import orjson
import pytest

from appliance.errors import StartFailed
from appliance.store.file_format import STORE_FORMAT, encode_header, encode_record, encode_snapshot, with_crc
from appliance.store.recovery import Recovered
from tests.fakes.disk import Image, RecordingDisk
from tests.store.cuts import durable
from tests.store.proof import AFTER, Maker, Values, changed

RECORDS: tuple[dict[str, bytes | None], ...] = (
    {"room/a": b'{"name":"Attic"}'},
    {"room/b": b'{"name":"B\xc3\xbcro"}', "room/c": b"[1,2]"},
    {"room/a": None, "n": b"1"},
    {"n": b"2"},
    {"room/c": b"{}"},
)
BEGIN: Values = {"room/z": b'"before"', "n": b"0"}
SNAPSHOT, JOURNAL = "snapshot.000002.json", "journal.000002.json"
OLD_SNAPSHOT, OLD_JOURNAL = "snapshot.000001.json", "journal.000001.json"
KEPT = ".corrupt-20260101T000000Z"


def states() -> list[Values]:
    found = [BEGIN]
    for record in RECORDS:
        found.append(changed(found[-1], record))
    return found


LINES = tuple(encode_record(11 + index, record) for index, record in enumerate(RECORDS))
HEADER = encode_header(2, 10)


def journal(*lines: bytes, header: bytes = HEADER, tail: int = 64) -> bytes:
    return header + b"".join(lines) + bytes(tail)


def healthy() -> dict[str, bytes]:
    """Return a store with two generations. The end of the first journal is the beginning of the second generation."""
    first = [encode_record(9, {"room/z": b'"before"'}), encode_record(10, {"n": b"0"})]
    return {
        OLD_SNAPSHOT: encode_snapshot(1, 8, {}),
        OLD_JOURNAL: journal(*first, header=encode_header(1, 8)),
        SNAPSHOT: encode_snapshot(2, 10, BEGIN),
        JOURNAL: journal(*LINES),
    }


def start(maker: Maker, image: Image) -> tuple[Recovered, Values]:
    """Start from the image. Check that damaged files are kept, and that later changes are durable."""
    disk = RecordingDisk(image)
    files = maker(disk)
    found = files.open()
    values = dict(files.values)
    kept = disk.image()
    for name in found.damaged:
        assert kept[name + KEPT] == image[name], f"{name} is not kept"
    files.append(AFTER)
    files.close()
    again = maker(RecordingDisk(durable(disk)))
    assert not again.open().damaged
    assert again.values == changed(values, AFTER)
    again.close()
    return found, values


def check_healthy_files_are_read(maker: Maker) -> None:
    """Check that undamaged files are read completely, without a report."""
    found, values = start(maker, healthy())
    assert values == states()[-1]
    assert not found.notes and not found.damaged and found.is_clean and found.records == len(RECORDS)


def check_every_flipped_bit_of_a_journal(maker: Maker) -> None:
    """Check that a flipped bit makes its record and all later records invalid, and that these records are counted. A
    flip in the last record may be treated as an interrupted write."""
    all_states, starts = states(), _starts()
    image = healthy()
    for position, flipped in _flips(image[JOURNAL]):
        found, values = start(maker, {**image, JOURNAL: flipped})
        index = max(each for each, begin in enumerate(starts) if begin <= position) - 1
        _check_flip(index, found, values, all_states)


def _check_flip(index: int, found: Recovered, values: Values, all_states: list[Values]) -> None:
    """Check one flip. `index` is the number of the flipped record, -1 for the header, or the number of records for
    the zeros after the last record."""
    behind = len(RECORDS) - 1 - max(index, -1)
    if index == len(RECORDS):
        assert values == all_states[-1] and found.torn and found.notes and not found.damaged
    elif index == len(RECORDS) - 1:
        assert values == all_states[index] and found.torn > 0 and found.notes and not found.damaged
    else:
        assert values == all_states[max(index, 0)]
        assert found.damaged == [JOURNAL] and found.lost == behind, (index, found)


def check_every_flipped_bit_of_a_snapshot(maker: Maker) -> None:
    """Check that a damaged snapshot is detected, and that the previous generation leads to the same document."""
    image = healthy()
    for _, flipped in _flips(image[SNAPSHOT]):
        found, values = start(maker, {**image, SNAPSHOT: flipped})
        assert values == states()[-1] and found.damaged == [SNAPSHOT] and found.lost == 0


def check_the_only_snapshot_damaged(maker: Maker) -> None:
    """Check that the hub does not start without an intact snapshot, and changes no file."""
    image = {name: content for name, content in healthy().items() if name not in (OLD_SNAPSHOT, OLD_JOURNAL)}
    damages: list[dict[str, bytes]] = [{SNAPSHOT: flipped} for _, flipped in _flips(image[SNAPSHOT])]
    for damage in [*damages[::7], {SNAPSHOT: b""}, {SNAPSHOT: bytes(500)}]:
        check_refused(maker, {**image, **damage}, os.EX_DATAERR)
    check_refused(maker, {JOURNAL: image[JOURNAL]}, os.EX_DATAERR)
    check_refused(maker, {JOURNAL: journal(*LINES, header=encode_header(2, 0))}, os.EX_DATAERR)
    check_refused(maker, {JOURNAL: journal(header=HEADER)}, os.EX_DATAERR)
    check_refused(maker, {JOURNAL: b""}, os.EX_DATAERR)


def check_refused(maker: Maker, image: Image, code: int) -> None:
    """Check that a start is refused with this code, and writes nothing."""
    disk = RecordingDisk(image)
    with pytest.raises(StartFailed) as caught:
        maker(disk).open()
    assert caught.value.exit_code == code
    assert disk.image() == image and not disk.log


def check_swapped_and_repeated_records(maker: Maker) -> None:
    """Check records that are swapped, repeated, or missing. The records before the first wrong record are used, and
    all other records are counted."""
    for first, second in combinations(range(len(LINES)), 2):
        lines = list(LINES)
        lines[first], lines[second] = lines[second], lines[first]
        _check_lines(maker, lines, good=first)
    for index, line in enumerate(LINES):
        _check_lines(maker, [*LINES[: index + 1], line, *LINES[index + 1 :]], good=index + 1)
        if index < len(LINES) - 1:
            _check_lines(maker, [*LINES[:index], *LINES[index + 1 :]], good=index)


def _check_lines(maker: Maker, lines: list[bytes], good: int) -> None:
    found, values = start(maker, {**healthy(), JOURNAL: journal(*lines)})
    assert values == states()[good]
    assert found.damaged == [JOURNAL] and found.lost == len(lines) - good


def check_zeroed_segments(maker: Maker) -> None:
    """Check that zeros over a part of the journal are detected, unless the zeros reach from the beginning of a record
    to the end of the file.

    A file with zeros up to the end equals an earlier complete journal. This loss cannot be detected with two files,
    but every other loss can.
    """
    whole, all_states, starts = journal(*LINES), states(), _starts()
    end = starts[-1]
    for length in (1, 16, 64, 128, 512):
        for begin in range(0, end, 7):
            zeroed = whole[:begin] + bytes(min(length, end - begin)) + whole[begin + length :]
            found, values = start(maker, {**healthy(), JOURNAL: zeroed[: len(whole)]})
            good = max(0, max(each for each, start_ in enumerate(starts) if start_ <= begin) - 1)
            assert values == all_states[good]
            assert found.notes or (begin in starts and begin + length >= end)
            if begin + length < starts[-2]:
                assert found.damaged == [JOURNAL] and found.lost > 0


def check_missing_and_empty_files(maker: Maker) -> None:
    """Check that a missing or empty file, or a file without its first line, is reported. The other files are used
    as far as possible."""
    for name, content, expected, lost in (
        (JOURNAL, None, BEGIN, 0),
        (JOURNAL, b"", BEGIN, 0),
        (JOURNAL, bytes(len(HEADER)) + journal(*LINES)[len(HEADER) :], BEGIN, len(LINES)),
        (JOURNAL, bytes(4096), BEGIN, 0),
        (SNAPSHOT, None, states()[-1], 0),
        (SNAPSHOT, b"", states()[-1], 0),
        (SNAPSHOT, bytes(4096), states()[-1], 0),
        (SNAPSHOT, healthy()[JOURNAL], states()[-1], 0),
        (JOURNAL, healthy()[SNAPSHOT], BEGIN, 0),
        (SNAPSHOT, healthy()[OLD_SNAPSHOT], states()[-1], 0),
        (JOURNAL, healthy()[OLD_JOURNAL], BEGIN, 2),
    ):
        image = {**healthy(), name: content if content is not None else b""}
        if content is None:
            del image[name]
        found, values = start(maker, image)
        assert values == expected, (name, content)
        assert found.notes and not found.is_clean and found.lost == lost
        assert found.damaged == ([] if content is None else [name])
        is_gone = content is None and name == JOURNAL
        assert found.missing == ([name] if is_gone else [])
        assert bool(found.damage) == (is_gone or content is not None)


def check_forged_lines(maker: Maker) -> None:
    """Check that an impossible line is rejected even with a correct checksum."""
    record, forged_length = LINES[2], LINES[2].replace(b'"length":', b'"length":1')
    assert record != forged_length
    for line in (forged_length, LINES[2].replace(b'"put":{', b'"put":[{').replace(b'},"crc"', b'}],"crc"')):
        found, values = start(maker, {**healthy(), JOURNAL: journal(*LINES[:2], _reseal(line), *LINES[3:])})
        assert values == states()[2] and found.damaged == [JOURNAL] and found.lost == 2
    good = healthy()[SNAPSHOT]
    for change in ({"kind": "journal"}, {"generation": 3}, {"length": 1}, {"body_crc": "00000000"}):
        found, values = start(maker, {**healthy(), SNAPSHOT: reheaded(good, **change)})
        assert values == states()[-1] and found.damaged == [SNAPSHOT], change
    for change in ({"kind": "snapshot"}, {"generation": 3}):
        found, values = start(maker, {**healthy(), JOURNAL: reheaded(journal(*LINES), **change)})
        assert values == BEGIN and found.damaged == [JOURNAL] and found.lost == len(LINES), change


def check_journals_that_do_not_follow(maker: Maker) -> None:
    """Check a journal that does not continue its snapshot. The journal must be reported, and no old record may be
    replayed."""
    lines = [encode_record(9, {"n": b'"old"'}), encode_record(10, {"n": b'"older"'}), *LINES]
    found, values = start(maker, {**healthy(), JOURNAL: journal(*lines, header=encode_header(2, 8))})
    assert values == states()[-1] and found.damaged == [JOURNAL] and found.records == len(LINES)
    old = {"n": b'"old"'}
    lines = [encode_record(9, old)]
    found, values = start(maker, {**healthy(), JOURNAL: journal(*lines, header=encode_header(2, 8))})
    assert values == BEGIN and found.damaged == [JOURNAL]
    lines = [encode_record(12 + index, record) for index, record in enumerate(RECORDS)]
    found, values = start(maker, {**healthy(), JOURNAL: journal(*lines, header=encode_header(2, 11))})
    assert found.damaged == [JOURNAL] and any("begins at record 11" in note for note in found.notes)


def check_previous_generation(maker: Maker) -> None:
    """Check that the journal of the previous snapshot is replayed up to the beginning of the newest snapshot. No
    change after this point was confirmed."""
    image = healthy()
    image[OLD_JOURNAL] = image[OLD_JOURNAL].rstrip(b"\0") + encode_record(11, {"refused": b"1"}) + bytes(64)
    del image[SNAPSHOT]
    found, values = start(maker, image)
    assert values == states()[-1] and found.records == 2 + len(RECORDS) and not found.damaged
    image[JOURNAL] = journal()
    found, values = start(maker, image)
    assert values == BEGIN
    older = {"snapshot.000003.json": b"", "journal.000003.json": journal(header=encode_header(3, 15))}
    found, values = start(maker, {**healthy(), **older, SNAPSHOT: b""})
    assert values == states()[-1] and sorted(found.damaged) == [SNAPSHOT, "snapshot.000003.json"]


def check_a_first_start_that_was_cut(maker: Maker) -> None:
    """Check that an interrupted first start leaves a journal without records, and no snapshot. In this state,
    nothing was stored."""
    found, values = start(maker, {OLD_JOURNAL: journal(header=encode_header(1, 0))})
    assert values == {} and not found.damaged
    found, values = start(maker, {SNAPSHOT + ".part": b"half", JOURNAL + ".part": b""})
    assert values == {} and not found.damaged


def check_newer_formats(maker: Maker) -> None:
    """Check that all files of a newer Lares are refused."""
    for name in (SNAPSHOT, JOURNAL):
        newer = reheaded(healthy()[name], format=STORE_FORMAT + 1)
        check_refused(maker, {**healthy(), name: newer}, os.EX_CONFIG)
        for spelling in (
            b'"format":2',
            b'"format":99',
            b'"format": 99',
        ):  # in a newer format, the checksum may cover other bytes
            check_refused(
                maker, {**healthy(), name: healthy()[name].replace(b'"format":1', spelling, 1)}, os.EX_CONFIG
            )


CHECKS = (
    check_healthy_files_are_read,
    check_newer_formats,
    check_forged_lines,
    check_journals_that_do_not_follow,
    check_previous_generation,
    check_a_first_start_that_was_cut,
    check_missing_and_empty_files,
    check_swapped_and_repeated_records,
    check_the_only_snapshot_damaged,
    check_zeroed_segments,
    check_every_flipped_bit_of_a_snapshot,
    check_every_flipped_bit_of_a_journal,
)


def _starts() -> list[int]:
    """Return the offsets of the header, the records, and the zeros."""
    starts = [0, len(HEADER)]
    for line in LINES:
        starts.append(starts[-1] + len(line))
    return starts


def _flips(content: bytes) -> Iterator[tuple[int, bytes]]:
    for position in range(len(content)):
        for bit in range(8):
            yield position, content[:position] + bytes([content[position] ^ 1 << bit]) + content[position + 1 :]


def _reseal(line: bytes) -> bytes:
    return with_crc(line.rpartition(b',"crc"')[0] + b"}")


def reheaded(content: bytes, **changes: object) -> bytes:
    """Change these fields in the first line of a file, and update its checksum."""
    header, _, rest = content.partition(b"\n")
    fields = orjson.loads(header)
    del fields["crc"]
    return with_crc(orjson.dumps({**fields, **changes})) + rest
