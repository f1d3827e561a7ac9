"""Folders of Lua files: what is read, in which order, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

from appliance.errors import Fault
from appliance.lua.folder import MAX_FOLDER_BYTES, Contents, Folder
from appliance.lua.source import MAX_FILE_BYTES, Source


def contents(path: Path, *, is_deep: bool = False) -> Contents:
    """What the folder holds."""
    return Folder(path=path, name="config/scripts", is_deep=is_deep).read()


def put(root: Path, *names: str) -> None:
    """Write files that hold their own names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_files_come_by_name_and_only_a_deep_folder_is_read_with_those_inside_it(tmp_path: Path) -> None:
    put(tmp_path, "b.lua", "a.lua", "Z.lua", "inner/c.lua", "inner/more/d.lua", "x.txt", ".h.lua", ".git/e.lua")
    flat, deep = contents(tmp_path), contents(tmp_path, is_deep=True)
    assert [source.text.decode() for source in flat.sources] == ["Z.lua", "a.lua", "b.lua"]
    assert [source.text.decode() for source in deep.sources] == [
        *("Z.lua", "a.lua", "b.lua", "inner/c.lua", "inner/more/d.lua"),
    ]
    assert deep.sources[-1] == Source(name="config/scripts/inner/more/d.lua", text=b"inner/more/d.lua")
    assert flat.faults == deep.faults == () and not flat.is_missing


def test_a_folder_that_is_not_there_is_missing_and_an_empty_one_is_not(tmp_path: Path) -> None:
    assert contents(tmp_path) == Contents(sources=(), faults=())
    assert contents(tmp_path / "nowhere") == Contents(sources=(), faults=(), is_missing=True)


def test_what_is_no_folder_is_a_fault(tmp_path: Path) -> None:
    put(tmp_path, "file")
    fault = Fault("config/scripts", 0, "the folder cannot be read: Not a directory")
    assert contents(tmp_path / "file") == Contents(sources=(), faults=(fault,))


def test_folders_are_read_however_deep_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    deepest = tmp_path
    for _ in range(300):
        deepest = deepest / "d"
    put(tmp_path, str(deepest.relative_to(tmp_path) / "x.lua"))
    (tmp_path / "loop").symlink_to(tmp_path)
    assert len(contents(tmp_path, is_deep=True).sources) == 1


def test_a_name_that_is_no_text_is_escaped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.lua")).write_bytes(b"\xff")
    [fault] = contents(tmp_path).faults
    assert fault == Fault("config/scripts/caf\\xe9.lua", 1, "is not UTF-8 text; save it as UTF-8")


def test_all_files_together_are_bounded(tmp_path: Path) -> None:
    most = MAX_FOLDER_BYTES // MAX_FILE_BYTES
    for number in range(most + 2):
        (tmp_path / f"{number:02d}.lua").write_bytes(b"-" * MAX_FILE_BYTES)
    found = contents(tmp_path)
    assert len(found.sources) == most
    assert [fault.file for fault in found.faults] == [f"config/scripts/{most}.lua", f"config/scripts/{most + 1}.lua"]
    assert found.faults[0].message == "is left out: the files of config/scripts are too large together"


def test_a_script_that_leads_out_of_the_folder_is_named_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.lua").write_text("secret words")
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "a.lua").symlink_to(tmp_path / "outside.lua")
    (folder / "b.lua").write_text("return {}")
    (folder / "c.lua").symlink_to(folder / "b.lua")
    found = contents(folder, is_deep=True)
    assert [source.name for source in found.sources] == ["config/scripts/b.lua", "config/scripts/c.lua"]
    [fault] = found.faults
    assert str(fault) == "config/scripts/a.lua: leads out of the folder, where nothing can be required"
    assert len(contents(folder).sources) == 3, "scenes and automations may be links"
