"""The first start of a version. All files are on the card before they are used, and all imported modules are
already compiled."""

from __future__ import annotations

import marshal
import os
import py_compile
from pathlib import Path

import lares_launcher
import lares_unpack
import pytest

from firmware.bytecode import imported_by
from tests.firmware.archive import content, expected, make_archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Provide a small single file."""
    return make_archive(tmp_path / "lares.pyz")


@pytest.fixture
def folder(archive: Path, tmp_path: Path) -> Path:
    """Provide the unpacked folder."""
    return Path(lares_launcher.find_folder(str(archive), [str(tmp_path / "program")]))


def compiled(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.pyc"))


def test_imported_modules_are_compiled_without_docstrings(folder: Path) -> None:
    assert content(folder) == expected()
    assert [path.name.partition(".")[0] for path in compiled(folder)] == ["__init__", "part", "run"]
    for path in compiled(folder):
        source = path.parent.parent / f"{path.name.partition('.')[0]}.py"
        ours = path.read_bytes()
        path.unlink()
        assert py_compile.compile(str(source), doraise=True) == str(path), "the path that Python uses"
        assert ours[:16] == path.read_bytes()[:16]
        text = source.read_text().replace('"""Runs."""', "")
        assert marshal.loads(ours[16:]) == compile(text, "x", "exec", dont_inherit=True)  # noqa: S302 - it was made here


def test_bytecode_of_other_pythons_is_skipped(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lares_unpack, "MAGIC", "ffffffff")
    lares_unpack.unpack(str(archive), str(tmp_path / "x"))
    assert content(tmp_path / "x") == expected() and not compiled(tmp_path / "x")


def test_files_are_synced_before_the_folder_is_named(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    rename = os.rename
    folder = tmp_path / "program" / "x"
    folder.parent.mkdir()

    def sync() -> None:
        steps.append("sync")
        assert content(Path(f"{folder}.part")) == expected()

    def note_rename(old: str, new: str) -> None:
        steps.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "sync", sync)
    monkeypatch.setattr(os, "rename", note_rename)
    monkeypatch.setattr(os, "fsync", lambda _: steps.append("fsync"))
    lares_unpack.unpack(str(archive), str(folder))
    assert steps == ["sync", "rename", "fsync"] and lares_launcher.is_whole(str(folder), deep=True)


def test_imports_are_found_in_the_source() -> None:
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
