"""The single file unpacks only once, to the first suitable folder, and repairs damaged files there."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import lares_file
import lares_launcher
import lares_unpack
import pytest

from tests.firmware.archive import BOOT, age, content, expected, make_archive

USER = os.geteuid()
OTHER = USER + 4711
SHARED = [f"{folder}/lares-{USER}" for folder in ("/var/tmp", "/tmp", "/run")]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a small single file."""
    return make_archive(tmp_path_factory.mktemp("archive") / "lares.pyz")


@pytest.fixture
def folder(archive: Path, tmp_path: Path) -> Path:
    """Provide the unpacked folder."""
    base = tmp_path / "program"
    return Path(lares_launcher.find_folder(str(archive), [str(base)]))


class TestPlaces:
    """The possible folders: those in environment variables, the home folder, and the folders that every machine
    has."""

    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({}, []),
            ({"LARES_DATA_DIR": "a", "STATE_DIRECTORY": "b", "CACHE_DIRECTORY": "c"}, ["a", "b", "c"]),
            ({"CACHE_DIRECTORY": "c", "HOME": "h"}, ["c", "h"]),
            ({"STATE_DIRECTORY": "a:b", "LARES_DATA_DIR": "a"}, ["a"]),
            ({"LARES_DATA_DIR": "missing", "CACHE_DIRECTORY": "file", "HOME": "missing"}, []),
        ],
    )
    def test_existing_folders_of_this_user_come_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: list[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file").touch()
        for name in ("a", "b", "c", "h"):
            (tmp_path / name).mkdir()
        found = lares_launcher.candidate_folders(environment)
        ours = [str(tmp_path / name / (".cache/lares" if name == "h" else "program")) for name in expected]
        assert [place for place in found if not place.startswith("/opt/")] == [*ours, *SHARED]

    def test_another_user_s_folders_are_left_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: USER + 1)
        environment = dict.fromkeys(("LARES_DATA_DIR", "HOME"), str(tmp_path))
        assert lares_launcher.candidate_folders(environment)[0].startswith("/var/tmp/")


