"""The home's files over HTTP: list, read, check, save, versions, and delete, with the limits of a save."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.cli.archive import MAX_MEMBER_DEPTH
from appliance.errors import Fault, Invalid
from appliance.files.file_checks import MAX_FAULTS
from appliance.files.file_locations import MAX_PATH_DEPTH, FileLocation
from appliance.home.events import CatalogReloaded
from appliance.lua.files.folder import MAX_FOLDER_BYTES
from appliance.lua.text.source import MAX_FILE_BYTES
from appliance.store.disk import Disk
from tests.fakes.app import MASTER, App, Received, open_app
from tests.fakes.moody_disk import MoodyDisk

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCENE = 'return { id = "%s", name = "Scene", execute = function(ctx) %s end }\n'
AUTOMATION = """return {
  id = "%s", name = "A", trigger = { type = "interval", every_secs = 3600 },
  execute = function(ctx) end,
}
"""
CONFIG = """# the home
[auth]
master_key = "a-very-secret-master-key"  # keep

[adapters.mqtt]
enabled = false
host = "broker"
password = 'pass"word'
# password = "old-secret"  # until May
# topic = "old-topic"

[adapters.push]
type = "notify"
enabled = false
service = "ntfy"
topic = "hidden-topic"
"""
EVENING = "config/scenes/evening.lua"
MAIN = "config/test.toml"


@asynccontextmanager
async def open_home(root: Path, toml: str = "", disk: Disk | None = None) -> AsyncIterator[App]:
    """Run a hub with a scene, an automation, a script, and a configuration."""
    for name, text in {
        "scenes/evening.lua": SCENE % ("evening", ""),
        "automations/hourly.lua": AUTOMATION % "hourly",
        "scripts/tools.lua": "return {}\n",
        "scripts/deep/more.lua": "return {}\n",
        "test.toml": CONFIG,
    }.items():
        file = root / "config" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (root / "config" / "adapters").mkdir()
    async with open_app(root=root, toml=toml, adapters={}, data_dir=root / "data", disk=disk) as app:
        yield app


@pytest_asyncio.fixture(loop_scope="module")
async def home(tmp_path: Path) -> AsyncIterator[App]:
    (tmp_path / "data").mkdir()
    async with open_home(tmp_path) as app:
        yield app


def root_of(app: App) -> Path:
    """Return the folder that contains `config/`."""
    return app.hub._config.root


async def put(app: App, path: str, text: str, version: str | None = None) -> Received:
    body = {"text": text} | ({} if version is None else {"version": version})
    return await app.ask("PUT", f"/files/{path}", json=body)


async def test_the_list_names_every_file_with_kind_and_version(home: App) -> None:
    (root_of(home) / "config/scenes/link.lua").symlink_to(root_of(home) / "config/test.toml")
    (root_of(home) / "config/scenes/.hidden.lua").write_text("return 1")
    (root_of(home) / "config/scenes" / os.fsdecode(b"caf\xe9.lua")).write_text("return 1")
    files = (await home.get("/files")).json["files"]
    assert {each["path"]: each["kind"] for each in files} == {
        "config/automations/hourly.lua": "automation",
        EVENING: "scene",
        "config/scripts/deep/more.lua": "script",
        "config/scripts/tools.lua": "script",
        MAIN: "config",
    }
    assert [each["path"] for each in files] == sorted(each["path"] for each in files)
    for each in files:
        assert (await home.get(f"/files/{each['path']}")).json["version"] == each["version"]


async def test_a_path_may_be_percent_encoded_as_one_segment(home: App) -> None:
    assert (await home.get("/files/config%2Fscenes%2Fevening.lua")).json["text"] == SCENE % ("evening", "")


async def test_a_save_is_checked_written_and_active_at_once(home: App) -> None:
    before = (await home.get(f"/files/{EVENING}")).json
    text = SCENE % ("evening", 'ctx:log("info", "changed")')
    saved = await put(home, EVENING, text, before["version"])
    assert saved.status == 200 and saved.json["path"] == EVENING and saved.json["warnings"] == []
    assert saved.json["version"] != before["version"]
    assert (root_of(home) / EVENING).read_text() == text
    assert home.hub.scenes.catalog.get("evening").source.text == text.encode()
    assert isinstance(home.events[-1], CatalogReloaded)
    versions = (await home.get(f"/files/{EVENING}/versions")).json["versions"]
    assert [each["n"] for each in versions] == [1] and versions[0]["size"] == len(before["text"])
    assert (await home.get(f"/files/{EVENING}/versions/1")).json == {"path": EVENING, "n": 1, "text": before["text"]}


FAULTY = {
    "no Lua": (EVENING, "return {", 1),
    "no scene": (EVENING, 'return { id = "evening" }', 1),
    "a wrong field": (EVENING, 'return {\n  id = "evening", name = "x", execute = function() end,\n  nmae = 1 }', 3),
    "an id of another file": ("config/scenes/other.lua", SCENE % ("evening", ""), 1),
    "an automation without a trigger": ("config/automations/new.lua", 'return {\n id = "new", name = "x" }', 1),
    "a script": ("config/scripts/tools.lua", "local = 1", 1),
    "a kind": ("config/adapters/heater.lua", "return 7", 1),
    "a kind that cannot be replaced": ("config/adapters/mqtt.lua", "return {}", 0),
    "no TOML": (MAIN, "[api\n", 1),
    "an unknown key": (MAIN, "[api]\nbnd_address = 1\n", 2),
    "a section of no kind": (MAIN, "[adapters.what]\n", 1),
}


async def test_a_text_with_errors_is_not_written(home: App, subtests: pytest.Subtests) -> None:
    for what, (path, text, line) in FAULTY.items():
        with subtests.test(what):
            file = root_of(home) / path
            before = file.read_bytes() if file.exists() else None
            refused = await put(home, path, text)
            assert (refused.status, refused.json["code"]) == (400, "invalid_file"), refused.json
            assert refused.json["errors"][0]["line"] == line, refused.json
            assert (file.read_bytes() if file.exists() else None) == before
            checked = (await home.post("/files/check", {"path": path, "text": text})).json
            assert checked == {"errors": refused.json["errors"], "warnings": []}


async def test_a_check_warns_as_lares_check_does_and_writes_nothing(home: App) -> None:
    text = SCENE % ("new", '\n ctx:command("nobody:x", { capability = "power", action = "on" })\n undefined_name()')
    checked = (await home.post("/files/check", {"path": "config/scenes/new.lua", "text": text})).json
    assert checked["errors"] == []
    assert [each["line"] for each in checked["warnings"]] == [2, 3]
    assert "no section [adapters.nobody]" in checked["warnings"][0]["message"]
    assert not (root_of(home) / "config/scenes/new.lua").exists()
    assert len((await put(home, "config/scenes/new.lua", text)).json["warnings"]) == 2


async def test_saving_over_another_change_is_409(home: App) -> None:
    version = (await home.get(f"/files/{EVENING}")).json["version"]
    (root_of(home) / EVENING).write_text("-- over SSH\n" + SCENE % ("evening", ""))
    refused = await put(home, EVENING, SCENE % ("evening", ""), version)
    assert (refused.status, refused.json["code"]) == (409, "file_changed")
    (root_of(home) / EVENING).unlink()
    assert (await put(home, EVENING, SCENE % ("evening", ""), version)).status == 409
    assert (await put(home, EVENING, SCENE % ("evening", ""), "")).status == 200
    assert (await put(home, EVENING, SCENE % ("evening", ""), "")).status == 409


async def test_versions_stay_the_same_after_a_power_cut(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "data").mkdir(parents=True)
    async with open_home(before) as app:
        version = (await app.get(f"/files/{EVENING}")).json["version"]
        shutil.copytree(before / "data", after / "data")
    async with open_home(after) as app:
        assert (await put(app, EVENING, SCENE % ("evening", "local x"), version)).status == 200


async def test_two_simultaneous_saves_of_the_same_version(home: App) -> None:
    version = (await home.get(f"/files/{EVENING}")).json["version"]
    texts = [SCENE % ("evening", f"local x = {n}") for n in range(2)]
    answers = await asyncio.gather(*(put(home, EVENING, text, version) for text in texts))
    assert sorted(each.status for each in answers) == [200, 409]


async def test_links_are_neither_read_nor_replaced(home: App) -> None:
    outside = root_of(home) / "outside.lua"
    outside.write_text("secret")
    (root_of(home) / "config/scenes/link.lua").symlink_to(outside)
    (root_of(home) / "config/scripts/inner").symlink_to(root_of(home))
    for path in (
        "config/scenes/link.lua",
        "config/scripts/inner/outside.lua",
        "config/scripts/inner/new.lua",
        "config/scripts/inner/new/new.lua",
    ):
        assert (await home.get(f"/files/{path}")).status == 404
        assert (await put(home, path, "return {}")).status == 400
    assert outside.read_text() == "secret"
    assert not [*root_of(home).glob("new*")]


async def test_secrets_of_the_configuration_are_hidden_and_kept(home: App) -> None:
    shown = (await home.get(f"/files/{MAIN}")).json["text"]
    secrets = ('"a-very-secret-master-key"', "'pass\"word'", '"old-secret"', '"old-topic"', '"hidden-topic"')
    expected = CONFIG
    for secret in secrets:
        expected = expected.replace(secret, '"***"')
    assert shown == expected
    saved = await put(home, MAIN, shown.replace('host = "broker"', 'host = "other"'))
    assert saved.status == 200, saved.json
    assert (root_of(home) / MAIN).read_text() == CONFIG.replace('host = "broker"', 'host = "other"')
    kept = (await home.get(f"/files/{MAIN}/versions/1")).json["text"]
    assert "secret-master" not in kept and "pass" not in kept.replace("password", "") and "hidden" not in kept
    for file in (root_of(home) / "data" / "versions").iterdir():
        assert b"a-very-secret" not in file.read_bytes()


async def test_a_check_lists_only_the_first_of_many_unknown_secrets(home: App) -> None:
    text = "".join(f'[adapters.a{n}]\ntype = "mqtt"\nhost = "a"\npassword = "***"\n' for n in range(MAX_FAULTS + 9))
    checked = await home.post("/files/check", {"path": MAIN, "text": text})
    errors = checked.json["errors"]
    assert len(errors) == MAX_FAULTS + 1
    assert errors[-1]["message"] == "has 9 further faults; correct the listed ones first"


@pytest.mark.parametrize("kind", ["scripts", "automations"])
async def test_a_save_that_makes_a_folder_too_large_is_refused(home: App, kind: str) -> None:
    folder = root_of(home) / "config" / kind
    for number in range(MAX_FOLDER_BYTES // MAX_FILE_BYTES):
        (folder / f"large{number}.lua").write_bytes(b"-" * (MAX_FILE_BYTES - 10))
    path, text = f"config/{kind}/new.lua", AUTOMATION % "new" if kind == "automations" else "return {}"
    refused = await put(home, path, text + "-- long" * 100)
    assert (refused.status, refused.json["code"]) == (400, "invalid_file")
    [fault] = refused.json["errors"]
    sentence = f"the files in config/{kind} would have more than 16 MiB in total; delete some of them first"
    assert fault == {"line": 0, "message": sentence}
    assert not (root_of(home) / path).exists()
    (folder / "large0.lua").unlink()
    assert (await put(home, path, text)).status == 200


async def test_an_error_in_another_file_does_not_block_a_save(home: App) -> None:
    (root_of(home) / "config/scenes/broken.lua").write_text("return {")
    (root_of(home) / "config/automations/hourly.lua").write_text("broken")
    text = SCENE % ("evening", "local x = 1")
    assert (await put(home, EVENING, text)).status == 200
    assert home.hub.scenes.catalog.get("evening").source.text == text.encode()
    assert (
        home.hub.scenes.catalog.rejected == (Fault("config/scenes/broken.lua", 1, "unexpected symbol near <eof>"),)
        or home.hub.scenes.catalog.rejected
    )
    assert (await put(home, "config/automations/new.lua", AUTOMATION % "new")).status == 200
    ids = [each["id"] for each in (await home.get("/automations")).json]
    assert ids == ["hourly", "new"], "the broken file keeps the automation that it had"


async def test_a_deleted_file_keeps_its_versions(home: App) -> None:
    assert (await home.delete(f"/files/{EVENING}")).status == 204
    assert (await home.get("/scenes")).json == []
    assert (await home.get(f"/files/{EVENING}")).json["code"] == "file_not_found"
    assert (await home.delete(f"/files/{EVENING}")).status == 404
    [version] = (await home.get(f"/files/{EVENING}/versions")).json["versions"]
    text = (await home.get(f"/files/{EVENING}/versions/{version['n']}")).json["text"]
    assert (await put(home, EVENING, text)).status == 200
    assert (await home.delete(f"/files/{MAIN}")).status == 405


@pytest.mark.slow
async def test_the_last_twenty_versions_are_kept_and_numbered_consecutively(home: App) -> None:
    for number in range(25):
        assert (await put(home, "config/scripts/tools.lua", f"return {{ {number} }}\n")).status == 200
    versions = (await home.get("/files/config/scripts/tools.lua/versions")).json["versions"]
    assert [each["n"] for each in versions] == [*range(25, 5, -1)]
    for n in ("5", "26", "x", "0", "99999999999"):
        missing = await home.get(f"/files/config/scripts/tools.lua/versions/{n}")
        assert (missing.status, missing.json["code"]) == (404, "version_not_found")
    assert (await home.get("/files/config/scripts/none.lua/versions")).json["code"] == "file_not_found"


async def test_a_save_keeps_the_mode_and_makes_subfolders_for_scripts(home: App) -> None:
    (root_of(home) / EVENING).chmod(0o640)
    (root_of(home) / "config/scenes").chmod(0o755)
    assert (await put(home, EVENING, SCENE % ("evening", "local x"))).status == 200
    assert (root_of(home) / EVENING).stat().st_mode & 0o777 == 0o640
    assert (await put(home, "config/scripts/a/b/c.lua", "return 1\n")).status == 200
    assert (root_of(home) / "config/scripts/a/b/c.lua").read_text() == "return 1\n"
    assert (await put(home, "config/scenes/new.lua", SCENE % ("new", ""))).status == 200
    assert (root_of(home) / "config/scenes/new.lua").stat().st_mode & 0o777 == 0o640, "the folder has mode 0755"
    assert not [*root_of(home).rglob("*.part")]


async def test_a_path_is_at_most_as_deep_as_a_restore_accepts(home: App) -> None:
    assert MAX_PATH_DEPTH <= MAX_MEMBER_DEPTH
    for folders, status in ((MAX_PATH_DEPTH - 3, 200), (MAX_PATH_DEPTH - 2, 400)):
        assert (await put(home, f"config/scripts/{'d/' * folders}x.lua", "return 1\n")).status == status


async def test_a_text_may_have_256_kib(home: App) -> None:
    path, limit = "config/scripts/large.lua", 256 << 10
    text = "-- " + "x" * (limit - 4) + "\n"
    assert (await put(home, path, text)).status == 200
    refused = await put(home, path, text + " ")
    assert (refused.status, refused.json["code"]) == (413, "body_too_large")
    assert (await home.post("/files/check", {"path": path, "text": text + " "})).status == 413


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_a_file_that_the_hub_cannot_read_names_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.lua").touch(0o600)
    location = FileLocation(kind="scene", path="config/scenes/a.lua", file=tmp_path / "a.lua", folder=tmp_path)
    os.seteuid(12345)
    try:
        with pytest.raises(Invalid, match=r"Permission denied; allow the hub to use its files, as .Edit on the page"):
            location.read()
    finally:
        os.seteuid(0)


async def test_a_full_or_read_only_card_gives_503_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    disk = MoodyDisk(tmp_path / "data")
    async with open_home(tmp_path, disk=disk) as app:
        for mood, words in (
            (errno.EROFS, "Read-only file system; nothing was changed"),
            (errno.EACCES, 'Permission denied; nothing was changed; allow the hub to use its files, as "Edit on'),
            (errno.ENOSPC, "No space left on device; nothing was changed"),
        ):
            disk.mood = mood
            refused = await put(app, EVENING, SCENE % ("evening", "local y"))
            assert (refused.status, refused.json["code"]) == (503, "store_unavailable")
            assert words in refused.json["error"]
            assert ("Edit on the page" in refused.json["error"]) == (mood == errno.EACCES)
            assert (await app.delete(f"/files/{EVENING}")).status == 503
            disk.mood = None
        assert (tmp_path / EVENING).read_text() == SCENE % ("evening", "")
        assert (await put(app, EVENING, SCENE % ("evening", "local y"))).status == 200


async def test_the_error_names_the_folder_that_cannot_be_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    async with open_home(tmp_path) as app:
        moved = data.rename(tmp_path / "moved")
        refused = await put(app, EVENING, SCENE % ("evening", "local y"))
        assert refused.status == 503
        assert refused.json["error"] == (
            f"the previous text of {EVENING} cannot be stored in {data}/versions: "
            f"the data directory {data} was moved, replaced, or unmounted; nothing was changed"
        )
        assert (await app.delete(f"/files/{EVENING}")).json["error"] == refused.json["error"]
        moved.rename(data)
        (data / "versions").write_text("in the way")
        refused = await put(app, EVENING, SCENE % ("evening", "local y"))
        assert f"cannot be stored in {data}/versions: Not a directory" in refused.json["error"]
        (data / "versions").unlink()
        assert (await put(app, EVENING, SCENE % ("evening", "local y"))).status == 200


async def test_without_files_enabled_the_routes_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    async with open_home(tmp_path, "[files]\nenabled = false\n") as app:
        for method, path in (("GET", "/files"), ("PUT", f"/files/{EVENING}"), ("POST", "/files/check")):
            headers = {"Authorization": f"Bearer {MASTER}"}
            async with app.session.request(method, app.url + path, json={"text": ""}, headers=headers) as answer:
                assert (answer.status, (await answer.json())["code"]) == (404, "path_not_found")
