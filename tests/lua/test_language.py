"""In the places that the sandbox changes, Lua 5.4 behaves as its manual describes. `ctx` can be called from every
place."""

from __future__ import annotations

import pytest

from appliance.lua.running.worker_pool import WorkerPool
from tests.lua.bench import Notes, run

pytestmark = pytest.mark.asyncio(loop_scope="module")

LANGUAGE: tuple[tuple[str, str], ...] = (
    (
        "close",
        "local log = {} do local a <close> = setmetatable({}, {__close = function(_, e) log[#log + 1] = 'a' end})"
        " local b <close> = setmetatable({}, {__close = function() log[#log + 1] = 'b' end}) end"
        " return table.concat(log) == 'ba'",
    ),
    (
        "close returns the error",
        "local seen local ok = pcall(function() local a <close> = setmetatable({}, {__close ="
        " function(_, e) seen = e end}) error('x', 0) end) return not ok and seen == 'x'",
    ),
    (
        "load",
        "return load('return 1 + 1')() == 2 and load('return x', 'c', 't', {x = 5})() == 5"
        " and select(2, load('x =')):find('expected') ~= nil",
    ),
    ("load by a reader", "local n = 0 return load(function() n = n + 1 return ({'return ', '4'})[n] end)() == 4"),
    ("loaded text sees the globals", "answer = 42 return load('return answer')() == 42 and _G.answer == 42"),
    (
        "pcall",
        "local ok, e = pcall(error, {code = 1}) return not ok and e.code == 1"
        " and select(2, pcall(function() return 1, 2 end)) == 1",
    ),
    ("error levels", "local ok, e = pcall(function() error('x', 0) end) return e == 'x'"),
    (
        "xpcall",
        "local ok, e = xpcall(function(a) error(a, 0) end, function(e) return e .. '!' end, 'x') return e == 'x!'",
    ),
    (
        "traceback in xpcall",
        "local ok, t = xpcall(function() local x = nil; x() end, debug.traceback)"
        " return t:find('test.lua:2:') ~= nil and t:find('stack traceback') ~= nil and t:find('?: ', 1, true) == nil",
    ),
    ("assert", "local ok, e = pcall(assert, false, 'no') return e == 'no' and assert(1, 2) == 1"),
    (
        "nested pcalls",
        "local function f(n) if n == 0 then error('deep', 0) end local ok, e = pcall(f, n - 1)"
        " error(e, 0) end return select(2, pcall(f, 100)) == 'deep'",
    ),
    (
        "coroutines",
        "local c = coroutine.create(function(a) local b = coroutine.yield(a + 1) return b * 2 end)"
        " local _, x = coroutine.resume(c, 1) local _, y = coroutine.resume(c, 5) return x == 2 and y == 10"
        " and coroutine.status(c) == 'dead' and not coroutine.resume(c)",
    ),
    (
        "wrap",
        "local t = {} for i in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do t[i] = i end"
        " return #t == 3",
    ),
    ("an error in wrap", "local ok, e = pcall(coroutine.wrap(function() error('x', 0) end)) return e == 'x'"),
    (
        "running",
        "local co, main = coroutine.running() return main and not coroutine.isyieldable()"
        " and coroutine.wrap(function() local _, main = coroutine.running() return not main"
        " and coroutine.isyieldable() end)()",
    ),
    (
        "close of a coroutine",
        "local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c)"
        " return coroutine.close(c) and coroutine.status(c) == 'dead'",
    ),
    ("yield outside", "local ok, e = pcall(coroutine.yield) return not ok and e:find('outside a coroutine') ~= nil"),
    (
        "the main coroutine cannot be resumed",
        "local main = coroutine.running()"
        " local ok = coroutine.wrap(function() return coroutine.resume(main) end)() return ok == false",
    ),
    ("the main coroutine cannot be closed", "return not pcall(coroutine.close, (coroutine.running()))"),
    (
        "a thousand abandoned in pcall",
        "for _ = 1, 1000 do local c = coroutine.create(function() pcall(coroutine.yield)"
        " end) coroutine.resume(c) end return pcall(function() end)",
    ),
    ("collectgarbage", "return collectgarbage('count') > 0 and collectgarbage() == 0"),
    ("version", "return _VERSION == 'Lua 5.4'"),
)
"""Each row: a name, and a body that returns true."""


