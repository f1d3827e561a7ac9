"""A reload over HTTP loads either all files or no file, whatever the folder contains. Running executions continue."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from appliance.home import events
from tests.fakes.app import READER, TV, App, open_app
from tests.fakes.lua import automation, scene, write
from tests.fakes.patience import until

pytestmark = pytest.mark.slow

GOOD = {"scenes/one.lua": scene("one"), "scenes/two.lua": scene("two"), "scripts/deep/math.lua": "return { two = 2 }"}


@pytest.fixture
async def lua(tmp_path: Path) -> AsyncIterator[App]:
    """Run a hub with two scenes and a script."""
    async with open_app(root=write(tmp_path, GOOD)) as app:
        yield app


async def ids(app: App) -> list[str]:
    return [each["id"] for each in (await app.get("/scenes")).json]


async def reload(app: App, target: str = "scenes") -> Any:
    """Return the response of a reload without its duration."""
    answer = await app.post(f"/{target}/reload")
    assert answer.status == 200
    assert isinstance(answer.json.pop("duration_ms"), int)
    return answer.json


def failed(*faults: tuple[str, int, str], target: str = "scenes") -> Any:
    """Return the response of a reload with these errors."""
    errors = [{"file": file, "line": line, "message": message} for file, line, message in faults]
    return {"status": "error", "target": target, "loaded_count": 0, "errors": errors}


def done(count: int, target: str = "scenes") -> Any:
    """Return the response of a reload without errors."""
    return {"status": "ok", "target": target, "loaded_count": count, "errors": []}


async def test_a_reload_adds_new_files_and_removes_deleted_ones(lua: App, tmp_path: Path) -> None:
    assert await ids(lua) == ["one", "two"]
    write(tmp_path, {"scenes/three.lua": scene("three"), "scenes/one.lua": scene("uno", name="Uno")})
    (tmp_path / "config/scenes/two.lua").unlink()
    assert await ids(lua) == ["one", "two"]
    assert await reload(lua) == done(2)
    assert await ids(lua) == ["three", "uno"]
    assert (await lua.post("/scenes/one/execute")).status == 404
    assert (await lua.post("/scenes/uno/execute")).status == 200


async def test_a_reload_with_errors_lists_all_of_every_file_and_changes_nothing(lua: App, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "scenes/one.lua": scene("changed"),
            "scenes/a.lua": 'return {\n  id = "",\n  nmae = "A",\n  mode = { type = "single", max = 2 },\n}\n',
            "scenes/b.lua": "return {",
            "scenes/c.lua": 'local t = {\n  start = "22:00",\n  end = "06:00",\n}\nreturn t',
            "scenes/d.lua": "error('no')",
            "scenes/e.lua": "return 7",
            "scenes/f.lua": scene("two"),
        },
    )
    answer = await reload(lua)
    assert (answer["status"], answer["loaded_count"]) == ("error", 0)
    reported = [
        (each["file"].removeprefix("config/scenes/"), each["line"], each["message"]) for each in answer["errors"]
    ]
    assert reported[:4] == [
        ("a.lua", 1, "execute is missing"),
        ("a.lua", 1, "name is missing"),
        ("a.lua", 2, "id must have 1 to 256 characters, not 0"),
        ("a.lua", 3, "nmae is not a field; did you mean name?"),
    ]
    assert reported[4] == ("a.lua", 4, "mode single takes no max; only parallel and queued take one")
    assert [each[:2] for each in reported[5:]] == [
        ("b.lua", 1),
        ("c.lua", 3),
        ("d.lua", 1),
        ("e.lua", 1),
        ("two.lua", 2),
    ]
    assert '["end"]' in reported[6][2]
    assert (
        reported[-1][2]
        == "config/scenes/f.lua already has the id 'two' and takes precedence; give this file another id"
    )
    assert await ids(lua) == ["one", "two"]
    assert (await lua.post("/scenes/changed/execute")).status == 404


async def test_a_broken_or_deleted_file_runs_on_until_a_reload_accepts_it(lua: App, tmp_path: Path) -> None:
    for broken in ("return {", "", scene("one", "error('new')"), scene("else")):
        write(tmp_path, {"scenes/one.lua": broken})
        assert (await lua.post("/scenes/one/execute")).status == 200
    (tmp_path / "config/scenes/one.lua").unlink()
    assert (await lua.post("/scenes/one/execute")).status == 200
    assert await reload(lua) == done(1)
    assert (await lua.post("/scenes/one/execute")).status == 404


STRANGE: dict[str, tuple[Callable[[Path], object], tuple[int, str] | None]] = {
    "a folder": (lambda file: file.mkdir(), None),
    "a hidden file": (lambda file: file.with_name(".x.lua").write_text("return {"), None),
    "an editor's lock": (lambda file: file.with_name(".#x.lua").symlink_to("nobody@nowhere"), None),
    "another kind of file": (lambda file: file.with_name("x.lua~").write_text("return {"), None),
    "a pipe": (os.mkfifo, (0, "is not a file")),
    "a device": (lambda file: file.symlink_to("/dev/zero"), (0, "is not a file")),
    "a link to nothing": (
        lambda file: file.symlink_to("nothing.lua"),
        (0, "cannot be read: No such file or directory"),
    ),
    "a link to itself": (
        lambda file: file.symlink_to(file),
        (0, "cannot be read: Too many levels of symbolic links"),
    ),
    "a huge file": (lambda file: file.write_bytes(b"-" * (1 << 20) + b"-"), (0, "is larger than 1 MiB")),
    "Latin-1": (
        lambda file: file.write_bytes(b'return {\n  id = "K\xfcche" }'),
        (2, "is not UTF-8 text; save it as UTF-8"),
    ),
}


async def test_other_things_in_the_folder_affect_neither_the_start_nor_the_files(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    faults = []
    for number, (put, fault) in enumerate(STRANGE.values()):
        put(tmp_path / f"config/scenes/x{number}.lua")
        faults += [] if fault is None else [(f"config/scenes/x{number}.lua", *fault)]
    async with asyncio.timeout(20), open_app(root=tmp_path) as app:
        assert await ids(app) == ["one", "two"]
        left_out = (await app.get("/diagnostics")).json["scenes"]["left_out"]
        assert [tuple(each.values()) for each in left_out] == faults
        assert await reload(app) == failed(*faults)
        assert (await app.post("/scenes/one/execute")).status == 200


async def test_a_link_to_a_file_is_that_file(lua: App, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(scene("linked"))
    (tmp_path / "config/scenes/linked.lua").symlink_to(tmp_path / "elsewhere")
    assert await reload(lua) == done(3)
    (tmp_path / "config/scenes/again.lua").symlink_to("linked.lua")
    assert " already has the id 'linked' and takes " in (await reload(lua))["errors"][0]["message"]


async def test_a_missing_folder_removes_nothing_and_an_empty_one_removes_everything(lua: App, tmp_path: Path) -> None:
    folder = tmp_path / "config/scenes"
    folder.rename(tmp_path / "away")
    assert await reload(lua) == failed(("config/scenes", 0, "the folder is missing; its scenes remain loaded"))
    assert await ids(lua) == ["one", "two"]
    folder.mkdir()
    assert await reload(lua) == done(0)
    assert await ids(lua) == []


async def test_files_can_begin_with_a_byte_order_mark_or_a_shebang(lua: App, tmp_path: Path) -> None:
    shell = f"#!/usr/bin/lua\n{scene('four')}"
    write(tmp_path, {"scenes/three.lua": "\ufeff" + scene("three"), "scenes/four.lua": shell})
    assert await reload(lua) == done(4)


async def test_an_endless_file_is_one_error_and_the_others_are_checked(tmp_path: Path) -> None:
    files = {"scenes/other.lua": "return 7", "scenes/spin.lua": "while true do end"}
    async with open_app(root=write(tmp_path, {**GOOD, **files}), toml="[scripts]\nmax_cpu_secs = 1\n") as app:
        assert await ids(app) == ["one", "two"]
        answer = await reload(app)
        assert [each["file"] for each in answer["errors"]] == [f"config/{file}" for file in files]
        assert ["scripts.max_cpu_secs" in each["message"] for each in answer["errors"]] == [False, True]


async def test_a_hub_starts_without_broken_files_and_lists_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, {**GOOD, "scenes/broken.lua": "return {\n  id = 1,\n  name = 'B',\n  execute = print\n}\n"})
    async with open_app(root=tmp_path) as app:
        assert await ids(app) == ["one", "two"]
        reported = "config/scenes/broken.lua:2: id must be a string, not 1"
        assert events.SystemErrorReported(message=f"not loaded: {reported}") in app.events
        assert f"not loaded: {reported}" in caplog.text
        fault = {"file": "config/scenes/broken.lua", "line": 2, "message": "id must be a string, not 1"}
        assert (await app.get("/diagnostics")).json["scenes"]["left_out"] == [fault]
        write(tmp_path, {"scenes/broken.lua": scene("repaired")})
        assert await reload(app) == done(3)
        assert (await app.get("/diagnostics")).json["scenes"]["left_out"] == []


KINDS = {
    "scenes": ("scene.catalog_", "scenes/one.lua", 2),
    "automations": ("automation.catalog_", "automations/a.lua", 1),
    "scripts": ("scripts.", "scripts/deep/math.lua", 1),
}
"""For each kind: the prefix of its frame types, one of its files, and the number of files."""


async def test_reloads_are_on_the_event_stream(lua: App, tmp_path: Path) -> None:
    write(tmp_path, {"automations/a.lua": automation("a", "{ type = 'system_error' }")})
    async with lua.stream() as frames:
        for target in KINDS:
            assert (await reload(lua, target))["status"] == "ok"
        write(tmp_path, {file: "return {" for _, file, _ in KINDS.values()})
        for target in KINDS:
            assert (await reload(lua, target))["status"] == "error"
        received = await lua.received(frames)
    assert all(isinstance(frame.pop("duration_ms", 0), int) for frame in received)
    expected: list[Any] = []
    for target, (begin, _, count) in KINDS.items():
        expected += [{"type": f"{begin}reload_started", "target": target}]
        expected += [{"type": f"{begin}reloaded", "target": target, "loaded_count": count, "errors": []}]
    for target, (begin, file, _) in KINDS.items():
        fault = {"file": f"config/{file}", "line": 1, "message": "unexpected symbol near <eof>"}
        expected += [{"type": f"{begin}reload_started", "target": target}]
        expected += [{"type": f"{begin}reload_failed", "target": target, "loaded_count": 0, "errors": [fault]}]
    assert received == expected
    assert await ids(lua) == ["one", "two"] and (await lua.get("/automations/a")).status == 200


async def test_reloads_run_one_after_another(lua: App) -> None:
    async with lua.stream() as frames:
        answers = await asyncio.gather(*[lua.post("/scenes/reload") for _ in range(5)])
        assert [each.json["status"] for each in answers] == ["ok"] * 5
        reported = [frame["type"] for frame in await lua.received(frames)]
    assert reported == ["scene.catalog_reload_started", "scene.catalog_reloaded"] * 5


async def test_a_reload_under_a_hundred_executions_loses_no_execution(tmp_path: Path) -> None:
    wait = "repeat ctx:sleep(0.01) until ctx:get_room('open')"
    body = f'{wait}\n    ctx:command("{TV}", {{ capability = "power", action = "on" }})'
    mode = '{ type = "parallel", max = 100 }'
    write(tmp_path, {"scenes/many.lua": scene("many", body, mode=mode)})
    async with open_app(root=tmp_path) as app:
        running = [asyncio.ensure_future(app.post("/scenes/many/execute")) for _ in range(100)]
        await until(lambda: app.hub.scenes.figures()["running"] == 100)
        write(tmp_path, {"scenes/many.lua": scene("many", "error('the new one')", mode='"single"')})
        for _ in range(3):
            assert await reload(app) == done(1)
        dropped = await app.post("/scenes/many/execute")
        assert dropped.status == 423 and "is 1; already running: 100" in dropped.json["error"]
        write(tmp_path, {"scenes/many.lua": "return {"})
        assert (await reload(app))["status"] == "error"
        await app.post("/rooms", {"id": "open", "name": "Open"})
        answers = await asyncio.gather(*running)
        result = {"target": TV, "status": "ok", "message": None}
        assert [(each.status, each.json["results"]) for each in answers] == [(200, [result])] * 100
        assert (await app.post("/scenes/many/execute")).json["error"].endswith("the new one")


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_a_queued_execution_runs_the_loaded_text_and_never_a_deleted_file(
    tmp_path: Path, *, is_deleted: bool
) -> None:
    wait = "repeat ctx:sleep(0.01) until ctx:get_room('open')"
    write(tmp_path, {"scenes/q.lua": scene("q", wait, mode='"queued"')})
    async with open_app(root=tmp_path) as app:
        first = asyncio.ensure_future(app.post("/scenes/q/execute"))
        await until(lambda: app.hub.scenes.figures()["running"] == 1)
        assert (await app.post("/scenes/q/execute")).status == 202
        if is_deleted:
            (tmp_path / "config/scenes/q.lua").unlink()
        else:
            write(tmp_path, {"scenes/q.lua": scene("q", "error('the new text')", mode='"queued"')})
        assert await reload(app) == done(0 if is_deleted else 1)
        await app.post("/rooms", {"id": "open", "name": "Open"})
        assert (await first).status == 200
        result = "skipped" if is_deleted else "error"
        await until(lambda: app.hub.scenes.figures()["ended"][result] == 1)
        assert app.hub.scenes.figures()["ended"]["ok"] == 1


async def test_all_scripts_are_compiled_and_no_script_is_run(lua: App, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "scripts/loops.lua": "while true do end",
            "scripts/fails.lua": "error('no')",
            "scripts/deep/er/still.lua": "return 1",
            "scripts/notes.txt": "return {",
        },
    )
    assert await reload(lua, "scripts") == done(4, "scripts")
    write(tmp_path, {"scripts/deep/er/still.lua": "\nreturn {", "scripts/loops.lua": "local x <const> = 1; x = 2"})
    answer = await reload(lua, "scripts")
    assert answer["loaded_count"] == 0
    reported = [(each["file"], each["line"]) for each in answer["errors"]]
    assert reported == [("config/scripts/deep/er/still.lua", 2), ("config/scripts/loops.lua", 1)]


async def test_a_broken_script_fails_only_executions_that_require_it(lua: App, tmp_path: Path) -> None:
    uses = 'local two = require("deep.math").two\n    if two ~= 2 then error("two is " .. two) end'
    write(tmp_path, {"scenes/uses.lua": scene("uses", uses)})
    assert await reload(lua) == done(3)
    assert (await lua.post("/scenes/uses/execute")).status == 200
    write(tmp_path, {"scripts/deep/math.lua": "return { two = 3 }"})
    assert (await lua.post("/scenes/uses/execute")).json["error"].endswith("two is 3")
    write(tmp_path, {"scripts/deep/math.lua": "\n\nreturn {"})
    broken = await lua.post("/scenes/uses/execute")
    assert broken.status == 400 and "config/scripts/deep/math.lua:3:" in broken.json["error"]
    assert (await lua.post("/scenes/one/execute")).status == 200


async def test_disabled_folders_are_not_loaded(tmp_path: Path) -> None:
    uses = scene("uses", 'require("deep.math")')
    write(tmp_path, {**GOOD, "scenes/uses.lua": uses, "automations/one.lua": automation("one", "{}")})
    for target in KINDS:
        async with open_app(root=tmp_path, toml=f"[{target}]\nenabled = false\n") as app:
            refused = (f"config/{target}", 0, f"{target}.enabled is false in the configuration")
            assert await reload(app, target) == failed(refused, target=target)
            if target == "scripts":
                answer = await app.post("/scenes/uses/execute")
                assert answer.status == 400 and "scripts are disabled" in answer.json["error"]
                continue
            assert (await app.get(f"/{target}")).json == []
            for answer in (await app.get(f"/{target}/one"), await app.post(f"/{target}/one/execute")):
                assert answer.status in (404, 405)


ALL = "[scenes]\nwatch = true\n[automations]\nwatch = true\n[scripts]\nwatch = true\ndirectory = 'lib'\n"


def frames_of(app: App) -> list[str]:
    """Return the catalog's events so far, by class."""
    return [type(event).__name__ for event in app.events if type(event).__name__.startswith("Catalog")]


