"""Unread files, copies, and texts in another encoding are reported, and do not affect other files."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest

from appliance.lua.files.folder import Folder, find_stray
from tests.cli.commands import LOOPBACK, ended
from tests.fakes.app import open_app
from tests.fakes.lua import automation, write

UNREAD = ["kitchen/x.lua", "y.lua.txt", "Z.LUA", "w.Lua", "deep/er/v.lua"]
READ = ["a.lua", ".hidden.lua", "b.lua~", "notes.txt", ".x.lua.part"]


@pytest.mark.parametrize("is_deep", [False, True])
def test_unread_files_that_look_like_lua_are_reported(tmp_path: Path, is_deep: bool) -> None:
    for name in (*UNREAD, *READ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("return {}")
    contents = Folder(path=tmp_path, name="config/x", is_deep=is_deep).read()
    named = {fault.file.removeprefix("config/x/") for fault in contents.unread}
    assert named == {name for name in UNREAD if not is_deep or not name.endswith(".lua")}
    assert all(fault.message.startswith("this file is ignored") for fault in contents.unread)


def test_a_file_next_to_the_configuration_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"x.lua": "return {}", "default.toml": "", "scenes/a.lua": ""})
    assert [fault.file for fault in find_stray(tmp_path / "config")] == ["config/x.lua"]


def test_check_names_each_once(tmp_path: Path) -> None:
    write(tmp_path, {"default.toml": LOOPBACK, "x.lua": "", "automations/y.lua.txt": "", "scripts/Z.LUA": ""})
    write(tmp_path, {"adapters/kitchen/k.lua": ""})
    result = ended(tmp_path, "check")
    assert result.code == 0
    assert [line.split(": ")[1] for line in result.out.splitlines() if "file is ignored" in line] == [
        "config/automations/y.lua.txt",
        "config/scripts/Z.LUA",
        "config/adapters/kitchen/k.lua",
        "config/x.lua",
    ]


EVERY_HOUR = '{ type = "interval", every_secs = 3600 }'

ENCODINGS = {
    "utf-16": "is UTF-16, or not text; save it as UTF-8",
    "utf-16-le": "is UTF-16, or not text; save it as UTF-8",
    "latin-1": "is not UTF-8 text; save it as UTF-8",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_another_encoding_is_reported(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.lua").write_bytes("return 'ü'".encode(encoding))
    [fault] = Folder(path=tmp_path, name="config/x").read().faults
    assert fault.message == ENCODINGS[encoding]


LAMP = automation("lamp", EVERY_HOUR)
COPY = "config/automations/lamp (copy).lua"


async def test_a_copied_automation_does_not_stop_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, {"automations/lamp.lua": LAMP, "automations/lamp (copy).lua": LAMP})
    async with open_app(root=tmp_path, adapters={}) as app:
        assert [each["id"] for each in (await app.get("/automations")).json] == ["lamp"]
        assert app.hub.automations.catalog.get("lamp").source.name == "config/automations/lamp.lua"
        sentence = "config/automations/lamp.lua already has the id 'lamp' and takes precedence"
        assert f"not loaded: {COPY}" in caplog.text and sentence in caplog.text
        assert sentence in str((await app.get("/why?id=lamp")).json)
        assert sentence in str((await app.get("/diagnostics")).json)
        reloaded = (await app.post("/automations/reload")).json
        assert reloaded["status"] == "error" and [each["file"] for each in reloaded["errors"]] == [COPY]
        assert [each["id"] for each in (await app.get("/automations")).json] == ["lamp"]


def test_check_reports_every_copy(tmp_path: Path) -> None:
    copies = {f"automations/{name}.lua": LAMP for name in ("lamp", "lamp-2", "lamp (copy)")}
    write(tmp_path, {"default.toml": LOOPBACK, **copies})
    result = ended(tmp_path, "check")
    assert result.code == 78
    assert [line.split(":")[0] for line in result.out.splitlines()] == [COPY, "config/automations/lamp-2.lua"]


def test_a_term_of_another_hub_gets_the_right_one(tmp_path: Path) -> None:
    text = LAMP.replace("execute =", "action =")
    write(tmp_path, {"default.toml": LOOPBACK, "automations/lamp.lua": text})
    assert "action is not a field of an automation; did you mean execute?" in ended(tmp_path, "check").out


async def test_words_that_are_searched_in_unloaded_files_are_not_cached(tmp_path: Path) -> None:
    """Python caches up to 512 compiled patterns, which would be different for each word."""

    def count_patterns() -> int:
        return sum(isinstance(each, re.Pattern) for each in gc.get_objects())

    files = {"automations/a.lua": """return { id = 'dusk', name = "It's dusk" }"""}
    async with open_app(root=write(tmp_path, files)) as app:
        for word in ("a", "dusk", "It%27s%20dusk"):
            [sentence, *_] = (await app.get(f"/why?id={word}")).json["summary"]
            assert sentence.startswith("it is not loaded: config/automations/a.lua:1: "), word
        assert (await app.get("/why?id=It")).status == 404
        before = count_patterns()
        for number in range(30):
            assert (await app.get(f"/why?id=word{number}")).status == 404
        assert count_patterns() < before + 10
