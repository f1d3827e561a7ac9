"""Another program deletes or changes the files of a running hub. The hub writes the whole document again before it
confirms the next change, and when it stops."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

import pytest

from appliance.clock import Clock
from appliance.errors import StartFailed, StoreFailed
from appliance.home.bus import Bus
from appliance.home.registry import Registry
from appliance.store.disk import Disk
from appliance.store.document import Document, open_document
from appliance.store.document_files import DocumentFiles
from appliance.store.file_format import encode_snapshot, journal_name, snapshot_name
from appliance.store.lock import LOCK, LOST, DirectoryLock
from appliance.store.restore import read_document
from appliance.store.store import Store

JOURNAL, SNAPSHOT = journal_name(1), snapshot_name(1)


class FullDisk(Disk):
    is_full = False

    def write(self, descriptor: int, data: bytes, offset: int) -> None:
        if self.is_full and data:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        super().write(descriptor, data, offset)


def let_time_pass(file: Path) -> None:
    """Set the time of a write, because several writes within milliseconds can get the same time."""
    os.utime(file, (0, 0))


def delete_journal(folder: Path, old: Path) -> None:
    (folder / JOURNAL).unlink()


def delete_snapshot(folder: Path, old: Path) -> None:
    (folder / SNAPSHOT).unlink()


def delete_all(folder: Path, old: Path) -> None:
    for name in (JOURNAL, SNAPSHOT):
        (folder / name).unlink()


def move_journal(folder: Path, old: Path) -> None:
    (folder / JOURNAL).rename(folder / "journal.aside")


def empty_journal(folder: Path, old: Path) -> None:
    (folder / JOURNAL).write_bytes(b"")


def shorten_journal(folder: Path, old: Path) -> None:
    os.truncate(folder / JOURNAL, 100)


def copy_old_into(folder: Path, old: Path) -> None:
    """Write old contents into the files, like `cp`."""
    for name in (JOURNAL, SNAPSHOT):
        (folder / name).write_bytes((old / name).read_bytes())
        let_time_pass(folder / name)


def replace_by_old(folder: Path, old: Path) -> None:
    """Replace the files with old files, like `tar x`."""
    for name in (JOURNAL, SNAPSHOT):
        (folder / name).unlink()
        shutil.copy2(old / name, folder / name)


def replace_by_same(folder: Path, old: Path) -> None:
    """Replace the journal with a copy, like an editor."""
    shutil.copy2(folder / JOURNAL, folder / "copy")
    (folder / "copy").replace(folder / JOURNAL)


def empty_snapshot(folder: Path, old: Path) -> None:
    (folder / SNAPSHOT).write_bytes(b"")


def put_folder_in_place(folder: Path, old: Path) -> None:
    (folder / JOURNAL).unlink()
    (folder / JOURNAL).mkdir()


def put_folder_in_place_of_snapshot(folder: Path, old: Path) -> None:
    (folder / SNAPSHOT).unlink()
    (folder / SNAPSHOT).mkdir()


CHANGES: list[Callable[[Path, Path], None]] = [
    delete_journal,
    delete_snapshot,
    delete_all,
    move_journal,
    empty_journal,
    shorten_journal,
    copy_old_into,
    replace_by_old,
    replace_by_same,
    empty_snapshot,
    put_folder_in_place,
    put_folder_in_place_of_snapshot,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


async def fill(document: Document, folder: Path) -> Path:
    """Make changes. Return a copy of the folder from before the last changes."""
    await document.put_many({"room/a": {"name": "A"}})
    old = Path(shutil.copytree(folder, folder.with_name("old")))
    await document.put_many({"room/b": {"name": "B"}})
    await document.put_many({"room/c": {"name": "C"}})
    return old


def list_rooms(folder: Path) -> list[str]:
    """Return the rooms that a start finds. The start must find no damage."""
    found = read_document(folder)
    assert found.damage == []
    return sorted(found.values)


@pytest.mark.parametrize("change", CHANGES)
async def test_each_confirmed_change_is_found_after_the_files_were_changed(
    folder: Path, caplog: pytest.LogCaptureFixture, change: Callable[[Path, Path], None]
) -> None:
    async with open_document(Disk(folder), Clock()) as document:
        change(folder, await fill(document, folder))
        await document.put_many({"room/d": {"name": "D"}})
        assert list_rooms(folder) == ["room/a", "room/b", "room/c", "room/d"], "a kill would lose a confirmed change"
        await document.put_many({"room/e": {"name": "E"}})
        assert list_rooms(folder) == ["room/a", "room/b", "room/c", "room/d", "room/e"]
        assert caplog.text.count("the hub writes the whole document again") == 1
    assert len(list_rooms(folder)) == 5
    async with open_document(Disk(folder), Clock()) as document:
        assert len(document.items("room/")) == 5 and document.recovered.notes == []


@pytest.mark.parametrize("change", CHANGES)
async def test_each_confirmed_change_is_found_if_the_files_were_changed_after_a_failed_write(
    folder: Path, change: Callable[[Path, Path], None]
) -> None:
    disk = FullDisk(folder)
    async with open_document(disk, Clock()) as document:
        old = await fill(document, folder)
        disk.is_full = True
        with pytest.raises(StoreFailed):
            await document.put_many({"room/x": {"name": "X"}})
        disk.is_full = False
        change(folder, old)
        await document.put_many({"room/d": {"name": "D"}})
        assert list_rooms(folder) == ["room/a", "room/b", "room/c", "room/d"]
    assert list_rooms(folder) == ["room/a", "room/b", "room/c", "room/d"]


def overwrite_middle(folder: Path, old: Path) -> None:
    """Damage a record of the journal. The file keeps its length and its last record."""
    data = (folder / JOURNAL).read_bytes()
    with (folder / JOURNAL).open("r+b") as stream:
        stream.seek(data.index(b"room/b"))
        stream.write(b"\0" * 6)


@pytest.mark.parametrize("change", [*CHANGES, overwrite_middle])
async def test_a_clean_stop_keeps_the_document_without_another_change(
    folder: Path, change: Callable[[Path, Path], None]
) -> None:
    async with open_document(Disk(folder), Clock()) as document:
        change(folder, await fill(document, folder))
    assert list_rooms(folder) == ["room/a", "room/b", "room/c"]


def move_journal_at_once(folder: Path) -> None:
    """Move the journal without a change of the folder's time."""
    before = folder.stat()
    (folder / JOURNAL).rename(folder.with_name("moved"))
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))


