"""The single file unpacks once, to the first suitable folder, and repairs damage there."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lares_launcher
import lares_unpack
import pytest

from tests.firmware.archive import BOOT, age, content, expected, make_archive

USER = os.geteuid()
OTHER = USER + 4711
SHARED = [f"{folder}/lares-{USER}" for folder in ("/var/tmp", "/tmp", "/run")]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a single file in small."""
    return make_archive(tmp_path_factory.mktemp("archive") / "lares.pyz")


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    """Release the locks of a test."""
    yield
    for descriptor in lares_launcher.held:
        os.close(descriptor)
    lares_launcher.held.clear()


@pytest.fixture
def folder(archive: Path, tmp_path: Path) -> Path:
    """Provide the unpacked folder."""
    base = tmp_path / "program"
    return Path(lares_launcher.find_folder(str(archive), [str(base)]))


class TestPlaces:
    """Data directory, STATE_DIRECTORY, CACHE_DIRECTORY, and then the folders of every box."""

    def test_nothing_given_means_what_every_box_has(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert lares_launcher.candidate_folders(["check"], {}) == SHARED

    @pytest.mark.parametrize(
        ("arguments", "is_start"),
        [
            ([], True),
            (["run", "--safe"], True),
            (["--config", "doctor", "--data-dir=x"], True),
            (["--config", "run", "check"], False),
            (["doctor"], False),
            (["--version"], False),
            (["run", "--help"], False),
            (["--data-dir=x", "run", "--safe", "--config=y"], True),
            (["--bogus"], False),
            (["run", "--bogus"], False),
            (["--safe"], False),
            (["run", "run"], False),
            (["run", "--config"], False),
            (["--config", "--bogus"], False),
        ],
    )
    def test_a_hub_that_makes_its_data_directory_unpacks_there_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: Path, arguments: list[str], is_start: bool
    ) -> None:
        monkeypatch.chdir(tmp_path)
        data = lares_launcher.data_dir(arguments, {})
        first, *_ = lares_launcher.candidate_folders(arguments, {})
        assert (first == f"{data}/program") == is_start
        if is_start:
            lares_launcher.find_folder(str(archive), [first])
            assert Path(data).stat().st_mode & 0o777 == 0o700, "as the hub makes it"

    @pytest.mark.parametrize(
        ("arguments", "environment", "expected"),
        [
            ([], {}, ["data"]),
            (["run", "--data-dir", "a"], {"LARES_DATA_DIR": "b", "STATE_DIRECTORY": "c"}, ["a", "c"]),
            (["--data-dir=a"], {"CACHE_DIRECTORY": "b"}, ["a", "b"]),
            ([], {"LARES_DATA_DIR": "a", "STATE_DIRECTORY": "b", "CACHE_DIRECTORY": "c"}, ["a", "b", "c"]),
            ([], {"STATE_DIRECTORY": "a:b", "CACHE_DIRECTORY": "c"}, ["a", "c"]),
            (["check"], {"LARES_DATA_DIR": "missing", "CACHE_DIRECTORY": "c"}, ["c"]),
            ([], {"LARES_DATA_DIR": "missing", "CACHE_DIRECTORY": "c"}, ["missing", "c"]),
            (["--data-dir"], {}, ["data"]),
        ],
    )
    def test_an_existing_named_folder_comes_first(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        environment: dict[str, str],
        expected: list[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("data", "a", "b", "c"):
            (tmp_path / name).mkdir()
        found = lares_launcher.candidate_folders(arguments, environment)
        assert [os.path.relpath(place, tmp_path) for place in found[:-3]] == [f"{name}/program" for name in expected]
        assert found[-3:] == SHARED

    def test_another_user_s_data_directory_is_left_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: USER + 1)
        assert lares_launcher.candidate_folders(["--data-dir", str(tmp_path)], {})[0].startswith("/var/tmp/")

    def test_the_data_directory_beside_the_file_counts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "there" / "data").mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(tmp_path / "there" / "lares.pyz")])
        assert lares_launcher.data_dir([], {}) == str(tmp_path / "there" / "data")


