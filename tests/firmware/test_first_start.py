"""The first start of a version: a hub waits for no card and has several processes compile what it imports."""

from __future__ import annotations

import json
import marshal
import os
import py_compile
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lares_launcher
import lares_seal
import lares_settle
import lares_unpack
import pytest

from firmware.parts import imported_by
from tests.firmware.archive import BOOT, content, expected, make_archive
from tests.firmware.test_launcher import started

PART = "site-packages/appliance/part.py"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A single file in small."""
    return make_archive(tmp_path / "lares.pyz")


@pytest.fixture
def folder(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a hub has unpacked it, for whom nothing was synced."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "sync", lambda: pytest.fail("the card was waited for"))
        patch.setattr(os, "fsync", lambda _: pytest.fail("the card was waited for"))
        patch.setattr(os, "sched_getaffinity", lambda _: range(3))
        found = lares_launcher.find_folder(str(archive), [str(tmp_path / "program")], is_for_hub=True)
    lares_unpack.wait_for_compilers()
    yield Path(found)
    os.close(lares_launcher.held.pop())


def compiled(folder: Path) -> list[Path]:
    """What lies compiled there."""
    return sorted(folder.rglob("*.pyc"))


def test_what_a_hub_imports_is_there_as_python_would_compile_it(folder: Path) -> None:
    assert {name: data for name, data in content(folder).items() if not name.endswith(".pyc")} == expected()
    assert [path.name.partition(".")[0] for path in compiled(folder)] == ["__init__", "part", "run"]
    for path in compiled(folder):
        source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
        ours = path.read_bytes()
        path.unlink()
        assert py_compile.compile(str(source), doraise=True) == str(path), "where Python looks for it"
        theirs = path.read_bytes()
        assert ours[:16] == theirs[:16]
        assert marshal.loads(ours[16:]) == marshal.loads(theirs[16:])  # noqa: S302 - both were made here


def test_a_start_that_optimizes_leaves_later_ones_their_docstrings(archive: Path, tmp_path: Path) -> None:
    script = (
        "import lares_unpack, sys, zipfile\n"
        "lares_unpack.compile_modules(zipfile.ZipFile(sys.argv[1]), sys.argv[2], sys.argv[3:])"
    )
    (tmp_path / "site-packages" / "appliance" / "cli").mkdir(parents=True)
    command = [sys.executable, "-OO", "-c", script, str(archive), str(tmp_path), "appliance/cli/run.py"]
    subprocess.run(command, env={"PYTHONPATH": str(BOOT)}, cwd=tmp_path, check=True)
    [made] = compiled(tmp_path)
    assert "opt-" not in made.name and b"Runs." in made.read_bytes()


def test_until_it_is_settled_it_holds_in_this_boot_alone(
    archive: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / PART).stat().st_ino
    (folder.parent.parent / "kept").hardlink_to(folder / PART)  # so that no new file is given its number
    assert started(archive, folder) and (folder / PART).stat().st_ino == before, "commands run from it"
    os.close(lares_launcher.held.pop())
    with monkeypatch.context() as patch:
        for module in (lares_launcher, lares_seal, lares_unpack):
            patch.setattr(module, "this_boot", lambda: "after the power was cut")
        assert started(archive, folder) and (folder / PART).stat().st_ino != before, "it was unpacked anew"
    assert content(folder) == expected()


def test_once_settled_it_and_what_was_compiled_outlive_a_boot(
    archive: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lares_settle.seal_compiled(str(folder))
    seal = json.loads((folder / lares_seal.SEAL).read_text())
    assert "boot" not in seal and {str(path.relative_to(folder)) for path in compiled(folder)} <= seal["files"].keys()
    before = {path: path.stat().st_ino for path in (folder / PART, *compiled(folder))}
    (folder / lares_seal.BOOTED).write_text("another boot")
    assert started(archive, folder) and {path: path.stat().st_ino for path in before} == before


def test_a_card_that_reads_differently_is_not_settled_and_the_next_start_waits_for_what_it_unpacks(
    archive: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    date = (folder / PART).stat().st_mtime
    (folder / PART).write_bytes(b"y" + (folder / PART).read_bytes()[1:])
    os.utime(folder / PART, (date, date))
    with pytest.raises(OSError, match="reads differently"):
        lares_settle.seal_compiled(str(folder))
    assert "boot" in json.loads((folder / lares_seal.SEAL).read_text())
    os.close(lares_launcher.held.pop())
    assert lares_launcher.find_folder(str(archive), [str(folder.parent)], is_for_hub=True) == str(folder)
    assert "boot" not in json.loads((folder / lares_seal.SEAL).read_text()) and content(folder) == expected()


@pytest.mark.parametrize("fault", [MemoryError, KeyError, KeyboardInterrupt])
def test_what_a_compiler_leaves_undone_is_left_to_python(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    monkeypatch.setattr(lares_unpack, "place", fails(fault, unless=os.getpid(), otherwise=lares_unpack.place))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2))
    lares_unpack.unpack(str(archive), str(tmp_path / "x"), is_for_hub=True)
    lares_unpack.wait_for_compilers()
    assert content(tmp_path / "x") == expected() and not compiled(tmp_path / "x")


def fails(fault: type[BaseException], *, unless: int, otherwise: Callable[..., None]) -> Callable[..., None]:
    """Raise the fault in any process but one."""

    def do(*arguments: Any) -> None:
        if os.getpid() != unless:
            raise fault
        otherwise(*arguments)

    return do


def test_compilers_end_with_what_cannot_be_unpacked(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise ValueError("damaged")

    monkeypatch.setattr(lares_unpack, "fill", fill)
    monkeypatch.setattr(lares_unpack, "compile_modules", lambda *_: time.sleep(60))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))
    with pytest.raises(ValueError, match="damaged"):
        lares_unpack.unpack(str(archive), str(tmp_path / "x"), is_for_hub=True)
    assert not lares_unpack.compiling and {path.name for path in tmp_path.iterdir()} == {"lares.pyz", "lock"}


def test_who_ignores_the_end_of_processes_can_start_a_hub(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2))
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        lares_unpack.unpack(str(archive), str(tmp_path / "x"), is_for_hub=True)
    finally:
        lares_unpack.wait_for_compilers()
        signal.signal(signal.SIGCHLD, before)
    assert compiled(tmp_path / "x")


def test_what_a_module_imports_is_found_in_its_text() -> None:
    pure = {
        "a/__init__.py": "from . import b\n",
        "a/b.py": "import c.d\nif TYPE_CHECKING:\n    import e\nelse:\n    import f\n",
        "a/late.py": "",
        "c/__init__.py": "",
        "c/d.py": "try:\n    from .g import x\nexcept E:\n    from ..a import late\ndef h():\n    import i\n",
        "c/g.py": "class K:\n    import k\n",
        **{f"{name}.py": "" for name in "efik"},
    }
    found = imported_by({name: text.encode() for name, text in pure.items()}, ["a"])
    assert pure.keys() - found == {"e.py", "i.py"} and len(found) == len(set(found)) == len(pure) - 2
    assert found[:7] == ["a/__init__.py", "a/b.py", "c/__init__.py", "c/d.py", "c/g.py", "k.py", "a/late.py"], (
        "in order"
    )