async def test_a_clean_stop_keeps_the_document_even_if_the_folder_has_the_same_time(folder: Path) -> None:
    """Some file systems store times in seconds."""
    async with open_document(Disk(folder), Clock()) as document:
        await fill(document, folder)
        move_journal_at_once(folder)
    assert list_rooms(folder) == ["room/a", "room/b", "room/c"]


async def test_files_of_a_later_generation_do_not_replace_the_running_hub_s_document(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    DocumentFiles(Disk(other), "").begin({"room/other": b"{}"}, above=8, sequence=50)
    async with open_document(Disk(folder), Clock()) as document:
        await fill(document, folder)
        shutil.copytree(other, folder, dirs_exist_ok=True)
    assert list_rooms(folder) == ["room/a", "room/b", "room/c"]
    assert "added files of a later generation" in caplog.text


@pytest.mark.parametrize("has_other_time", [False, True])
async def test_a_copy_with_the_same_content_is_not_written_again(
    folder: Path, caplog: pytest.LogCaptureFixture, *, has_other_time: bool
) -> None:
    """FAT and network file systems can assign another inode or time to the same file."""
    async with open_document(Disk(folder), Clock()) as document:
        for number in range(5):
            shutil.copy2(folder / SNAPSHOT, folder.with_name("copy"))
            folder.with_name("copy").replace(folder / SNAPSHOT)
            if has_other_time:
                os.utime(folder / SNAPSHOT, (number, number))
            await document.put_many({"room/a": {"name": str(number)}})
            assert document.figures()["generation"] == 1
    assert "another program" not in caplog.text


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_valid_snapshot_of_the_same_size_does_not_replace_the_document(
    folder: Path, caplog: pytest.LogCaptureFixture, *, is_restarted: bool
) -> None:
    files = DocumentFiles(Disk(folder), "")
    files.begin({"room/a": b'{"name":"A"}'}, above=0, sequence=0)
    if is_restarted:
        files.close()
        files = DocumentFiles(Disk(folder), "")
        files.open()
    generation, sequence = files.figures()["generation"], files.figures()["sequence"]
    snapshot = folder / snapshot_name(generation)
    changed = encode_snapshot(generation, sequence, {"room/a": b'{"name":"X"}'})
    assert len(changed) == snapshot.stat().st_size
    snapshot.write_bytes(changed)
    let_time_pass(snapshot)
    files.append({"room/b": b"{}"})
    files.close()
    assert read_document(folder).values["room/a"] == b'{"name":"A"}'
    assert "replaced or changed" in caplog.text


async def test_unchanged_files_are_not_written_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        async with open_document(Disk(folder), Clock()) as document:
            for number in range(50):
                await document.put_many({"room/a": {"name": "x" * 50 * number}})
            (folder / "another").touch()
            assert document.figures()["generation"] == 1
    assert "another program" not in caplog.text


async def test_a_failed_rewrite_is_an_error_and_is_tried_again(folder: Path) -> None:
    async with open_document(Disk(folder), Clock()) as document:
        await fill(document, folder)
        delete_journal(folder, folder)
        (folder / (journal_name(2) + ".part")).mkdir()
        with pytest.raises(StoreFailed, match="is a directory"):
            await document.put_many({"room/d": {"name": "D"}})
        (folder / (journal_name(2) + ".part")).rmdir()
        await document.put_many({"room/e": {"name": "E"}})
        assert list_rooms(folder) == ["room/a", "room/b", "room/c", "room/e"]


def read_all(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def open_store(folder: Path) -> Store:
    bus, clock = Bus(), Clock()
    return Store(Disk(folder), Registry(bus, clock), bus, clock, flush_secs=60, sections={})


@pytest.mark.parametrize("has_change", [False, True])
async def test_a_deleted_lock_file_is_created_and_locked_again(
    folder: Path, caplog: pytest.LogCaptureFixture, *, has_change: bool
) -> None:
    async with open_store(folder) as store:
        before = (folder / LOCK).read_bytes()
        (folder / LOCK).unlink()
        if has_change:
            await store.document.put_many({"room/a": {"name": "A"}})
            assert (folder / LOCK).read_bytes() == before
            with pytest.raises(StartFailed, match="in use by another hub"):
                DirectoryLock(folder)
            await store.document.put_many({"room/b": {"name": "B"}})
    assert caplog.text.count("created and locked it again") == 1
    later = DirectoryLock(folder)
    assert not later.was_cut_off
    later.release()


@pytest.mark.parametrize("has_ended", [False, True])
@pytest.mark.parametrize("is_brief", [False, True])
async def test_a_hub_writes_nothing_after_another_hub_or_a_command_has_taken_the_lock(
    folder: Path, caplog: pytest.LogCaptureFixture, *, is_brief: bool, has_ended: bool
) -> None:
    """Otherwise, the hub would undo a restore or a revocation of a key."""
    async with open_store(folder) as store:
        await store.document.put_many({"room/a": {"name": "A"}})
        (folder / LOCK).unlink()
        other = DirectoryLock(folder, is_brief=is_brief)
        async with open_document(Disk(folder), Clock()) as document:
            await document.put_many({"room/a": {"name": "B"}})
        if has_ended:
            other.release()
        before = read_all(folder)
        for _ in range(2):
            with pytest.raises(StoreFailed, match="lock was replaced, so another hub may use the data directory"):
                await store.document.put_many({"room/b": {"name": "B"}})
            if has_ended:
                (folder / LOCK).unlink(missing_ok=True)  # the other hub's changes must remain even now
    before.pop(LOCK, None)
    assert {name: data for name, data in read_all(folder).items() if name != LOCK} == before
    assert caplog.messages == [f"changes cannot be stored: {LOST}"]
    other.release()
