"""Saves of configuration files: after any power cut, a file contains either the old or the new text. The number of
versions is limited."""

from __future__ import annotations

import errno
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from appliance.store.disk import Disk
from appliance.store.saved_files import MAX_VERSIONS, MAX_VERSIONS_BYTES, SavedFiles, is_version, merge_versions
from tests.fakes.disk import Image, RecordingDisk, Refusal
from tests.store.cuts import Bounds, PowerCut

PATH = "config/scenes/evening.lua"
NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
OLD, NEW = b"return 'old'" * 60, b"return 'new'" * 90


def images_of(disk: RecordingDisk) -> list[Image]:
    """For each point of the log, return all possible contents after a power cut."""
    found: dict[bytes, Image] = {}
    cut = PowerCut(disk.start, Bounds(torn_bytes=20))
    found.update(cut.images())
    for event in disk.log:
        cut.advance(event)
        found.update(cut.images())
    return [*found.values()]


def texts_of(image: Image) -> list[bytes]:
    """Return the versions on the card."""
    saved = SavedFiles(RecordingDisk(), RecordingDisk(image))
    return [saved.read_version(each) for each in saved.list_versions(PATH)]


def test_a_cut_leaves_the_old_or_the_new_text_and_no_torn_version() -> None:
    home, data = RecordingDisk({PATH: OLD}), RecordingDisk()
    SavedFiles(home, data).save(PATH, NEW, NOW, previous=OLD, is_new=False)
    assert home.image() == {PATH: NEW} and texts_of(data.image()) == [OLD]
    left = images_of(home)
    assert len(left) > 20 and {image[PATH] for image in left} == {OLD, NEW}
    for image in left:
        assert all(name == PATH or name.endswith(("/.evening.lua.part", "/.evening.lua.old.part")) for name in image)
    for image in images_of(data):
        assert texts_of(image) in ([], [OLD])


def test_the_version_is_on_the_card_before_the_text_is_replaced() -> None:
    home, data = RecordingDisk({PATH: OLD}), RecordingDisk()
    home.fault = lambda index, operation: "EIO" if operation == "create" else None
    with pytest.raises(OSError, match="Input/output"):
        SavedFiles(home, data).save(PATH, NEW, NOW, previous=OLD, is_new=False)
    cut = PowerCut(data.start, Bounds())
    for event in data.log:
        cut.advance(event)
    assert all(texts_of(image) == [OLD] for _, image in cut.images())
    home.fault = lambda index, operation: None
    SavedFiles(home, data).save(PATH, NEW, NOW, previous=OLD, is_new=False)
    assert texts_of(data.image()) == [OLD], "the same text is not kept twice"


@pytest.mark.parametrize("operation", ["create", "copy_access", "write", "sync", "link", "rename", "sync_folder"])
@pytest.mark.parametrize("refusal", ["ENOSPC", "EIO", "EROFS"])
def test_a_refused_save_leaves_the_old_text_and_no_part(operation: str, refusal: Refusal) -> None:
    home, data = RecordingDisk({PATH: OLD}), RecordingDisk()
    home.fault = lambda index, name: refusal if name == operation else None
    with pytest.raises(OSError, match=r".") as raised:
        SavedFiles(home, data).save(PATH, NEW, NOW, previous=OLD, is_new=False)
    assert raised.value.errno == getattr(errno, refusal)
    assert home.image() == {PATH: OLD} and home.open_descriptors == 0


def test_a_deletion_keeps_the_text() -> None:
    home, data = RecordingDisk({PATH: OLD}), RecordingDisk()
    SavedFiles(home, data).delete(PATH, NOW, previous=OLD)
    assert home.image() == {} and texts_of(data.image()) == [OLD]
    for image in images_of(home):
        assert image.get(PATH, OLD) == OLD and all(name.endswith((".lua", ".old.part")) for name in image)


@pytest.mark.parametrize("operation", ["remove", "sync_folder"])
def test_a_refused_deletion_leaves_the_file(operation: str) -> None:
    home, data = RecordingDisk({PATH: OLD}), RecordingDisk()
    home.fault = lambda index, name: "EIO" if name == operation else None
    with pytest.raises(OSError, match="Input/output"):
        SavedFiles(home, data).delete(PATH, NOW, previous=OLD)
    assert home.image() == {PATH: OLD}


def test_a_refused_new_file_is_gone() -> None:
    home, data = RecordingDisk(), RecordingDisk()
    home.fault = lambda index, name: "EIO" if name == "sync_folder" else None
    with pytest.raises(OSError, match="Input/output"):
        SavedFiles(home, data).save(PATH, NEW, NOW, previous=None, is_new=False)
    assert home.image() == {}


def test_versions_are_bounded_per_file_and_together(tmp_path: Path) -> None:
    saved = SavedFiles(Disk(tmp_path), Disk(tmp_path))
    (tmp_path / "config/scenes").mkdir(parents=True)
    for number in range(MAX_VERSIONS + 5):
        saved.save(PATH, b"x", NOW + timedelta(seconds=number), previous=b"%d" % number, is_new=not number)
    assert [each.n for each in saved.list_versions(PATH)] == [*range(MAX_VERSIONS + 5, 5, -1)]
    large = b"x" * (MAX_VERSIONS_BYTES // 4)
    for number in range(10):
        path = f"config/scenes/{number}.lua"
        saved.save(path, b"x", NOW + timedelta(hours=1, seconds=number), previous=large, is_new=True)
    total = sum(each.stat().st_size for each in (tmp_path / "versions").iterdir())
    assert total <= MAX_VERSIONS_BYTES
    assert saved.list_versions(PATH) == [] and len(saved.list_versions("config/scenes/9.lua")) == 1


def test_long_and_strange_paths_have_versions(tmp_path: Path) -> None:
    saved = SavedFiles(Disk(tmp_path), Disk(tmp_path))
    for path in ("config/scripts/" + "ü" * 100 + ".lua", "config/scripts/a b%2F.1.2.lua", "config/scripts/a.lua"):
        saved.make_folders(path)
        saved.save(path, b"new", NOW, previous=path.encode(), is_new=True)
        [version] = saved.list_versions(path)
        assert saved.read_version(version) == path.encode() and version.saved_at == NOW
        assert is_version(version.name)


@pytest.mark.parametrize("size", [200, 201, 247, 255])
def test_a_file_with_a_long_name_is_saved_and_deleted(tmp_path: Path, size: int) -> None:
    saved = SavedFiles(Disk(tmp_path), Disk(tmp_path))
    path = "config/scripts/" + "x" * (size - 4) + ".lua"
    saved.make_folders(path)
    saved.save(path, OLD, NOW, previous=None, is_new=True)
    saved.save(path, NEW, NOW, previous=OLD, is_new=False)
    assert [file.name for file in (tmp_path / "config/scripts").iterdir()] == [path.rpartition("/")[2]]
    assert (tmp_path / path).read_bytes() == NEW
    saved.delete(path, NOW, previous=NEW)
    assert not [*(tmp_path / "config/scripts").iterdir()]


def test_versions_of_a_backup_are_added_to_those_that_exist(tmp_path: Path) -> None:
    data = RecordingDisk({"versions/a.1.5": b"mine"})
    merge_versions(data, {"a.1.5": b"other", "a.2.6": b"more"})
    assert data.image() == {"versions/a.1.5": b"mine", "versions/a.2.6": b"more"}
