"""Lua cannot access the host. A hostile script ends within its limits and with a clear error."""

from __future__ import annotations

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.errors import NotFound, ScriptFailed
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua_worker.ctx_methods import CTX_METHODS
from tests.attacks.scripts import BACKSTOP, CPU, HOSTILE, HOSTILE_FILES
from tests.lua.bench import FILE, ROOMY, TRIVIAL, Notes, ended, file, open_pool, run, scene, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

WALK = """
local seen, found = {}, {}
local function walk(value, path, depth)
  local kind = type(value)
  if kind == 'userdata' or kind == 'thread' then found[#found + 1] = path .. ' is a ' .. kind end
  if kind ~= 'table' and kind ~= 'function' or seen[value] then return end
  seen[value] = path
  if kind == 'function' then return end
  local meta = getmetatable(value)
  if type(meta) == 'table' then walk(meta, path .. '<meta>', depth) end
  for key, each in next, value do
    walk(key, path .. '<key>', depth)
    walk(each, path .. '.' .. tostring(key), depth)
  end
end
for _, name in ipairs(event.methods) do local _ = ctx[name] end
walk(_G, '_G') walk(ctx, 'ctx') walk(event, 'event') walk(getmetatable(''), 'string')
walk(ctx:get_device('x'), 'device')
local functions = {}
for value, path in next, seen do if type(value) == 'function' then functions[#functions + 1] = path end end
table.sort(functions)
print(table.concat(found, ' '))
print(table.concat(functions, ' '))
"""

GLOBALS = (
    "assert collectgarbage error getmetatable ipairs load next pairs pcall print rawequal rawget rawlen "
    "rawset require select setmetatable tonumber tostring type xpcall"
)

LIBRARIES = {
    "coroutine": "close create isyieldable resume running status wrap yield",
    "debug": "traceback",
    "math": "abs acos asin atan ceil cos deg exp floor fmod log max min modf rad random randomseed sin sqrt tan "
    "tointeger type ult",
    "os": "clock date difftime time",
    "string": "byte char find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper",
    "table": "concat insert move pack remove sort unpack",
    "utf8": "char codepoint codes len offset",
}
STRING_METAMETHODS = "__add __div __idiv __mod __mul __pow __sub __unm"


async def test_everything_reachable_is_listed(pool: WorkerPool) -> None:
    event = {"a": {"b": [1]}, "methods": [*CTX_METHODS]}
    notes = await run(pool, WALK, Notes(lambda *_: {"id": "x", "a": [{"b": []}]}), event=event)
    found, functions = notes.printed
    assert found == ""
    known = {f"_G.{name}" for name in GLOBALS.split()}
    known |= {f"_G.{library}.{name}" for library, names in LIBRARIES.items() for name in names.split()}
    known |= {f"ctx.{name}" for name in {*CTX_METHODS, "log"}}
    known |= {f"string.{name}" for name in STRING_METAMETHODS.split()}
    reached = {name.replace("string.__index.", "_G.string.") for name in functions.split()}
    assert {name.split(".")[-1] for name in reached} == {name.split(".")[-1] for name in known}
    assert len(reached) == len(known)


GONE = (
    "io package dofile loadfile warn python string.dump os.execute os.exit os.getenv "
    "os.remove os.rename os.tmpname os.setlocale debug.getinfo debug.sethook debug.getregistry "
    "debug.getupvalue debug.setupvalue debug.getmetatable debug.setmetatable debug.getlocal "
    "debug.upvalueid debug.debug unpack setfenv lares"
)


async def test_functions_that_leave_the_sandbox_are_missing(pool: WorkerPool) -> None:
    for name in GONE.split():
        library, _, function = name.rpartition(".")
        reached = f"_G['{library}']['{function}']" if library else f"_G['{function}']"
        assert (await run(pool, f"print({reached})")).printed == ["nil"], name


