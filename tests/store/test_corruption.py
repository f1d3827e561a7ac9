"""Damaged files are reported, or their damage is harmless. The files are kept, and the hub never starts with an empty
store if files exist."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from appliance.store.disk import Disk
from appliance.store.document_files import DocumentFiles
from appliance.store.file_format import STORE_FORMAT, encode_snapshot
from tests.fakes.disk import RecordingDisk
from tests.store.corruptions import (
    BEGIN,
    CHECKS,
    JOURNAL,
    LINES,
    SNAPSHOT,
    check_refused,
    healthy,
    journal,
    reheaded,
    start,
    states,
)
from tests.store.cuts import durable
from tests.store.proof import AFTER, Maker, Values, changed, make, silence

STAMP = "20260101T000000Z"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hide the store's warnings, which these tests do not check."""
    with silence():
        yield


@pytest.mark.parametrize(
    "check",
    [pytest.param(each, marks=[pytest.mark.slow] if "every_flipped_bit" in each.__name__ else []) for each in CHECKS],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_detected_or_harmless(check: Callable[[Maker], None]) -> None:
    check(make)


def older() -> dict[str, bytes]:
    """Return one generation in the previous format."""
    return {
        SNAPSHOT: reheaded(encode_snapshot(2, 10, BEGIN), format=STORE_FORMAT - 1),
        JOURNAL: reheaded(journal(*LINES), format=STORE_FORMAT - 1),
    }


def migrate(values: Values) -> Values:
    """Rename all keys, so that a second migration would be visible."""
    return {f"new/{key}": value for key, value in values.items()}


def migrating(disk: Disk) -> DocumentFiles:
    """Return a store that can read the previous format."""
    return DocumentFiles(disk, STAMP, migrations={STORE_FORMAT - 1: migrate})


def test_files_of_an_older_format_are_migrated_once_and_kept() -> None:
    disk = RecordingDisk(older())
    files = migrating(disk)
    files.open()
    assert files.values == migrate(states()[-1])
    for name, content in older().items():
        assert durable(disk)[f"{name}.before-format-{STORE_FORMAT}-{STAMP}"] == content
    files.append(AFTER)
    files.close()
    again = migrating(RecordingDisk(durable(disk)))
    found = again.open()
    assert again.values == changed(migrate(states()[-1]), AFTER)
    assert not found.outdated


def test_a_damaged_snapshot_after_a_migration_migrates_only_older_ones() -> None:
    disk = RecordingDisk(older())
    files = migrating(disk)
    files.open()
    files.append(AFTER)
    files.close()
    image = {**durable(disk), "snapshot.000003.json": b"damaged"}
    found, values = start(migrating, image)
    assert values == changed(migrate(states()[-1]), AFTER)
    assert found.damaged == ["snapshot.000003.json"]


def test_an_older_format_without_a_migration_is_refused() -> None:
    check_refused(make, older(), os.EX_CONFIG)


def test_a_damaged_file_is_kept_even_if_the_card_first_refuses() -> None:
    image = {**healthy(), JOURNAL: journal(LINES[0], LINES[2])}
    disk = RecordingDisk(image)
    disk.fault = lambda index, operation: "ENOSPC"
    files = make(disk)
    files.open()
    with pytest.raises(OSError):
        files.append(AFTER)
    disk.fault = lambda index, operation: None
    for number in range(30):
        files.append({"n": b'"%s"' % (b"%d" % number * 300)})
        files.compact()
    assert JOURNAL not in disk.list_names(), "compacted long ago"
    assert durable(disk)[f"{JOURNAL}.corrupt-{STAMP}"] == image[JOURNAL]


def test_the_last_whole_generation_is_kept_until_the_next_is_whole() -> None:
    damaged = {**healthy(), SNAPSHOT: b""}
    disk = RecordingDisk(damaged)
    files = make(disk)
    files.open()
    files.append(AFTER)
    files.close()
    image = {**durable(disk), "snapshot.000003.json": b"damaged as well"}
    found, values = start(make, image)
    assert values == changed(states()[-1], AFTER)
    assert sorted(found.damaged) == [SNAPSHOT, "snapshot.000003.json"]


def test_a_deleted_damaged_file_stops_nothing() -> None:
    disk = RecordingDisk({**healthy(), SNAPSHOT: b""})
    disk.fault = lambda index, operation: "ENOSPC"
    files = make(disk)
    files.open()
    disk.fault = lambda index, operation: None
    disk.remove(SNAPSHOT)
    files.append(AFTER)
    assert files.values == changed(states()[-1], AFTER)


def test_only_partial_files_of_the_store_are_removed() -> None:
    halves = {"journal.000003.json.part": b"", f"{SNAPSHOT}.corrupt-{STAMP}.part": b""}
    disk = RecordingDisk({**healthy(), **halves, "first-key.part": b"somebody else's"})
    make(disk).open()
    assert [name for name in disk.list_names() if name.endswith(".part")] == ["first-key.part"]


def test_a_generation_without_records_is_written_again() -> None:
    files = make(RecordingDisk({**healthy(), JOURNAL: journal()}))
    assert not files.open().is_clean
    assert files.figures()["generation"] == 3