async def test_the_language_works_as_in_its_manual(pool: WorkerPool) -> None:
    printed = {name: (await run(pool, f"print((function() {body} end)())")).printed for name, body in LANGUAGE}
    assert not {name: output for name, output in printed.items() if output != ["true"]}


PLACES: tuple[tuple[str, str], ...] = (
    ("pcall", "local ok, v = pcall(function() return ctx:get_device('x') end) print(ok, v)"),
    ("xpcall", "local ok, v = xpcall(function() return ctx:get_device('x') end, print) print(ok, v)"),
    ("handler of xpcall", "xpcall(error, function() print(true, ctx:get_device('x')) end)"),
    ("coroutine", "print(coroutine.resume(coroutine.create(function() return ctx:get_device('x') end)))"),
    (
        "coroutines in each other",
        "print(true, coroutine.wrap(function() return coroutine.wrap(function()"
        " return ctx:get_device('x') end)() end)())",
    ),
    (
        "coroutine that yields, too",
        "local c = coroutine.wrap(function() coroutine.yield(1) local v = ctx:get_device('x')"
        " coroutine.yield(v) end) c() print(true, c())",
    ),
    (
        "generator in for",
        "for v in coroutine.wrap(function() coroutine.yield((ctx:get_device('x'))) end) do print(true, v) end",
    ),
    (
        "iterator",
        "local done for v in function() if not done then done = true return ctx:get_device('x') end end do"
        " print(true, v) end",
    ),
    (
        "comparator",
        "local t = {2, 1} local v table.sort(t, function(a, b) v = ctx:get_device('x') return a < b end)"
        " print(t[1] == 1, v)",
    ),
    ("gsub", "print(true, (('a'):gsub('a', function() return ctx:get_device('x') end)))"),
    ("__index", "print(true, setmetatable({}, {__index = function() return ctx:get_device('x') end}).y)"),
    ("__add", "print(true, setmetatable({}, {__add = function() return ctx:get_device('x') end}) + 1)"),
    ("__call", "print(true, setmetatable({}, {__call = function() return ctx:get_device('x') end})())"),
    (
        "__close",
        "local v do local c <close> = setmetatable({}, {__close = function() v = ctx:get_device('x') end}) end"
        " print(true, v)",
    ),
    ("loaded text", "print(true, load('return (...):get_device(\"x\")')(ctx))"),
)


@pytest.mark.parametrize("body", [body for _, body in PLACES], ids=[name for name, _ in PLACES])
async def test_ctx_works_inside(pool: WorkerPool, body: str) -> None:
    notes = await run(pool, body, Notes(lambda *_: "seen"))
    assert notes.printed == ["true\tseen"]


WAITING: tuple[tuple[str, str], ...] = (
    ("tostring", "tostring(setmetatable({}, {__tostring = function() return ctx:get_device('x') end}))"),
    (
        "ipairs",
        "local function item(_, n) return n < 2 and ctx:get_device('x') or nil end"
        " for _ in ipairs(setmetatable({}, {__index = item})) do end",
    ),
    ("concat", "table.concat(setmetatable({}, {__index = function() return ctx:get_device('x') end}), '', 1, 1)"),
    ("sort", "local t = {1, 2} table.sort(t, function(a, b) return ctx:get_device('x') == 'seen' and a < b end)"),
    ("gsub", "('x'):gsub('.', function() return ctx:get_device('x') end)"),
    ("load", "local n = 0 load(function() n = n + 1 return n == 1 and ctx:get_device('x') or nil end)"),
    (
        "close",
        "local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = function()"
        " ctx:get_device('x') end}) coroutine.yield() end) coroutine.resume(c) coroutine.close(c)",
    ),
)


@pytest.mark.parametrize("body", [body for _, body in WAITING], ids=[name for name, _ in WAITING])
async def test_ctx_works_in_calls_that_cannot_yield(pool: WorkerPool, body: str) -> None:
    notes = await run(pool, f"{body} print('on')", Notes(lambda *_: "seen"))
    assert notes.printed == ["on"]
    assert {operation for operation, _ in notes.asked} == {"get_device"}


async def test_log_and_print_work_in_calls_that_cannot_yield(pool: WorkerPool) -> None:
    body = "tostring(setmetatable({}, {__tostring = function() print('in') ctx:log('warn', 'here') return 'x' end}))"
    notes = await run(pool, body)
    assert notes.printed == ["in", "here"]