def volume(**more: int) -> Callable[[str], Any]:
    """Return a statvfs of a file system with room, with these changes."""
    return lambda path: SimpleNamespace(**{"f_flag": 0, "f_bavail": 1 << 20, "f_frsize": 4096, **more})


class TestChoice:
    """The first folder that is writable, allows execution, and has room."""

    def choose(self, archive: Path, *bases: Path) -> Path:
        """Return the base to which it was unpacked."""
        return Path(lares_launcher.find_folder(str(archive), [str(base) for base in bases])).parent

    def test_the_first_that_will_do_is_taken(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        first, second, third = tmp_path / "file" / "a", tmp_path / "b", tmp_path / "c"
        assert self.choose(archive, first, second, third) == second
        assert not third.exists()

    @pytest.mark.parametrize(
        ("fault", "why"),
        [
            (volume(f_flag=os.ST_NOEXEC), "does not allow execution"),
            (volume(f_flag=os.ST_RDONLY), "cannot be written"),
            (volume(f_bavail=2560), "has 10 MB free"),
        ],
        ids=["noexec", "read-only", "full"],
    )
    def test_without_a_usable_folder_an_error_has_the_reason(
        self,
        archive: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        fault: Callable[[str], Any],
        why: str,
    ) -> None:
        monkeypatch.setattr(os, "statvfs", fault)
        with pytest.raises(lares_launcher.Unusable) as refused:
            self.choose(archive, tmp_path / "a", tmp_path / "b")
        assert f"{tmp_path}/a {why}; {tmp_path}/b {why}; name another one with --data-dir" in str(refused.value)

    def test_folders_that_others_can_write_are_not_trusted(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        (tmp_path / "link").symlink_to(tmp_path / "open")
        assert self.choose(archive, tmp_path / "open", tmp_path / "link", tmp_path / "c") == tmp_path / "c"
        assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700

    @pytest.mark.slow  # which keeps a quick run of an ordinary user from skipping seven
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
        with pytest.raises(lares_launcher.Unusable, match=re.escape(str(base))):
            self.choose(archive, base)
        assert sorted(tmp_path.rglob("*")) == before
        assert self.choose(archive, base, tmp_path / "c") == tmp_path / "c", "the next place will do"

    def test_a_place_that_others_could_open_and_lock_is_closed_to_them(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir(mode=0o755)
        assert self.choose(archive, tmp_path / "a").stat().st_mode & 0o777 == 0o700

    def test_a_link_of_ours_on_the_way_is_followed_once(self, archive: Path, tmp_path: Path) -> None:
        (tmp_path / "card").mkdir()
        (tmp_path / "data").symlink_to("card")
        assert self.choose(archive, tmp_path / "data" / "a") == tmp_path / "card" / "a"

    def test_a_card_that_fills_up_meanwhile_leaves_nothing_and_the_next_is_tried(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place = lares_unpack.place

        def full(path: str, data: bytes) -> None:
            if str(tmp_path / "a") in path and "two" in path:
                raise OSError(errno.ENOSPC, "No space left on device")
            place(path, data)

        monkeypatch.setattr(lares_unpack, "place", full)
        assert self.choose(archive, tmp_path / "a", tmp_path / "b") == tmp_path / "b"
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["lock"]

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
            "print(lares_launcher.is_damaged(folder, deep=True))"
        )
        command = [sys.executable, "-c", code, str(archive), str(tmp_path / "a")]
        starts = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(BOOT)})
            for _ in range(5)
        ]
        said = "".join(start.communicate(timeout=60)[0] for start in starts)
        assert sorted(said.split()) == ["False"] * 5 + ["unpacks"]


def harm_emptied(folder: Path) -> None:
    """States that a power cut can leave."""
    (folder / "site-packages" / "fast" / "two.so").write_bytes(b"")


def harm_lost(folder: Path) -> None:
    """Remove a whole folder."""
    shutil.rmtree(folder / "site-packages" / "appliance")


