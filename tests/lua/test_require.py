"""Scripts: read when they are required, once an execution, from one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.errors import Invalid, ScriptFailed
from tests.lua.bench import FILE, Notes, file, open_pool, run


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """An empty folder of scripts."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    return folder


def write(folder: Path, name: str, text: str) -> None:
    """Put a script there."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


async def test_a_script_is_what_it_returns(scripts: Path) -> None:
    write(scripts, "lights.lua", "return {warm = 2700}")
    async with open_pool(scripts=scripts) as pool:
        assert (await run(pool, "print(require('lights').warm)")).printed == ["2700"]


async def test_dots_are_folders_and_a_script_knows_its_name_and_file(scripts: Path) -> None:
    write(scripts, "a/b.lua", "local name, file = ... return name .. ' ' .. file")
    async with open_pool(scripts=scripts) as pool:
        assert (await run(pool, "print(require('a.b'))")).printed == ["a.b config/scripts/a/b.lua"]


async def test_a_script_is_run_once_an_execution_and_read_again_in_the_next(scripts: Path) -> None:
    write(scripts, "m.lua", "print('run') return {}")
    async with open_pool(scripts=scripts) as pool:
        assert (await run(pool, "print(require 'm' == require 'm')")).printed == ["run", "true"]
        write(scripts, "m.lua", "print('edited') return {}")
        assert (await run(pool, "require 'm'")).printed == ["edited"]


async def test_a_script_that_returns_nothing_is_true(scripts: Path) -> None:
    write(scripts, "m.lua", "x = 1")
    async with open_pool(scripts=scripts) as pool:
        assert (await run(pool, "print(require('m'), require('m'), x)")).printed == ["true\ttrue\t1"]


async def test_a_script_that_is_read_again_and_again_is_kept_once(scripts: Path) -> None:
    write(scripts, "m.lua", "error('again')")
    async with open_pool(scripts=scripts) as pool:
        execution = pool.start(file("for _ = 1, 20 do pcall(require, 'm') end error('x')"), Notes(), name="scene:x")
        with pytest.raises(ScriptFailed):
            await execution.wait()
        assert [each.name for each in execution._files] == [FILE, "config/scripts/m.lua"]


async def test_a_circle_is_an_error_that_prints_the_chain(scripts: Path) -> None:
    write(scripts, "a.lua", "return require 'b'")
    write(scripts, "b.lua", "\nlocal c = require 'c' return c")
    write(scripts, "c.lua", "\n\nlocal b = require 'b' return b")
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed, match="circular require: b → c → b") as failure:
            await run(pool, "require 'a'")
    assert (failure.value.file, failure.value.line) == ("config/scripts/c.lua", 3)


async def test_a_script_that_does_not_compile_fails_with_its_own_file_and_line(scripts: Path) -> None:
    write(scripts, "m.lua", "local x = 1\nlocal y = = 2\n")
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed) as failure:
            await run(pool, "require 'm'")
    assert str(failure.value).startswith("config/scripts/m.lua:2: unexpected symbol near '='")
    assert (failure.value.file, failure.value.line, failure.value.status) == ("config/scripts/m.lua", 2, "error")


async def test_an_error_in_a_script_names_its_own_file_and_line(scripts: Path) -> None:
    write(scripts, "m.lua", "return function(ctx)\n  ctx:sleep(-1)\nend")
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed, match=r"config/scripts/m\.lua:2: ctx:sleep"):
            await run(pool, "require('m')(ctx)", Notes(_refuse_sleep))


def _refuse_sleep(operation: str, arguments: list[float]) -> None:
    raise Invalid(f"ctx:sleep takes 0 to 3600 seconds, not {arguments[0]:g}")


async def test_a_missing_script_is_named(scripts: Path) -> None:
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed, match=r"module 'a\.b' not found: there is no config/scripts/a/b\.lua"):
            await run(pool, "require 'a.b'")


async def test_a_failed_script_can_be_required_again(scripts: Path) -> None:
    write(scripts, "m.lua", "error('not yet')")
    async with open_pool(scripts=scripts) as pool:
        notes = await run(pool, "print(pcall(require, 'm')) print(pcall(require, 'm'))")
    assert notes.printed == ["false\tconfig/scripts/m.lua:1: not yet"] * 2


async def test_links_within_the_folder_are_followed(scripts: Path) -> None:
    write(scripts, "real.lua", "return 'real'")
    (scripts / "link.lua").symlink_to(scripts / "real.lua")
    async with open_pool(scripts=scripts) as pool:
        assert (await run(pool, "print(require 'link')")).printed == ["real"]


async def test_a_script_that_is_too_large_is_refused(scripts: Path) -> None:
    write(scripts, "m.lua", "--" + "x" * (1 << 20))
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed, match="larger than 1 MiB"):
            await run(pool, "require 'm'")


async def test_require_fails_with_a_sentence_where_scripts_are_disabled() -> None:
    async with open_pool() as pool:
        with pytest.raises(ScriptFailed, match=r"test\.lua:2: require 'm': scripts are disabled"):
            await run(pool, "require 'm'")


async def test_a_script_may_call_ctx_at_its_top_when_it_is_given(scripts: Path) -> None:
    write(scripts, "m.lua", "return {name = the_ctx:get_device('x').name}")
    async with open_pool(scripts=scripts) as pool:
        notes = await run(pool, "the_ctx = ctx print(require('m').name)", Notes(lambda *_: {"name": "Lamp"}))
    assert notes.printed == ["Lamp"]


async def test_a_script_with_a_mark_and_a_first_line_for_the_shell(scripts: Path) -> None:
    write(scripts, "m.lua", "\ufeff#!/usr/bin/lua\nerror('here')")
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed, match=r"config/scripts/m\.lua:2: here"):
            await run(pool, "require 'm'")


async def test_require_works_while_a_file_is_described(scripts: Path) -> None:
    write(scripts, "m.lua", "return {id = 'evening'}")
    async with open_pool(scripts=scripts) as pool:
        assert await pool.describe(file("return require 'm'")) == {"id": "evening"}
        write(scripts, "m.lua", "return {")
        with pytest.raises(ScriptFailed, match=r"config/scripts/m\.lua:1: "):
            await pool.describe(file("return require 'm'"))


async def test_a_long_name_is_shown_in_full(scripts: Path) -> None:
    name = "_".join(["long"] * 20)
    write(scripts, f"{name}.lua", "\nerror('here')")
    async with open_pool(scripts=scripts) as pool:
        with pytest.raises(ScriptFailed) as failure:
            await run(pool, f"require '{name}'")
    assert str(failure.value) == f"config/scripts/{name}.lua:2: here"
    assert FILE not in str(failure.value)


async def test_links_in_a_circle_get_a_sentence(scripts: Path) -> None:
    (scripts / "a.lua").symlink_to("b.lua")
    (scripts / "b.lua").symlink_to("a.lua")
    (scripts / "folder").symlink_to("folder")
    async with open_pool(scripts=scripts) as pool:
        for name in ("a", "folder.x"):
            with pytest.raises(
                ScriptFailed, match=r"module '.*': config/scripts/.* is a link that leads back to itself"
            ):
                await run(pool, f"require '{name}'")
