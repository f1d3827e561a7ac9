"""The first start of a version: a hub waits for no card, and finds compiled what it imports."""

from __future__ import annotations

import json
import marshal
import os
import py_compile
from collections.abc import Iterator
from pathlib import Path

import lares_launcher
import lares_seal
import lares_settle
import lares_unpack
import pytest

from firmware.parts import imported_by
from tests.firmware.archive import content, expected, make_archive
from tests.firmware.test_launcher import started

PART = "site-packages/appliance/part.py"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return a single file in small."""
    return make_archive(tmp_path / "lares.pyz")


@pytest.fixture
def folder(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """If a hub has unpacked it, for whom nothing was synced."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "sync", lambda: pytest.fail("the card was waited for"))
        patch.setattr(os, "fsync", lambda _: pytest.fail("the card was waited for"))
        found = lares_launcher.find_folder(str(archive), [str(tmp_path / "program")], is_for_hub=True)
    yield Path(found)
    os.close(lares_launcher.held.pop())


def compiled(folder: Path) -> list[Path]:
    """Return what lies compiled there."""
    return sorted(folder.rglob("*.pyc"))


def test_what_a_hub_imports_is_there_as_python_would_compile_it(folder: Path) -> None:
    assert content(folder) == expected()
    assert [path.name.partition(".")[0] for path in compiled(folder)] == ["__init__", "part", "run"]
    for path in compiled(folder):
        source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
        ours = path.read_bytes()
        path.unlink()
        assert py_compile.compile(str(source), doraise=True) == str(path), "where Python looks for it"
        theirs = path.read_bytes()
        assert ours[:16] == theirs[:16]
        assert marshal.loads(ours[16:]) == marshal.loads(theirs[16:])  # noqa: S302 - both were made here


def test_bytecode_of_another_python_is_left_in_the_file(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lares_unpack, "MAGIC", "ffffffff")
    lares_unpack.unpack(str(archive), str(tmp_path / "x"))
    assert content(tmp_path / "x") == expected() and not compiled(tmp_path / "x")


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