ESCAPES: tuple[tuple[str, str, str], ...] = (
    ("bytecode by load", "print(load('\\27Lua', 'x', 'b'))", "nil\t.*binary chunk"),
    (
        "bytecode by a reader",
        "local n = 0 print(load(function() n = n + 1 return n == 1 and '\\27Lua' or nil end))",
        "nil\t",
    ),
    ("mode b is ignored", "print(load('return 1', 'x', 'b')())", "1"),
    ("load sees the sandbox only", "print(load('return io, python, package, os.execute')())", "nil\tnil\tnil\tnil"),
    ("load with an empty environment", "print(pcall(load('return print', 'x', 't', {})))", "true\tnil"),
    ("the string's metatable", "print(getmetatable('').__index == string, ('').dump)", "true\tnil"),
    (
        "tampered strings",
        "getmetatable('').__index = function() error('no') end ctx:get_device('a') print('on')",
        "on",
    ),
    (
        "string metatable emptied",
        "local m = getmetatable('') for k in pairs(m) do m[k] = nil end m.__index = nil"
        " ctx:invoke('a', {b = 'c'}) print('on')",
        "on",
    ),
    (
        "globals that object",
        "setmetatable(_G, {__index = function() error('no') end, __newindex = function()"
        " error('no') end}) ctx:get_device('a') ctx:invoke('x', {a = {1}}) ctx:log('info', 'on')",
        "on",
    ),
    (
        "libraries emptied",
        "for _, name in ipairs({'string', 'table', 'math', 'coroutine', 'utf8', 'os', 'debug'}) do"
        " for k in pairs(_G[name]) do _G[name][k] = nil end end ctx:invoke('x', {a = {1.5, 'x'}})"
        " ctx:log('info', 'on')",
        "on",
    ),
    (
        "globals emptied",
        "local log, c, g = ctx.log, ctx, _G for k in pairs(g) do g[k] = nil end"
        " c:get_device('x') log(c, 'info', 'on')",
        "on",
    ),
    (
        "functions replaced",
        "pcall = nil error = nil type = function() return 'x' end next = nil ctx:invoke('x', {a = 1})"
        " ctx:log('info', 'on')",
        "on",
    ),
    (
        "forged yields",
        "local ok, e = pcall(coroutine.yield, {}, 'command', '[]') print(ok) local c = coroutine.wrap("
        "function() coroutine.yield({}, 'invoke', '[]') end) print(type(c()))",
        "false",
    ),
    ("an error from ctx is text", "local ok, e = pcall(ctx.get_device, ctx, 1) print(type(e))", "string"),
    (
        "an error from the hub is text",
        "local ok, e = pcall(ctx.invoke, ctx, 'fail') print(type(e), e)",
        "string\t.*no such",
    ),
    ("the stop is no secret door", "local ok, e = pcall(error) print(e)", "nil"),
    ("ctx can be changed, for oneself", "ctx.command = false ctx.get_device = print print(ctx.command)", "false"),
    (
        "traceback shows nothing of the host",
        "print((debug.traceback('x'):gsub('\\n', '|')))",
        r"x\|stack traceback:\|",
    ),
    ("traceback of a thread", "print(type(debug.traceback((coroutine.running()))))", "string"),
    ("load by name", "print(load('error()', '@/etc/passwd'))", "function"),
    ("dates with odd letters", "print(pcall(os.date, '%Ez'), pcall(os.date, '%Q'))", "false"),
    ("environment by upvalue", "local function f() return _ENV end print(f() == _G)", "true"),
    ("globals of another execution", "print(left) left = 1", "nil"),
    (
        "metatable of a function",
        "print(getmetatable(print), getmetatable(1), getmetatable(nil), getmetatable(true))",
        "nil\tnil\tnil\tnil",
    ),
    ("finalizers of closed variables", "print(pcall(setmetatable, {}, {__gc = true}))", "false\t.*__gc"),
    ("format by address", "print((string.format('%p', 1)))", r"\(null\)"),
)


async def test_lua_cannot_escape_by(pool: WorkerPool) -> None:
    def answer(operation: str, arguments: object) -> object:
        if isinstance(arguments, list) and arguments[0] == "fail":
            raise NotFound("device", "no such")
        return None

    for name, body, expected in ESCAPES * 2:
        notes = await run(pool, body, Notes(answer))
        assert re.match(expected, notes.printed[0]), (name, notes.printed)


async def test_no_file_can_fake_a_function(pool: WorkerPool) -> None:
    with pytest.raises(ScriptFailed, match="has a key that is not allowed"):
        await pool.describe(file("return {id = 'a', execute = {['\\0function'] = 1}}"))


MODULES = (
    "..", "a..b", ".a", "a.", "/etc/passwd", "a/b", "a\\\\b", "a\\0b", "a\\n", "", " ", "a b", "é", "../secret",
    "link", "folder", "%2e%2e", "~", "C:", "http://x", "a" * 300,
)  # fmt: skip