def harm_edited(folder: Path) -> None:
    """Change the content without its length."""
    (folder / "site-packages" / "config.toml").write_bytes(b"key = 2\n")


def harm_list(folder: Path) -> None:
    """Make the list unreadable."""
    (folder / "files.json").write_bytes(bytes(40))


def harm_list_of_another_sort(folder: Path) -> None:
    """Write a list that is JSON of another form."""
    (folder / "files.json").write_text("0")


def harm_no_list(folder: Path) -> None:
    """Remove the list."""
    (folder / "files.json").unlink()


def started(archive: Path, folder: Path) -> bool:
    """Return whether a start finds or makes the same folder."""
    return lares_launcher.find_folder(str(archive), [str(folder.parent)]) == str(folder)


class TestUnpacked:
    """The unpacked files are whole at every start."""

    def test_everything_is_there_and_nothing_of_others(self, folder: Path) -> None:
        assert content(folder) == expected()
        assert not lares_launcher.is_damaged(str(folder), deep=True)
        assert {path.stat().st_mtime for path in folder.rglob("*.py")} == {lares_launcher.DATE}

    def test_a_second_start_writes_nothing(self, archive: Path, folder: Path) -> None:
        before = {path: path.stat().st_ctime_ns for path in folder.parent.rglob("*")}
        assert lares_launcher.find_folder(str(archive), [str(folder.parent)]) == str(folder)
        assert {path: path.stat().st_ctime_ns for path in folder.parent.rglob("*")} == before

    @pytest.mark.parametrize(
        "harm", [harm_emptied, harm_lost, harm_edited, harm_list, harm_list_of_another_sort, harm_no_list]
    )
    def test_damage_heals_at_the_next_start(self, archive: Path, folder: Path, harm: Callable[[Path], None]) -> None:
        harm(folder)
        assert lares_launcher.is_damaged(str(folder))
        assert started(archive, folder)
        assert content(folder) == expected() and not lares_launcher.is_damaged(str(folder), deep=True)

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
        data = bytearray(archive.read_bytes())
        for found in re.finditer(b"\xfd7zXZ", archive.read_bytes()):
            data[found.start() + 30 : found.start() + 40] = bytes(10)
        (tmp_path / "bad.pyz").write_bytes(data)
        with pytest.raises(ValueError):
            lares_launcher.find_folder(str(tmp_path / "bad.pyz"), [str(tmp_path / "a")])
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["lock"]


class TestOthers:
    """Other versions are removed when a hub of this version starts, or when it is unpacked next to them."""

    def test_unused_versions_are_removed(self, archive: Path, folder: Path) -> None:
        base, elsewhere = folder.parent, folder.parent.parent / "elsewhere"
        (elsewhere / folder.name / "site-packages").mkdir(parents=True)
        idle, used, foreign = base / "old-cpython-311-x", base / "older-cpython-311-x", base / "photos"
        for each in (idle, used, foreign, base / "old-cpython-311-x.part"):
            (each / "site-packages").mkdir(parents=True)
        assert lares_launcher.lock_shared(str(used))
        (base / "link-cpython-311-x").symlink_to(foreign)
        lares_launcher.remove_old_versions([str(base), str(elsewhere), "/not/there"], str(folder))
        left = {folder.name, used.name, foreign.name, "link-cpython-311-x", "lock"}
        assert {path.name for path in base.iterdir()} == left
        assert [path.name for path in elsewhere.iterdir()] == ["lock"], "what a first command unpacked elsewhere"

    def test_the_new_version_has_the_room_of_the_old_one(self, archive: Path, tmp_path: Path) -> None:
        old = tmp_path / "a" / "old-cpython-311-x"
        old.mkdir(parents=True)
        old.parent.chmod(0o700)
        assert lares_launcher.find_folder(str(archive), [str(old.parent)]) and not old.exists()

    def test_a_folder_that_is_being_removed_is_not_taken(self, archive: Path, folder: Path) -> None:
        shutil.rmtree(folder)
        assert not lares_launcher.take(str(folder))


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