async def test_the_watched_folders_are_shown_as_configured(app: App, tmp_path: Path) -> None:
    answer = await app.get("/diagnostics/reload_watch")
    targets = ("scenes", "automations", "scripts")
    watches = [{"target": each, "enabled": False, "directory": f"config/{each}"} for each in targets]
    assert (answer.status, answer.json) == (200, {"status": "ok", "watches": watches})
    assert (await app.get("/diagnostics/reload_watch", token=READER.text)).status == 403
    async with open_app(root=tmp_path, toml=ALL) as watching:
        reported = (await watching.get("/diagnostics/reload_watch")).json["watches"]
        assert [(each["enabled"], each["directory"]) for each in reported] == [
            (True, "config/scenes"),
            (True, "config/automations"),
            (True, "lib"),
        ]


async def test_a_saved_scene_is_loaded_and_a_broken_one_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"scenes/one.lua": scene("one")})
    async with open_app(root=tmp_path, toml="[scenes]\nwatch = true\n") as app, app.stream() as frames:
        write(tmp_path, {"scenes/two.lua": scene("two")})
        reported = await frames.until("scene.catalog_reloaded", within=10)
        assert reported[-1]["loaded_count"] == 2
        assert [each["id"] for each in (await app.get("/scenes")).json] == ["one", "two"]
        write(tmp_path, {"scenes/two.lua": "return {"})
        reported = await frames.until("scene.catalog_reload_failed", within=10)
        assert [each["file"] for each in reported[-1]["errors"]] == ["config/scenes/two.lua"]
        assert (await app.post("/scenes/two/execute")).status == 200


async def test_a_folder_that_is_not_enabled_is_not_watched(tmp_path: Path) -> None:
    write(tmp_path, {"scenes/one.lua": scene("one")})
    async with open_app(root=tmp_path, toml="[scenes]\nenabled = false\nwatch = true\n") as app:
        write(tmp_path, {"scenes/two.lua": scene("two")})
        await asyncio.sleep(1)
        assert frames_of(app) == []
