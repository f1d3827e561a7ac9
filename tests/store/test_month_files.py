"""The monthly files on the card. Power cuts, card faults, and edits can damage single lines. The other lines
remain readable."""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from appliance.store.disk import Disk
from appliance.store.file_format import with_crc
from appliance.store.month_files import MIN_FREE_BYTES, READ_PART_BYTES, MonthFiles
from tests.fakes.disk import Image, Mark, RecordingDisk, Refusal
from tests.fakes.moody_disk import MoodyDisk
from tests.fakes.rows import each_row
from tests.store.cuts import Bounds, PowerCut

MONTH = "2026-11"
FILE = f"history/{MONTH}.jsonl"
PREFIX = b'{"d":"lamp","a":"power",'


def body(number: int, text: str = "") -> bytes:
    """Return a line of the lamp."""
    return PREFIX + orjson.dumps({"n": number, "x": text})[1:]


def numbers(files: MonthFiles, month: str = MONTH) -> list[int]:
    """Return the numbers of the lamp's lines."""
    return [line.fields["n"] for line in files.find(month, PREFIX) if line.fields is not None]


def test_lines_are_found_in_order(tmp_path: Path) -> None:
    files = MonthFiles(Disk(tmp_path))
    assert files.list_months() == {} and numbers(files) == []
    files.append(MONTH, [body(1), b'{"d":"lamp","a":"powers","n":9}', b'{"d":"other","a":"power","n":9}', body(2)])
    files.append(MONTH, [body(3)])
    files.append("2026-12", [body(4)])
    assert numbers(files) == [1, 2, 3] and numbers(files, "2026-12") == [4]
    assert [*files.list_months()] == ["2026-11", "2026-12"]
    found = files.find_last(MONTH, PREFIX)
    assert found is not None and found["n"] == 3
    assert files.find_last(MONTH, b'{"nothing":') is None
    first, *others = files.read_all(MONTH)
    assert first is not None and first["kind"] == "history" and first["format"] == 1 and len(others) == 5
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o700
    files.remove(["2026-11"])
    assert [*files.list_months()] == ["2026-12"] and numbers(files) == []


def test_files_without_the_name_of_a_month_are_ignored(tmp_path: Path) -> None:
    files = MonthFiles(Disk(tmp_path))
    files.append(MONTH, [body(1)])
    for name in ("2026-13.jsonl", "2026-00.jsonl", "\u0662\u0660\u0662\u0666-11.jsonl", "2026-11.jsonl.part"):
        (tmp_path / "history" / name).write_bytes(b"x\n")
    assert [*files.list_months()] == [MONTH]


def test_a_value_that_looks_like_a_line_is_not_a_line(tmp_path: Path) -> None:
    files = MonthFiles(Disk(tmp_path))
    files.append(MONTH, [b'{"d":"x","a":"y","v":{"d":"lamp","a":"power","n":1}}', body(2)])
    assert [(line.fields or {}).get("n") for line in files.find(MONTH, PREFIX)] == [2]


