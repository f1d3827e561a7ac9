"""Scripts are read when they are required. Each execution reads a script once, from a single folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from appliance.errors import Invalid, ScriptFailed
from appliance.lua.running.worker_pool import WorkerPool
from tests.lua.bench import FILE, Notes, ended, file, open_pool, run, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "_".join(["long"] * 20)

FILES = {
    "lights.lua": "return {warm = 2700}",
    "a/b.lua": "local name, file = ... return name .. ' ' .. file",
    "bare.lua": "x = 1",
    "one.lua": "return require 'two'",
    "two.lua": "\nlocal c = require 'three' return c",
    "three.lua": "\n\nlocal b = require 'two' return b",
    "broken.lua": "local x = 1\nlocal y = = 2\n",
    "naps.lua": "return function(ctx)\n  ctx:sleep(-1)\nend",
    "failing.lua": "error('not yet')",
    "real.lua": "return 'real'",
    "large.lua": "--" + "x" * (1 << 20),
    "wide.lua": "return \0 1",
    "asks.lua": "return {name = the_ctx:get_device('x').name}",
    "shell.lua": "\ufeff#!/usr/bin/lua\nerror('here')",
    "described.lua": "return {id = 'evening'}",
    f"{LONG}.lua": "\nerror('here')",
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a folder that contains these scripts, and links."""
    folder = tmp_path_factory.mktemp("scripts")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    links = {"link.lua": "real.lua", "round.lua": "about.lua", "about.lua": "round.lua", "folder": "folder"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(scripts: Path) -> AsyncIterator[WorkerPool]:
    async with open_pool(scripts=scripts) as opened:
        yield opened


def answer(operation: str, arguments: list[float]) -> object:
    if operation == "sleep":
        raise Invalid(f"ctx:sleep takes 0 to 3600 seconds, not {arguments[0]:g}")
    return {"name": "Lamp"}


async def test_require_returns_the_scripts_value_and_passes_its_name_and_file(pool: WorkerPool) -> None:
    for body, printed in (
        ("print(require('lights').warm)", ["2700"]),
        ("print(require('a.b'))", ["a.b config/scripts/a/b.lua"]),
        ("print(require('bare'), require('bare'), x)", ["true\ttrue\t1"]),
        ("print(require 'link')", ["real"]),
        ("the_ctx = ctx print(require('asks').name)", ["Lamp"]),
        (
            "for _ = 1, 2 do print(pcall(require, 'failing')) end",
            ["false\tconfig/scripts/failing.lua:1: not yet"] * 2,
        ),
    ):
        assert (await run(pool, body, Notes(answer))).printed == printed, body


async def test_an_error_in_a_script_has_its_own_file_and_line(pool: WorkerPool) -> None:
    folder, back = "config/scripts", "is a link that leads back to itself"
    for body, sentence in (
        ("require 'one'", f"{folder}/three.lua:3: circular require: two → three → two"),
        ("require 'broken'", f"{folder}/broken.lua:2: unexpected symbol near '='"),
        ("require('naps')(ctx)", f"{folder}/naps.lua:2: ctx:sleep takes 0 to 3600 seconds, not -1"),
        ("require 'b.c'", f"{FILE}:2: module 'b.c' not found: there is no {folder}/b/c.lua"),
        ("require 'large'", f"{FILE}:2: module 'large': {folder}/large.lua is larger than 1 MiB"),
        ("require 'wide'", f"{FILE}:2: module 'wide': {folder}/wide.lua is UTF-16, or not text; save it as UTF-8"),
        ("require 'shell'", f"{folder}/shell.lua:2: here"),
        (f"require '{LONG}'", f"{folder}/{LONG}.lua:2: here"),
        ("require 'round'", f"{FILE}:2: module 'round': {folder}/round.lua {back}"),
        ("require 'folder.x'", f"{FILE}:2: module 'folder.x': {folder}/folder/x.lua {back}"),
    ):
        with pytest.raises(ScriptFailed) as failure:
            await run(pool, body, Notes(answer))
        assert str(failure.value).startswith(sentence), str(failure.value)


async def test_a_script_is_read_and_run_once_per_execution(scripts: Path, pool: WorkerPool) -> None:
    (scripts / "m.lua").write_text("print('run') return {}")
    assert (await run(pool, "print(require 'm' == require 'm')")).printed == ["run", "true"]
    (scripts / "m.lua").write_text("print('edited') return {}")
    assert (await run(pool, "require 'm'")).printed == ["edited"]


async def test_a_script_that_is_read_repeatedly_is_stored_once(pool: WorkerPool) -> None:
    body = "for _ = 1, 20 do pcall(require, 'failing') end error('x')"
    execution = start(pool, file(body), Notes(), name="scene:x")
    with pytest.raises(ScriptFailed):
        await ended(execution)
    assert [each.name for each in execution.lua._files] == [FILE, "config/scripts/failing.lua"]


async def test_require_fails_with_a_sentence_if_scripts_are_disabled() -> None:
    async with open_pool() as pool:
        with pytest.raises(ScriptFailed, match=r"test\.lua:2: require 'm': scripts are disabled"):
            await run(pool, "require 'm'")


async def test_require_works_while_a_file_is_described(pool: WorkerPool) -> None:
    assert await pool.describe(file("return require 'described'")) == {"id": "evening"}
    with pytest.raises(ScriptFailed, match=r"config/scripts/broken\.lua:2: "):
        await pool.describe(file("return require 'broken'"))
