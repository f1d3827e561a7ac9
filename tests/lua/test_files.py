"""Lua files: folders, texts, catalogs, and reloads. Names that no file defines are also tested."""

from __future__ import annotations

import gc
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from appliance.automations.definition import AutomationDefinition, automation_parser
from appliance.errors import Fault, Invalid, ScriptFailed
from appliance.home.bus import Bus
from appliance.home.events import CatalogReloaded, CatalogReloadFailed
from appliance.lua.files.catalog import Catalog
from appliance.lua.files.folder import MAX_FOLDER_BYTES, Contents, Folder
from appliance.lua.files.reload import Reloader
from appliance.lua.files.scripts import Scripts
from appliance.lua.text.source import MAX_FILE_BYTES, FieldLines, Source, load
from appliance.lua.text.tokens import LuaToken
from appliance.tables.checks import Function
from appliance.tables.fields import Table
from tests.automations.homes import BERLIN, NOW
from tests.fakes.automations import automation, write
from tests.fakes.clock import VirtualClock
from tests.fakes.rows import each_row
from tests.lua.bench import open_pool


def contents(path: Path, *, is_deep: bool = False) -> Contents:
    return Folder(path=path, name="config/scripts", is_deep=is_deep).read()


def put(root: Path, *names: str) -> None:
    """Write files that contain their own names."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def test_files_are_sorted_by_name_and_subfolders_read_only_if_allowed(tmp_path: Path) -> None:
    put(tmp_path, "b.lua", "a.lua", "Z.lua", "inner/c.lua", "inner/more/d.lua", "x.txt", ".h.lua", ".git/e.lua")
    flat, deep = contents(tmp_path), contents(tmp_path, is_deep=True)
    assert [source.text.decode() for source in flat.sources] == ["Z.lua", "a.lua", "b.lua"]
    assert [source.text.decode() for source in deep.sources] == [
        *("Z.lua", "a.lua", "b.lua", "inner/c.lua", "inner/more/d.lua"),
    ]
    assert deep.sources[-1] == Source(name="config/scripts/inner/more/d.lua", text=b"inner/more/d.lua")
    assert flat.faults == deep.faults == () and not flat.is_missing


def test_a_path_that_is_not_a_folder_is_an_error(tmp_path: Path) -> None:
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


def test_an_undecodable_name_is_escaped(tmp_path: Path) -> None:
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
    assert found.faults[0].message == "is ignored, because the files in config/scripts have more than 16 MiB in total"


def test_a_link_out_of_the_folder_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "outside.lua").write_text("secret words")
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "a.lua").symlink_to(tmp_path / "outside.lua")
    (folder / "b.lua").write_text("return {}")
    (folder / "c.lua").symlink_to(folder / "b.lua")
    found = contents(folder, is_deep=True)
    assert [source.name for source in found.sources] == ["config/scripts/b.lua", "config/scripts/c.lua"]
    [fault] = found.faults
    assert str(fault) == "config/scripts/a.lua: is a link to a file outside the folder, so `require` cannot load it"
    assert len(contents(folder).sources) == 3, "scenes and automations may be links"


TEXT = """#!/usr/bin/lua
-- id = "comment"
local id = 5
return {
  id = "evening",
  name = "Evening",
  ["end"] = "23:00",
  trigger = {
    type = "device_state", attribute = "power",
    equals = "on",
  },
  conditions = { { type = "time_window", ['end'] = "7:00" } },
  execute = function(ctx) if ctx.name == 5 then end end,
}
"""


def source(text: str) -> Source:
    """Return a file with this text."""
    return Source(name="config/scenes/x.lua", text=text.encode())


@each_row(
    ("path", "line"),
    [
        (("name",), 6),
        (("end",), 7),
        (("trigger",), 8),
        (("trigger", "type"), 9),
        (("trigger", "attribute"), 9),
        (("trigger", "equals"), 10),
        (("conditions", "end"), 12),
        (("execute",), 13),
        (("nothing",), 0),
        (("trigger", "nothing"), 0),
    ],
)
def test_the_line_of_a_field(path: tuple[str, ...], line: int) -> None:
    assert FieldLines(source(TEXT)).find(*path) == line


def test_a_byte_order_mark_does_not_hide_the_line_of_the_table() -> None:
    assert FieldLines(source("\ufeffreturn {}\n")).of_return == 1


def test_the_fields_of_a_text_leave_the_memory_with_their_finder() -> None:
    gc.collect()  # other tests keep an exception and its frames in a reference cycle
    assert FieldLines(source(TEXT)).find("id") > 0
    lists = (each for each in gc.get_objects() if isinstance(each, list))
    assert not [each for each in lists if each and isinstance(each[0], LuaToken)]


async def test_line_numbers_begin_at_the_files_first_line() -> None:
    async with open_pool() as pool:
        description = await pool.describe(source(TEXT))
    assert description["execute"] == Function(13)


def test_the_size_of_a_file_is_limited(tmp_path: Path) -> None:
    file = tmp_path / "x.lua"
    file.write_bytes(b"x" * MAX_FILE_BYTES)
    assert load(file, "config/scenes/x.lua") == Source(name="config/scenes/x.lua", text=b"x" * MAX_FILE_BYTES)
    file.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(Invalid, match="larger than 1 MiB"):
        load(file, "config/scenes/x.lua")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "y.lua", "y")


async def test_at_a_start_a_file_has_an_error_only_if_it_fails_twice(tmp_path: Path) -> None:
    every_minute = {"type": "interval", "every_secs": 60}
    write(tmp_path, [automation(every_minute), automation(every_minute, "b")])
    tries: list[str] = []

    async def describe(source: Source) -> Any:
        tries.append(source.name)
        if source.name.endswith("1.lua") or tries.count(source.name) == 1:
            raise ScriptFailed(
                Fault(source.name, 1, "used 5 s of processor time without waiting and was stopped"), "timeout"
            )
        return {**json.loads(source.text), "execute": Function(1)}

    folder = Folder(path=tmp_path, name="config/automations")
    parse = automation_parser(BERLIN, VirtualClock(NOW), 8)
    catalog: Catalog[AutomationDefinition] = Catalog("automation", folder, describe, parse)
    await catalog.load()
    assert [each.id for each in catalog.list_definitions()] == ["a"]
    assert len(catalog.rejected) == 1 and len(tries) == 4
    assert (await catalog.reload())[1] == list(catalog.rejected) and len(tries) == 6


async def test_a_reload_that_raises_is_reported_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    outcomes: list[tuple[int, list[Fault]] | Exception] = [KeyError("lost"), (3, [])]

    async def work() -> tuple[int, list[Fault]]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async with Reloader("scenes", work, Bus(), VirtualClock()) as reloader:
        failed = await reloader.reload()
        assert isinstance(failed, CatalogReloadFailed) and "KeyError" in str(failed.faults[0])
        assert "reload of scenes: KeyError: 'lost'" in caplog.text
        assert isinstance(await reloader.reload(), CatalogReloaded)


async def test_a_reload_reads_again_only_files_whose_text_or_dependencies_changed(tmp_path: Path) -> None:
    every_minute = {"type": "interval", "every_secs": 60}
    write(tmp_path, [automation(every_minute, id_) for id_ in ("a", "b", "c")])
    read: list[str] = []
    around = ["lights.lua"]

    async def describe(source: Source) -> Any:
        read.append(source.name.removeprefix("config/automations/"))
        if source.text == b"{":
            raise ScriptFailed(Fault(source.name, 1, "is not Lua"))
        return {**json.loads(source.text), "execute": Function(1)}

    async def required() -> object:
        return list(around)

    folder = Folder(path=tmp_path, name="config/automations")
    parse = automation_parser(BERLIN, VirtualClock(NOW), 8)
    catalog: Catalog[AutomationDefinition] = Catalog("automation", folder, describe, parse, dependencies=required)
    await catalog.load()
    names = [*read]
    changed = tmp_path / names[1]
    for text, more, loaded, count in (
        (None, None, [], 3),
        ("{", None, [names[1]], 0),
        (None, None, [names[1]], 0),
        (None, "more.lua", names, 0),
        (json.dumps(automation(every_minute, "d")), None, [names[1]], 3),
        (None, None, [], 3),
        (None, "others.lua", names, 3),
    ):
        read.clear()
        around += [] if more is None else [more]
        if text is not None:
            changed.write_text(text)
        assert (await catalog.reload())[0] == count
        assert sorted(read) == loaded
    assert [each.id for each in catalog.list_definitions()] == ["a", "c", "d"]


async def test_a_file_that_is_run_again_is_a_new_object_only_if_its_definition_differs(tmp_path: Path) -> None:
    write(tmp_path, [automation({"type": "interval", "every_secs": 60}, id_) for id_ in ("a", "b")])
    constant: list[object] = [1]

    async def describe(source: Source) -> Any:
        stated = json.loads(source.text)
        where = {"type": "variable", "name": "v", "equals": constant[-1] if stated["id"] == "b" else 0}
        return {**stated, "conditions": [where], "execute": Function(1)}

    async def dependencies() -> object:
        return len(constant)

    folder = Folder(path=tmp_path, name="config/automations")
    parse = automation_parser(BERLIN, VirtualClock(NOW), 8)
    catalog: Catalog[AutomationDefinition] = Catalog("automation", folder, describe, parse, dependencies=dependencies)
    await catalog.load()
    for value, is_same in ((1, True), (2, False), (2, True), (True, False), (1, False)):
        before = catalog.list_files()
        constant.append(value)
        assert (await catalog.reload())[0] == 2
        assert [one is other for one, other in zip(before, catalog.list_files(), strict=True)] == [True, is_same]


async def test_definitions_are_checked_on_one_thread(tmp_path: Path) -> None:
    """Several threads would delay the event loop together."""
    write(tmp_path, [automation({"type": "interval", "every_secs": 60}, f"a{number}") for number in range(20)])
    threads: list[str] = []

    async def describe(source: Source) -> Any:
        return {**json.loads(source.text), "execute": Function(1)}

    def parse(table: Table) -> AutomationDefinition | None:
        threads.append(threading.current_thread().name)
        return read(table)

    read = automation_parser(BERLIN, VirtualClock(NOW), 8)
    catalog = Catalog("automation", Folder(path=tmp_path, name="config/automations"), describe, parse)
    await catalog.load()
    assert len(threads) == 20 and len({*threads}) == 1 and threading.current_thread().name not in threads


async def test_only_changed_scripts_are_compiled_again(tmp_path: Path) -> None:
    put(tmp_path, "a.lua", "b.lua", "c.lua")
    compiled: list[str] = []

    async def compile_(source: Source) -> None:
        compiled.append(source.name)
        if source.text == b"wrong":
            raise ScriptFailed(Fault(source.name, 1, "no"))

    scripts = Scripts(compile_, Folder(path=tmp_path, name="s"))
    for changed, text, expected in (
        ("", "", (3, [], ["s/a.lua", "s/b.lua", "s/c.lua"])),
        ("b.lua", "other", (3, [], ["s/b.lua"])),
        ("a.lua", "wrong", (0, [Fault("s/a.lua", 1, "no")], ["s/a.lua"])),
        ("", "", (0, [Fault("s/a.lua", 1, "no")], ["s/a.lua"])),
        ("a.lua", "a.lua", (3, [], ["s/a.lua"])),
    ):
        compiled.clear()
        if changed:
            (tmp_path / changed).write_text(text)
        assert (*await scripts.check(), compiled) == expected