def test_a_month_larger_than_one_read(tmp_path: Path) -> None:
    files = MonthFiles(Disk(tmp_path))
    filler = b'{"d":"other","a":"power","x":"%b"}' % (b"x" * 5000)
    for number in range(4):
        files.append(MONTH, [body(number), *[filler] * (READ_PART_BYTES // 5000 // 2)])
    assert numbers(files) == [0, 1, 2, 3]
    assert (files.find_last(MONTH, PREFIX) or {})["n"] == 3, "it lies before the tail that is looked at first"


DAMAGES = {
    "a byte flipped": (lambda data, at: data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]),
    "a newline lost": (lambda data, at: data.replace(b"}\n", b"} ", 2).replace(b"} ", b"}\n", 1)),
    "bytes gone": (lambda data, at: data[:at] + data[at + 7 :]),
    "zeros": (lambda data, at: data[:at] + bytes(20) + data[at + 20 :]),
    "cut": (lambda data, at: data[:at]),
    "lines of rubbish": (lambda data, at: data + b"\n\n\0\0rubbish\n{}\n" + b'{"d":"lamp","a":"power","n":77}\n'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_loses_only_the_damaged_lines(damage: str, tmp_path: Path) -> None:
    files = MonthFiles(Disk(tmp_path))
    files.append(MONTH, [body(number, "x" * 30) for number in range(40)])
    whole = (tmp_path / FILE).read_bytes()
    chance = random.Random(3)
    for _ in range(40):
        at = chance.randrange(100, len(whole) - 100)
        data = DAMAGES[damage](whole, at)
        (tmp_path / FILE).write_bytes(data)
        found = MonthFiles(Disk(tmp_path))
        kept = numbers(found)
        expected = [number for number in range(40) if with_crc(body(number, "x" * 30)) in data]
        assert set(expected) <= set(kept) <= set(range(40)) and kept == sorted(kept), (damage, at)
        assert len(kept) >= (0 if damage == "cut" else 38), (damage, at)
        found.append(MONTH, [body(100)])
        assert numbers(found)[-1] == 100, (damage, at)


def test_a_file_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    data = with_crc(b'{"format":2,"kind":"history","month":"2026-11"}')
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(OSError, match="newer Lares"):
        MonthFiles(Disk(tmp_path)).append(MONTH, [body(1)])
    assert (tmp_path / FILE).read_bytes() == data


def test_a_format_that_is_not_a_number_does_not_stop_the_history(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / FILE).write_bytes(with_crc(b'{"format":"2","kind":"history","month":"2026-11"}'))
    files = MonthFiles(Disk(tmp_path))
    files.append(MONTH, [body(1)])
    assert numbers(files) == [1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_card_that_refuses_and_recovers(number: int, tmp_path: Path) -> None:
    disk = MoodyDisk(tmp_path)
    files = MonthFiles(disk)
    for attempt in range(3):
        disk.mood = number
        with pytest.raises(OSError):
            files.append(MONTH, [body(attempt), body(attempt)])
        disk.mood = None
        files.append(MONTH, [body(attempt)])
    assert numbers(files) == [0, 1, 2]


def test_space_for_the_homes_state_is_reserved_on_a_small_card(tmp_path: Path) -> None:
    class SmallDisk(Disk):
        free = MIN_FREE_BYTES + 100

        def free_bytes(self) -> int:
            return self.free

    files = MonthFiles(SmallDisk(tmp_path))
    with pytest.raises(OSError, match="the remaining space is reserved") as refused:
        files.append(MONTH, [body(1, "x" * 100)])
    assert refused.value.errno == errno.ENOSPC and not (tmp_path / "history").exists()
    files.append(MONTH, [body(2)])
    assert numbers(files) == [2]
    assert Disk(tmp_path).free_bytes() > 0


def write_history(disk: RecordingDisk, *, marks: bool = True) -> list[int]:
    """Append five times over two months. In between, restart. Mark the confirmed lines in the disk's log."""
    acknowledged: list[int] = []
    files = MonthFiles(disk)
    for number in range(6):
        if number == 3:
            disk.forget_descriptors()
            files = MonthFiles(disk)
        with suppress(OSError):
            files.append(MONTH if number < 4 else "2026-12", [body(number, "y" * 40), body(number, "z" * 900)])
            acknowledged += [number, number]
        if marks:
            disk.mark(Mark(({str(each): b"" for each in acknowledged},)))
    return acknowledged


def found_in(image: Image) -> Sequence[int]:
    """Return the lines that a start finds in an image, in both months."""
    files = MonthFiles(RecordingDisk(image))
    found = [*numbers(files), *numbers(files, "2026-12")]
    for month in (MONTH, "2026-12"):
        [*files.read_all(month)]
    return found


def prove(disk: RecordingDisk) -> int:
    """Cut the power at each point of the log. Check that each confirmed line exists once, and that writing can
    continue."""
    cut = PowerCut(disk.start, Bounds(torn_bytes=60, mixtures=4))
    loaded: dict[bytes, Sequence[int]] = {}
    acknowledged: set[int] = set()
    for event in disk.log:
        cut.advance(event)
        if isinstance(event, Mark):
            acknowledged = {int(each) for each in event.allowed[0]}
        for digest, image in cut.images():
            if digest not in loaded:
                loaded[digest] = found_in(image)
                again = MonthFiles(RecordingDisk(image))
                again.append(MONTH, [body(99)])
                assert numbers(again) == [*numbers(MonthFiles(RecordingDisk(image))), 99]
            found = loaded[digest]
            missing = [each for each in acknowledged if found.count(each) != 2]
            assert not missing, (missing, found)
    return len(loaded)


@pytest.mark.slow
def test_a_power_cut_loses_no_synced_line() -> None:
    disk = RecordingDisk()
    assert write_history(disk) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert prove(disk) > 100


class _NoSync(RecordingDisk):
    """A disk that does not sync files."""

    def sync(self, descriptor: int) -> None: ...


class _NoFolderSync(RecordingDisk):
    """A disk that does not sync folders, so a power cut can lose file names."""

    def sync_folder(self, below: str = "") -> None: ...


@each_row("mutant", [_NoSync, _NoFolderSync])
def test_the_proof_finds_missing_lines(mutant: type[RecordingDisk]) -> None:
    disk = mutant()
    write_history(disk)
    with pytest.raises(AssertionError):
        prove(disk)


@pytest.mark.slow
@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.release)])
@pytest.mark.parametrize("refusal", ["ENOSPC", "EIO", "EROFS", "short"])
def test_a_power_cut_next_to_refused_writes_loses_no_synced_line(refusal: Refusal, step: int) -> None:
    trial = RecordingDisk()
    write_history(trial)
    for index in range(0, len(trial.operations), step):
        for count in (1, 2):
            disk = RecordingDisk()
            disk.fault = lambda at, _, index=index, count=count: refusal if index <= at < index + count else None  # type: ignore[misc]
            write_history(disk)
            prove(disk)
