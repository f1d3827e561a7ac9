"""Undefined names are found without running the file. A name that may be correct is never reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.lua.files.folder import Folder
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.source import Source
from appliance.lua.text.undefined_names import find_undefined

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[2]
MANY = " ".join(f"local a{n} = 'constant {n}'" for n in range(150))


async def found(pool: WorkerPool, *texts: str) -> list[str]:
    """Return the warnings about files with these texts. The names of the files are `1.lua`, `2.lua`, and so on."""
    sources = [Source(name=f"{number}.lua", text=text.encode()) for number, text in enumerate(texts, 1)]
    return [str(fault) for fault in await find_undefined(sources, pool.describe)]


NIL = "has no value in any file, so it is nil"
PRINT = f"pritn {NIL}; did you mean print?"

WRONG: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("return { execute = function(ctx)\n  ctxx:sleep(1)\nend }", (f"2: ctxx {NIL}; did you mean ctx?",)),
    ("\npritn('x')", (f"2: {PRINT}",)),
    ("local function f() return function()\nreturn zap end end", (f"2: zap {NIL}",)),
    ("count = 1\nprint(cuont)", (f"2: cuont {NIL}; did you mean count?",)),
    ("\n\nlocal s = string.fomat('%d', 5)", ("3: string has no fomat; did you mean string.format?",)),
    ("if math.hug then end", ("1: math has no hug; did you mean math.huge?",)),
    ("return os.getenv('HOME')", ("1: os has no getenv",)),
    ("return { execute = function() os.execute('ls') end }", ("1: os has no execute",)),
    (
        "return { execute = function(ctx) ctx.sleep(5) pcall(ctx.sleep, ctx, 5) ctx.sleep(ctx, 5) end }",
        ("1: call it with a colon: ctx:sleep(...), not ctx.sleep(...)",),
    ),
    (
        "local command = {} return function(ctx) ctx.command('x:lamp', command) end",
        ("1: call it with a colon: ctx:command(...), not ctx.command(...)",),
    ),
    ("io.write('x')", (f"1: io {NIL}",)),
    ("nope() nope()\nnope()", (f"1: nope {NIL}", f"2: nope {NIL}")),
    ("local x = 1\n" * 150 + "pritn()", (f"151: {PRINT}",)),
    ("return function(ctx)" + "\n" * 300 + "pritn() end", (f"301: {PRINT}",)),
    (
        "return function(ctx)\n ctx:start_timr('x', 5) end",
        ("2: ctx has no start_timr; did you mean ctx:start_timer?",),
    ),
)


@pytest.mark.parametrize(("text", "sentences"), WRONG)
async def test_names_without_a_value_are_found(pool: WorkerPool, text: str, sentences: tuple[str, ...]) -> None:
    assert await found(pool, text) == [f"1.lua:{sentence}" for sentence in sentences]


RIGHT = (
    "return { id = 'x', execute = function(ctx) ctx:log('info', string.format('%s', os.time())) end }",
    "local lamp = 1 return function() return lamp end",
    "count = 0 return function() count = count + 1 end",
    "return function() return later end, function() later = 1 end",
    "_G['made'] = 1 print(made)",
    "for _, name in ipairs({'made'}) do rawset(_G, name, 1) end print(made)",
    "load('made = 1')() print(made)",
    "local _ENV = { print = print, x = 1 } print(x)",
    "return function(_ENV) return x end",
    "local e = _ENV e.made = 1 print(made)",
    "setmetatable(_G, { __index = function() return 1 end }) return anything",
    "string.trim = function(text) return text end return string.trim('x')",
    "local s = string s.trim = print return string.trim('x')",
    "local mine = { fomat = print } return (mine or string).fomat('x')",
    "return ('x'):anything()",
    "return function(ctx, e) function ctx:twice() end ctx:twice() ctx.again = print ctx:again() e.ctx:other() end",
    "return { fomat = string }.fomat",
    "local ctx = { sleep = print } ctx.sleep(5)",
    "return function(ctx) ctx.sleep = print ctx.sleep(5) end",
    "return function(ctx) function ctx.sleep(n) end ctx.sleep(5) end",
    f"{MANY} made = 1 print(made)",
    "return {",
    "",
)


@pytest.mark.parametrize("text", RIGHT)
async def test_possibly_correct_names_are_accepted(pool: WorkerPool, text: str) -> None:
    assert await found(pool, text) == []


async def test_a_global_of_another_file_is_known(pool: WorkerPool) -> None:
    assert await found(pool, "print(house)", "house = 1") == []
    assert await found(pool, "print(house)", "_G.house = 1", "print(nope)") == []


@pytest.mark.parametrize(
    ("text", "reads"), [("print(string.format('a'))", 0), ("local a = 1\nprint(a)", 0), ("print(house)", 1)]
)
async def test_other_files_are_read_only_if_a_name_is_undefined(pool: WorkerPool, text: str, reads: int) -> None:
    read: list[Source] = []

    def read_others() -> list[Source]:
        read.append(Source(name="2.lua", text=b"house = 1"))
        return read

    source = Source(name="1.lua", text=text.encode())
    assert await find_undefined([source], pool.describe, read_others=read_others) == []
    assert len(read) == reads


@pytest.mark.parametrize("folder", ["scenes", "scripts"])
async def test_the_bundled_files_use_only_existing_names(pool: WorkerPool, folder: str) -> None:
    sources = Folder(path=ROOT / "config" / folder, name=folder, is_deep=True).read().sources
    assert sources
    assert await find_undefined(sources, pool.describe) == []