class TestChoice:
    """The chosen folder is the first one that is writable, allows execution, and has enough space."""

    def choose(self, archive: Path, *bases: Path) -> Path:
        """Return the base to which the file was unpacked."""
        return Path(lares_launcher.find_folder(str(archive), [str(base) for base in bases])).parent

    def test_the_first_suitable_folder_is_used(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        first, second, third = tmp_path / "file" / "a", tmp_path / "b", tmp_path / "c"
        assert self.choose(archive, first, second, third) == second
        assert not third.exists()

    def test_without_a_folder_the_error_has_the_reasons(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
        with pytest.raises(OSError) as refused:
            self.choose(archive, tmp_path / "a", tmp_path / "file" / "b")
        reasons = f"cannot unpack ({tmp_path}/a: does not allow execution; {tmp_path}/file/b: not a directory); set"
        assert str(refused.value).startswith(reasons)

    def test_folders_writable_by_others_are_not_trusted(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        (tmp_path / "link").symlink_to(tmp_path / "open")
        assert self.choose(archive, tmp_path / "open", tmp_path / "link", tmp_path / "c") == tmp_path / "c"
        assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700

    @pytest.mark.slow  # marked as slow: otherwise, the quick run of a normal user would skip seven tests
    @pytest.mark.skipif(USER != 0, reason="only root can give folders away")
    @pytest.mark.parametrize("what", ["folder", "link", "link to ours", "file", "way", "open way", "new in theirs"])
    def test_files_of_another_user_are_never_run_or_written(self, archive: Path, tmp_path: Path, what: str) -> None:
        ours, way, base = tmp_path / "ours", tmp_path / "way", tmp_path / "way" / "a"
        ours.mkdir(mode=0o700)
        way.mkdir()
        way.chmod(0o1777)
        if what == "folder":
            base.mkdir()
            os.chown(base, OTHER, OTHER)
        elif what.startswith("link"):
            base.symlink_to(ours if what == "link to ours" else tmp_path / "missing")
            os.lchown(base, OTHER, OTHER)
        elif what == "file":
            base.touch()
        elif what == "open way":
            way.chmod(0o777)
        else:
            way.chmod(0o755)
            os.chown(way, OTHER, OTHER)
            base = base / "b" if what == "new in theirs" else base
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(OSError, match=re.escape(str(base))):
            self.choose(archive, base)
        assert sorted(tmp_path.rglob("*")) == before
        assert self.choose(archive, base, tmp_path / "c") == tmp_path / "c", "the next place will do"

    def test_a_folder_open_to_others_is_made_private(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir(mode=0o755)
        assert self.choose(archive, tmp_path / "a").stat().st_mode & 0o777 == 0o700

    def test_our_own_link_in_the_path_is_followed_once(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "card").mkdir()
        (tmp_path / "data").symlink_to("card")
        assert self.choose(archive, tmp_path / "data" / "a") == tmp_path / "card" / "a"

    def test_a_card_that_becomes_full_leaves_nothing_and_the_next_folder_is_tried(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = lares_unpack.write

        def full(path: str, data: bytes) -> None:
            if str(tmp_path / "a") in path and "two" in path:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(path, data)

        monkeypatch.setattr(lares_unpack, "write", full)
        assert self.choose(archive, tmp_path / "a", tmp_path / "b") == tmp_path / "b"
        assert not list((tmp_path / "a").iterdir())

    def test_files_of_a_killed_start_are_removed(self, archive: Path, tmp_path: Path) -> None:
        part = tmp_path / "a" / f"{lares_launcher.NAME}.part"
        (part / "site-packages").mkdir(parents=True)
        (part / "site-packages" / "half").write_text("ha")
        (tmp_path / "a").chmod(0o700)
        assert self.choose(archive, tmp_path / "a") == tmp_path / "a"
        assert not part.exists()

    @pytest.mark.slow
    def test_concurrent_starts_unpack_once_and_all_run(self, archive: Path, tmp_path: Path) -> None:
        code = (
            "import sys, lares_launcher, lares_unpack; read_files = lares_unpack.read_files\n"
            "lares_unpack.read_files = lambda *each: print('unpacks') or read_files(*each)\n"
            "folder = lares_launcher.find_folder(sys.argv[1], [sys.argv[2]])\n"
            "print(lares_launcher.is_whole(folder, deep=True))"
        )
        command = [sys.executable, "-c", code, str(archive), str(tmp_path / "a")]
        starts = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(BOOT)})
            for _ in range(5)
        ]
        output = "".join(start.communicate(timeout=60)[0] for start in starts)
        assert sorted(output.split()) == ["True"] * 5 + ["unpacks"]


def harm_emptied(folder: Path) -> None:
    """Truncate a file to 0 bytes, as a power cut may do."""
    (folder / "site-packages" / "fast" / "two.so").write_bytes(b"")


def harm_lost(folder: Path) -> None:
    shutil.rmtree(folder / "site-packages" / "appliance")


def harm_edited(folder: Path) -> None:
    """Change the content, but not the length."""
    (folder / "site-packages" / "config.toml").write_bytes(b"key = 2\n")


def harm_list(folder: Path) -> None:
    (folder / "files.json").write_bytes(bytes(40))


def harm_list_of_another_sort(folder: Path) -> None:
    """Write a list with valid JSON of the wrong structure."""
    (folder / "files.json").write_text("0")


def harm_no_list(folder: Path) -> None:
    (folder / "files.json").unlink()


def make_damaged(archive: Path, folder: Path) -> Path:
    """Write a copy of the archive with damaged content."""
    data = bytearray(archive.read_bytes())
    for found in re.finditer(b"\xfd7zXZ", archive.read_bytes()):
        data[found.start() + 30 : found.start() + 40] = bytes(10)
    bad = folder / "bad.pyz"
    bad.write_bytes(data)
    return bad


def fill_card(monkeypatch: pytest.MonkeyPatch, until_gone: Path) -> None:
    """Make unpacking fail for lack of space while the folder exists."""
    write = lares_unpack.write

    def write_if_free(path: str, data: bytes) -> None:
        if until_gone.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    monkeypatch.setattr(lares_unpack, "write", write_if_free)


def started(archive: Path, folder: Path) -> bool:
    """Return whether a start finds or creates the same folder."""
    return lares_launcher.find_folder(str(archive), [str(folder.parent)]) == str(folder)


class TestUnpacked:
    def test_exactly_the_files_of_this_target_are_unpacked(self, folder: Path) -> None:
        assert content(folder) == expected()
        assert lares_launcher.is_whole(str(folder), deep=True)
        assert {path.stat().st_mtime for path in folder.rglob("*.py")} == {lares_file.DATE}

    def test_a_second_start_writes_nothing(self, archive: Path, folder: Path) -> None:
        before = {path: path.stat().st_ctime_ns for path in folder.parent.rglob("*")}
        assert lares_launcher.find_folder(str(archive), [str(folder.parent)]) == str(folder)
        assert {path: path.stat().st_ctime_ns for path in folder.parent.rglob("*")} == before

    @pytest.mark.parametrize(
        "harm", [harm_emptied, harm_lost, harm_edited, harm_list, harm_list_of_another_sort, harm_no_list]
    )
    def test_the_next_start_repairs_damage(self, archive: Path, folder: Path, harm: Callable[[Path], None]) -> None:
        harm(folder)
        assert not lares_launcher.is_whole(str(folder))
        assert started(archive, folder)
        assert content(folder) == expected() and lares_launcher.is_whole(str(folder), deep=True)

    def test_rotten_bytecode_is_found_after_a_failure(self, folder: Path) -> None:
        victim = next(folder.rglob("*.pyc"))
        date = victim.stat().st_mtime
        victim.write_bytes(victim.read_bytes()[:-1] + b"x")
        os.utime(victim, (date, date))
        assert lares_launcher.is_whole(str(folder)) and not lares_launcher.is_whole(str(folder), deep=True)

    def test_bytecode_that_python_wrote_before_the_boot_is_removed(self, archive: Path, folder: Path) -> None:
        shipped = sorted(path for path in folder.rglob("*.pyc"))
        cache = folder / "site-packages" / "fast" / "__pycache__"
        cache.mkdir()
        (cache / "half.cpython-311.pyc").write_bytes(b"comp")
        assert started(archive, folder) and len(list(folder.rglob("*.pyc"))) == len(shipped) + 1
        age(folder)
        assert started(archive, folder)
        assert shipped and sorted(folder.rglob("*.pyc")) == shipped
        (cache / "new.cpython-311.pyc").write_bytes(b"compiled")
        assert started(archive, folder) and (cache / "new.cpython-311.pyc").exists()

    def test_a_damaged_copy_is_reported(self, archive: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError):
            lares_launcher.find_folder(str(make_damaged(archive, tmp_path)), [str(tmp_path / "a")])
        assert not list((tmp_path / "a").iterdir())


def make_others(base: Path) -> Path:
    """Make unpacked folders of other versions, one of which is in use. Return a folder that is not in use."""
    idle, used, foreign = base / "old-cpython-311-x", base / "older-cpython-311-x", base / "photos"
    for each in (idle, used, foreign, base / "old-cpython-311-x.part"):
        (each / "site-packages").mkdir(parents=True)
    base.chmod(0o700)
    (base / "link-cpython-311-x").symlink_to(foreign)
    assert lares_launcher.hold(str(used))
    return idle


KEPT = {"older-cpython-311-x", "photos", "link-cpython-311-x"}


class TestOthers:
    """Other versions are removed as soon as this version is unpacked next to them."""

    def test_unused_versions_are_removed(self, archive: Path, tmp_path: Path) -> None:
        base = tmp_path / "a"
        make_others(base)
        lares_launcher.find_folder(str(archive), [str(base)])
        assert {path.name for path in base.iterdir()} == {lares_launcher.NAME, *KEPT}

    @pytest.mark.parametrize("is_full", [False, True])
    def test_a_damaged_archive_removes_no_version(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool
    ) -> None:
        idle = make_others(tmp_path / "a")
        if is_full:
            fill_card(monkeypatch, until_gone=idle)
        with pytest.raises(ValueError):
            lares_launcher.find_folder(str(make_damaged(archive, tmp_path)), [str(tmp_path / "a")])
        assert {path.name for path in (tmp_path / "a").iterdir()} == {idle.name, *KEPT}

    def test_a_full_card_loses_its_unused_versions_first(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        base = tmp_path / "a"
        fill_card(monkeypatch, until_gone=make_others(base))
        folder = Path(lares_launcher.find_folder(str(archive), [str(base)]))
        assert {path.name for path in base.iterdir()} == {lares_launcher.NAME, *KEPT}
        assert content(folder) == expected()

    def test_a_folder_that_is_being_removed_is_not_used(self, archive: Path, folder: Path) -> None:
        shutil.rmtree(folder)
        assert not lares_launcher.hold(str(folder))


@pytest.mark.parametrize(
    ("path", "stays"),
    [
        ("/usr/lib/python3.11", True),
        ("/usr/lib/python311.zip", True),
        ("/usr/lib/python3.11/lib-dynload", True),
        ("/usr/lib/python3/dist-packages", False),
        ("/root/.local/lib/python3.11/site-packages/", False),
    ],
)
def test_other_packages_of_the_box_are_not_used(path: str, stays: bool) -> None:
    assert lares_launcher.is_not_foreign(path) == stays
