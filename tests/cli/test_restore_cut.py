"""A restore is atomic. If a restore is killed at any change of a file, the result is either the old home or the
new home, never a mixture."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import orjson
import pytest

from appliance.cli.archive import history_of, opened
from appliance.cli.hub_client import read_state
from appliance.store.disk import Disk
from appliance.store.document_files import DocumentFiles
from appliance.store.lock import DirectoryLock
from appliance.store.restore import HISTORY_STAGE, PENDING, finish_interrupted, read_document, stage_document
from tests.cli.commands import LOOPBACK, ROOT, Command, environment
from tests.cli.homes import home
from tests.fakes.process import configure, running

OLD_TEXT, NEW_TEXT = LOOPBACK + "# old\n", LOOPBACK + "# new\n"
MONTH = Path("data", "history", "2026-11.jsonl")
OLD, NEW = {"room/old": {"name": "Old"}}, {"room/new": {"name": "New"}}

MORTAL = """
import os, sys
from pathlib import Path
from appliance.cli.main import main
import appliance.cli.restore, ctypes, encodings.ascii

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.link", "os.chmod", "os.chown", "shutil.rmtree", "ctypes.dlsym")
home, archive, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
left, fault = count, sys.argv[4:]

def die(event, arguments):
    global left
    is_change = event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & 3)
    if fault and event == "os.rename" and "config.before-restore" in str(arguments[1]):
        raise {"int": KeyboardInterrupt, "io": OSError(5, "broken", "card")}[fault[0]]
    if is_change:
        left -= 1
        if left < 0:
            os._exit(137)

sys.addaudithook(die)
os.chdir(home)
os._exit(main(["restore", archive]))
"""
"""A program that restores the archive. The program exits after `count` file changes. If a fault is given, an error
occurs when the program moves the old configuration away."""


def cut(folder: Path, archive: Path, count: int, *fault: str) -> int:
    """Run `MORTAL` with this count, and optionally with the fault `int` or `io`. Return the exit code."""
    command = [sys.executable, "-c", MORTAL, str(folder), str(archive), str(count), *fault]
    done = subprocess.run(command, env=environment(PYTHONPATH=str(ROOT)), capture_output=True, text=True, timeout=60)
    print(done.stderr)
    return done.returncode


def present(folder: Path) -> tuple[dict[str, object], str]:
    """Return the document and the text of the configuration that a hub would read at its next start."""
    lock = DirectoryLock(folder / "data")
    finish_interrupted(folder / "data", "later")
    lock.release()
    values = {key: orjson.loads(value) for key, value in read_document(folder / "data").values.items()}
    return values, (folder / "config" / "default.toml").read_text()


@pytest.fixture
def archive(tmp_path: Path, command: Command) -> Path:
    """Create a backup of the new home."""
    (tmp_path / "new").mkdir()
    command(with_month(home(tmp_path / "new", NEW, NEW_TEXT), NEW_TEXT), "backup", str(tmp_path / "archive"))
    return tmp_path / "archive"


def with_month(folder: Path, text: str) -> Path:
    """Add a month of history with this text, and return the home."""
    (folder / MONTH).parent.mkdir()
    (folder / MONTH).write_text(text)
    return folder


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Create the home that is replaced."""
    (tmp_path / "old").mkdir()
    return with_month(home(tmp_path / "old", OLD, OLD_TEXT), OLD_TEXT)


@pytest.mark.parametrize("has_old_marker", [False, True])
@pytest.mark.slow
@pytest.mark.release
def test_a_killed_restore_leaves_one_home_or_the_other(
    tmp_path: Path, old: Path, archive: Path, has_old_marker: bool
) -> None:
    if has_old_marker:
        (old / "config" / ".restored").write_text("of a restore that the start of a hub has finished")
    seen, code, count = set(), 137, 0
    while code == 137:
        box = tmp_path / f"box{count}"
        shutil.copytree(old, box)
        code = cut(box, archive, count)
        values, text = present(box)
        assert (values, text) in ((OLD, OLD_TEXT), (NEW, NEW_TEXT)), (count, values, text)
        assert (box / MONTH).read_text() == text, count
        assert not (box / "data" / PENDING).exists() and not [*(box / "data").glob("*.restore-part")]
        assert cut(box, archive, 10**6) == 0 and present(box) == (NEW, NEW_TEXT), f"restored again after {count}"
        for left in box.glob("config*-cut/*"):
            assert left.name == "default.toml" and left.read_text() == OLD_TEXT, f"not an old file: {left}"
        assert not (box / "config.restore-part").exists()
        kept = [each.read_text() for each in box.glob("config*/default.toml")]
        assert OLD_TEXT in kept, f"a restore after {count} deleted the old files"
        seen.add(text)
        count += 1
    assert code == 0 and seen == {OLD_TEXT, NEW_TEXT} and count > 15