async def test_require_reads_nothing_outside(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (tmp_path / "secret.lua").write_text("return 'secret'")
    (scripts / "link.lua").symlink_to(tmp_path / "secret.lua")
    (scripts / "folder.lua").mkdir()
    async with open_pool(scripts=scripts) as pool:
        for name in MODULES:
            with pytest.raises(ScriptFailed, match=r"test\.lua:2: (require|module) '"):
                await run(pool, f'require "{name}"')


async def test_modules_of_the_host_are_unavailable(tmp_path: Path) -> None:
    async with open_pool(scripts=tmp_path) as pool:
        for name in ("python", "io", "os", "string", "package", "debug", "lupa"):
            with pytest.raises(ScriptFailed, match="not found"):
                await run(pool, f"require '{name}'")


async def test_the_environment_of_the_process_is_hidden() -> None:
    os.environ["LARES_TEST_SECRET"] = "s3cret"
    try:
        async with open_pool() as pool:
            notes = await run(pool, "print(os.getenv, LARES_TEST_SECRET, _G.os.environ)")
    finally:
        del os.environ["LARES_TEST_SECRET"]
    assert notes.printed == ["nil\tnil\tnil"]


QUICK = RunLimits(max_cpu_secs=0.2, backstop_secs=30.0)
PATIENCE = 30.0
"""If a script still runs after this number of real seconds, it has escaped its limits, even on a busy machine."""


def answer(operation: str, arguments: Any) -> Any:
    """Return an answer for a hostile script: an empty one, a large one, or one that never arrives."""
    if arguments and arguments[0] == "hang":
        return asyncio.Event().wait()
    if arguments and arguments[0] in ("much", "some"):
        return ["x" * 1000] * {"much": 30_000, "some": 500}[arguments[0]]
    return asyncio.sleep(0)


def limits_for(expected: str, limits: RunLimits) -> RunLimits:
    """Return the limits for a script. If only the backstop ends the script, the backstop is short. All other
    scripts have enough time."""
    if expected == BACKSTOP:
        return RunLimits(backstop_secs=0.3)
    return limits if CPU in expected else ROOMY


def cases() -> Iterator[tuple[str, str, str]]:
    """Yield each hostile script as a file."""
    for name, body, expected in HOSTILE:
        yield name, scene(body).text.decode(), expected
    yield from HOSTILE_FILES


CASES = tuple(cases())
AT_ONCE = 12
"""Number of hostile scripts that run at the same time."""


async def test_every_hostile_script_has_a_name_of_its_own() -> None:
    assert len({name for name, _, _ in CASES}) == len(CASES) > 100


async def end_of(pool: WorkerPool, text: str, expected: str, *, described: bool = False) -> str | None:
    """Run a file. Return the fault that ended the execution, or None."""
    try:
        async with asyncio.timeout(PATIENCE):
            if described:
                await pool.describe(file(text))
            else:
                await ended(start(pool, file(text), Notes(answer), name="scene:hostile"))
    except ScriptFailed as failure:
        reported = str(failure)
        if re.search(expected, reported) and reported.startswith(f"{FILE}:") and len(reported) < 5_000:
            return None
        return reported[:300]
    return "it ended well"


async def end_all(cases: Iterable[tuple[str, str, str]], limits: RunLimits, *, described: bool = False) -> list[str]:
    """Run the files at the same time. Files with equal limits run in the same pool. Return the fault of each."""
    by_limits: defaultdict[RunLimits, list[tuple[str, str, str]]] = defaultdict(list)
    for case in cases:
        by_limits[limits_for(case[2], limits)].append(case)
    wrong = []
    for each, group in by_limits.items():
        async with open_pool(each) as pool:
            ends = await asyncio.gather(
                *(end_of(pool, text, sentence, described=described) for _, text, sentence in group)
            )
            assert len((await run(pool, TRIVIAL)).asked) == 1
        wrong += [
            f"{name}: {reported}" for (name, _, _), reported in zip(group, ends, strict=True) if reported is not None
        ]
    return wrong


async def test_some_hostile_scripts_end_with_clear_errors() -> None:
    assert await end_all(CASES[::40], QUICK) == []


@pytest.mark.slow
async def test_all_hostile_scripts_end_with_clear_errors() -> None:
    wrong = []
    for first in range(0, len(CASES), AT_ONCE):
        wrong += await end_all(CASES[first : first + AT_ONCE], QUICK)
    assert wrong == []


async def test_describing_a_hostile_file_ends_with_a_clear_error() -> None:
    assert await end_all([each for each in HOSTILE_FILES if "metatable" not in each[0]], QUICK, described=True) == []


@pytest.mark.slow
async def test_a_short_script_ends_while_forty_others_spin() -> None:
    async with open_pool(RunLimits(max_cpu_secs=30.0, max_memory_mb=2)) as pool:
        spinning = [start(pool, scene("while true do end"), Notes(), name=f"spinner {each}") for each in range(40)]
        async with asyncio.timeout(PATIENCE):
            notes = await run(pool, TRIVIAL)
        assert len(notes.asked) == 1
        assert pool.running >= 40
        assert all(each.lua.is_active for each in spinning)