@pytest.mark.parametrize(("fault", "code"), [("int", 130), ("io", os.EX_IOERR)])
@pytest.mark.slow
def test_an_error_after_the_exchange_leaves_one_home(old: Path, archive: Path, fault: str, code: int) -> None:
    (old / "config" / ".restored").write_text("of a restore that the start of a hub has finished")
    DirectoryLock(old / "data").release_after_stop(None)
    assert cut(old, archive, 10**6, fault) == code
    values, text = present(old)
    assert (values, text) in ((OLD, OLD_TEXT), (NEW, NEW_TEXT)) and (old / MONTH).read_text() == text
    assert cut(old, archive, 3) == 137
    lock = DirectoryLock(old / "data")
    assert not lock.was_cut_off, "it was no hub"
    lock.release()
    assert any(OLD_TEXT in each.read_text() for each in old.glob("config*/default.toml")), "the old one is kept"


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def list_configs(folder: Path) -> list[Path]:
    return [*folder.glob("config*/default.toml")]


@pytest.mark.slow
@pytest.mark.parametrize("left", ["new files", "old files", "nothing", "new files that cannot be removed"])
async def test_a_start_removes_or_keeps_the_folder_of_an_interrupted_restore(tmp_path: Path, left: str) -> None:
    if "cannot" in left and os.geteuid() != 0:
        pytest.skip("needs root, to mount a file system")
    configure(tmp_path)
    stage = tmp_path / "config.restore-part"
    if left != "nothing":
        stage.mkdir()
        (stage / "default.toml").write_text(OLD_TEXT)
    if "new" in left:
        (stage / ".restored").write_text("token")
    if "cannot" in left:
        (stage / "busy").mkdir()
    with mounted(stage / "busy") if "cannot" in left else nullcontext():
        async with running(tmp_path) as hub:
            log = hub.log.read_text()
    assert stage.exists() == ("cannot" in left)
    assert (stage / ".restored").exists() == ("cannot" in left), "the next start must not keep the new files"
    found = {str(file.parent): file.read_text() for file in list_configs(tmp_path) if "-cut/" in str(file)}
    assert [*found.values()] == ([OLD_TEXT] if left == "old files" else []) and all(each in log for each in found)
    assert ("config.restore-part, which cannot be removed" in log) == ("cannot" in left)


@pytest.mark.slow
def test_a_home_with_a_path_outside_utf8_is_restored_and_diagnosed(tmp_path: Path, old: Path, archive: Path) -> None:
    box = old.rename(tmp_path / os.fsdecode(b"\xff% \xc3\xa4"))
    assert cut(box, archive, 10**6) == 0 and present(box) == (NEW, NEW_TEXT)
    assert DocumentFiles(Disk(box / "data"), "now").figures()["folder"] == f"{tmp_path}/\\xff% ä/data"


@pytest.mark.slow
def test_a_cut_after_the_exchange_is_finished_by_the_next_start(tmp_path: Path, old: Path, archive: Path) -> None:
    marker = old / "config" / ".restored"
    stage_document(old / "data", NEW, marker, "token", own=[])
    assert present(old) == (OLD, OLD_TEXT), "nothing counts without the marker"
    stage_document(old / "data", NEW, marker, "token", own=[])
    marker.write_text("another")
    assert present(old) == (OLD, OLD_TEXT)
    stage_document(old / "data", NEW, marker, "token", own=[])
    marker.write_text("token")
    assert present(old)[0] == NEW


@pytest.mark.slow
def test_after_a_cut_every_command_uses_the_new_home(
    tmp_path: Path, old: Path, archive: Path, command: Command
) -> None:
    stage_document(old / "data", NEW, old / "config" / ".restored", "token", own=[])
    (old / "config" / ".restored").write_text("token")
    shutil.copytree((old / MONTH).parent, old / "data" / HISTORY_STAGE)
    (old / "data" / HISTORY_STAGE / MONTH.name).write_text(NEW_TEXT)
    command(old, "backup", str(tmp_path / "meanwhile"))
    with opened(tmp_path / "meanwhile") as found:
        assert found.values == NEW
        assert [stream.read() for _, stream in history_of(found)] == [NEW_TEXT.encode()]
    assert read_state(old / "data") == ({"room/new": b'{"name":"New"}'}, False)
    assert "the next start of the hub completes it" in command(old, "doctor")[1]
    assert (old / "data" / PENDING).exists(), "who only reads changes nothing"
    command(old, "key", "create", "--label", "x", "--role", "read")
    kinds = {key.partition("/")[0] for key in present(old)[0]}
    assert kinds == {"key", "room"}, "the start does not undo what was made before it"


def test_the_staged_document_is_placed_without_decoding_it(tmp_path: Path) -> None:
    """Decoded values need 20 times the memory of their bytes. The blank shows that the bytes are unchanged."""
    (tmp_path / "marker").write_text("token")
    stage_document(tmp_path, {"device/lamp": {"a": 1}, "device/no": None}, tmp_path / "marker", "token", own=())
    pending = tmp_path / PENDING
    pending.write_bytes(pending.read_bytes().replace(b'{"a":1}', b'{"a": 1}'))
    finish_interrupted(tmp_path, "later")
    assert read_document(tmp_path).values.keys() == {"device/lamp"}
    assert any(b'{"a": 1}' in each.read_bytes() for each in tmp_path.iterdir())
