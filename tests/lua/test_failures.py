"""Each error message begins with file and line, names the problem, and often explains what to do."""

from __future__ import annotations

import pytest

from appliance.errors import ScriptFailed
from appliance.lua.running.run_limits import RunLimits
from appliance.lua.running.worker_pool import WorkerPool
from appliance.lua.text.hints import MAX_SEARCHED_TOKENS, ErrorContext, hint_of
from appliance.tables.checks import Function
from tests.lua.bench import FILE, Notes, ended, file, open_pool, run, start

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_RUN: tuple[tuple[str, int, str], ...] = (
    ("error('boo')", 2, "boo"),
    ("error('boo', 0)", 2, "boo"),
    ("\nerror({})", 3, "the error is a table value, not a message"),
    ("\nerror({message = 'told'})", 3, "told"),
    ("error({code = 5})", 2, '{"code":5}'),
    ("error(setmetatable({}, {__tostring = function() return 'mine' end}))", 2, "mine"),
    ("error(setmetatable({}, {__index = function() error('no') end}))", 2, "the error is a table value"),
    ("error(setmetatable({}, {__tostring = function() error('no') end}))", 2, "the error is a table value"),
    ("error(setmetatable({}, {__name = 'mine'}))", 2, "the error is a table value, not a message"),
    ("error(print)", 2, "the error is a function value, not a message"),
    ("error(nil)", 2, "the error is a nil value, not a message"),
    ("error(true)", 2, "the error is a boolean value, not a message"),
    ("error(42)", 2, "42"),
    ("error('\\xff\\xfe')", 2, "\ufffd\ufffd"),
    ("error('a\\nb')", 2, "a\nb"),
    ("\n\nlocal x = nil + 1", 4, "attempt to perform arithmetic on a nil value"),
    ("local t = {} t.x.y = 1", 2, "attempt to index a nil value (field 'x')"),
    ("nothing()", 2, "attempt to call a nil value (global 'nothing')"),
    ("local function f()\nerror('deep') end\nf()", 3, "deep"),
    ("\nstring.rep()", 3, "bad argument #1 to 'rep' (string expected, got no value)"),
    ("\n('x'):find({})", 3, "bad argument #1 to 'find' (string expected, got table)"),
    ("\ntable.concat({{}})", 3, "invalid value (table) at index 1 in table for 'concat'"),
    ("\ntable.insert({}, 5, 1)", 3, "bad argument #2 to 'insert' (position out of bounds)"),
    ("\ncoroutine.wrap(function()\nerror('in') end)()", 4, "in"),
    ("local function f() return coroutine.wrap(f)() end f()", 2, "C stack overflow"),
    ("\nlocal t = setmetatable({}, {__index = function()\nerror('index') end}) return t.x", 4, "index"),
    ("ctx.log('info', 'x')", 2, "call it with a colon: ctx:log(...), not ctx.log(...)"),
    ("\nctx:command(nil, {})", 3, "bad argument #1 to ctx:command (string expected, got nil)"),
    ("ctx:command('a')", 2, "bad argument #2 to ctx:command (table expected, got nil)"),
    ("ctx:command('a', 'on')", 2, "bad argument #2 to ctx:command (table expected, got string)"),
    ("ctx:invoke('x', 1)", 2, "bad argument #2 to ctx:invoke (table expected, got number)"),
    ("ctx:log('info', 'x', {print})", 2, "ctx:log: fields[1] holds a function, which is not data"),
    ("ctx:sleep(0 / 0)", 2, "ctx:sleep: argument #1 holds a number that is not finite"),
    ("return ('5'):nothing()", 2, "attempt to call a nil value (method 'nothing')"),
    ("return 5 < '6'", 2, "attempt to compare number with string (a number in quotes is text"),
    (f"error('{FILE}:99999999999999999999: x', 0)", 2, f"{FILE}:99999999999999999999: x"),
    ("\nload('\\n\\n\\nlocal ctx = ... ctx:command(5)')(ctx)", 3, "bad argument #1 to ctx:command"),
    ("\nload('\\n\\n\\nerror(\"in\")', '=text')()", 3, "text:4: in"),
    ("local function f()\n  return ctx:command('a')\nend\nf()", 5, "bad argument #2 to ctx:command"),
    ("\nreturn ctx:command('a')", 1, "bad argument #2 to ctx:command"),  # this is the first line of `execute`
    ("require 'x'", 2, "require 'x': scripts are disabled (scripts.enabled in the configuration)"),
)


async def test_a_failing_run_names_the_line_and_the_error(pool: WorkerPool) -> None:
    for body, line, message in AT_RUN:
        with pytest.raises(ScriptFailed) as failure:
            await run(pool, body)
        assert str(failure.value).startswith(f"{FILE}:{line}: {message}")
        assert (failure.value.file, failure.value.line, failure.value.status) == (FILE, line, "error")


AT_LOAD: tuple[tuple[str, int, str], ...] = (
    ("return {\n  repeat = 5,\n}", 2, '("repeat" is a reserved word: write ["repeat"] = …)'),
    ("return {\n  id = 'x',\n", 3, "unexpected symbol near <eof>"),
    ("local x =", 1, "unexpected symbol near <eof>"),
    ("if 1 != 2 then end", 1, "'then' expected near '!' (write ~= instead of !=, and `not x` instead of !x)"),
    ("local y = !true", 1, "unexpected symbol near '!' (write ~= instead of !=, and `not x` instead of !x)"),
    ("local x = 1\nif x = 1 then end", 2, "'then' expected near '=' (write == to compare)"),
    (
        "return {\n  a = function()\n    if 1 then print(1)\n  end,\n}",
        4,
        "unexpected symbol near ',' (an end is missing: each function, if, for, and while needs its own end)",
    ),
    (
        "return {\n  a = function()\n    if 1 then\n    else if 2 then\n    end\n  end,\n}",
        6,
        "unexpected symbol near ',' (line 4: write elseif instead of else if, or add an end for this if)",
    ),
    (
        "return { a = function() while 1 do if 2 then end end for i = 1, 2 do end end, b = , }",
        1,
        "unexpected symbol near ','",
    ),
    (
        'return {\n  name = "x,\n}',
        2,
        "unfinished string near '\"x,' (the text needs a \" at its end, on the same line)",
    ),
    ("local x = 1\nif x && x then end", 2, "unexpected symbol near '&' (write and, or)"),
    ("local x = 1\nif x || x then end", 2, "unexpected symbol near '|' (write and, or)"),
    ("# motion\nlocal x = 1\n# light", 3, "unexpected symbol near '#' (a comment begins with --)"),
    ("// light", 1, "unexpected symbol near '//' (a comment begins with --)"),
    ("/* light */", 1, "unexpected symbol near '/' (a comment begins with --)"),
    ("local x = 1\nx += 1", 2, "syntax error near '+' (write x = x + …)"),
    ("local x = 1\nx++", 2, "syntax error near '+' (write x = x + …)"),
    (
        "return { id: 'x' }",
        1,
        "<name> expected near ''x'' (write a field with =, not with a colon: name = value)",
    ),
    ("return { id = 'x', above: 5 }", 1, "<name> expected near '5' (write a field with =, not with a colon"),
    ('{"id": "x"}', 1, "unexpected symbol near '{' (begin the file with \"return {\")"),
    ("return {id = 'x' }}", 1, "<eof> expected near '}'"),
    ("return 5", 1, "must return a table, not a number"),
    ("return function() end", 1, "must return a table, not a function"),
    ("\nerror('top')", 2, "top"),
    ("\nlocal a = nothing.at_all", 2, "attempt to index a nil value (global 'nothing')"),
    ("return {id = 'x', 1, 2}", 1, "the returned table mixes list items with named fields"),
    ("return {trigger = {list = {1, nil, 3}}}", 1, "the returned table.trigger.list mixes"),
    ("\nreturn {\n  id = 'x',\n  mode = {\n    {1,\n      max = 5}}}", 4, "the returned table.mode[1] mixes"),
    (
        "-- a\nreturn {\n  trigger = {\n    above = 0/0}}",
        4,
        "the returned table.trigger.above holds a number that is not",
    ),
    ("-- a\nreturn {\n  id = 'x', 5 }", 2, "the returned table mixes list items"),
    ("return {x = coroutine.create(print)}", 1, "the returned table.x holds a thread, which is not data"),
    ("\x1bLua", 1, "attempt to load a binary chunk"),
    ("", 1, "must return a table, not nothing"),
    ("local t = {} t.id = t return t", 1, "the returned table.id.id"),
    ("error({})", 1, "the error is a table value, not a message"),
    ("coroutine.yield()", 1, "attempt to yield from outside a coroutine"),
    ("ctx:sleep(1)", 1, "attempt to index a nil value (global 'ctx')"),
    ("local s = 'x' while true do s = s .. s end", 1, "needed more than 16 MB of memory"),
)


async def test_a_file_that_cannot_be_described_fails_with_the_line_and_the_error(pool: WorkerPool) -> None:
    for text, line, message in AT_LOAD:
        with pytest.raises(ScriptFailed) as failure:
            await pool.describe(file(text))
        assert str(failure.value).startswith(f"{FILE}:{line}: ") and message in str(failure.value)
        assert (failure.value.file, failure.value.line) == (FILE, line)


async def test_an_end_beyond_the_searched_tokens_is_not_missing() -> None:
    calls = "x() " * MAX_SEARCHED_TOKENS
    for body in ("while 1 do if 2 then end end for i = 1, 2 do end", calls):
        text = f"return {{ a = function() {body} end, b = , }}".encode()
        assert hint_of(ErrorContext(message="unexpected symbol near ','", text=text)) == ""


async def test_a_field_of_a_metatable_gets_no_hint() -> None:
    message = "capability must be a non-empty string, not nothing"
    for line, hint in (
        ('setmetatable({}, { __index = { capability = "power" } })', ""),
        ('{ capabilty = "power" }', " (write capability instead of capabilty)"),
    ):
        assert hint_of(ErrorContext(message=message, line=f'ctx:command("a:b", {line})')) == hint


async def test_a_file_without_execute_fails_when_it_is_run(pool: WorkerPool) -> None:
    with pytest.raises(ScriptFailed, match="execute must be a function, not nil"):
        await ended(start(pool, file("return {}"), Notes(), name="scene:x"))


async def test_a_description_is_data_with_functions_by_their_lines(pool: WorkerPool) -> None:
    text = (
        "local function execute(ctx)\nend\n"
        "return {id = 'x', mode = {type = 'queued', max = 2}, conditions = {}, list = {1.5, 'a', {b = true}},\n"
        "  execute = execute,\n  nested = {f = function() end}}"
    )
    assert await pool.describe(file(text)) == {
        "id": "x",
        "mode": {"type": "queued", "max": 2},
        "conditions": {},
        "list": [1.5, "a", {"b": True}],
        "execute": Function(1),
        "nested": {"f": Function(5)},
    }


async def test_a_limit_of_time_is_a_timeout_and_names_the_line() -> None:
    async with open_pool(RunLimits(max_cpu_secs=0.1)) as pool:
        with pytest.raises(ScriptFailed) as failure:
            await run(pool, "\n\nwhile true do\nend")
        workers = pool.figures()["workers"]
    assert len(workers) == 1 and workers[0]["confinement"], "Lua was stopped from within"
    assert failure.value.line in (4, 5)
    assert failure.value.status == "timeout"


async def test_a_limit_of_memory_names_the_line() -> None:
    async with open_pool() as pool:
        with pytest.raises(ScriptFailed, match="needed more than 16 MB") as failure:
            await run(pool, "\nlocal t = {}\nwhile true do\nt[#t + 1] = {} end")
    assert failure.value.line == 5
    assert failure.value.status == "error"


async def test_the_backstop_names_the_line_of_the_call() -> None:
    async with open_pool(RunLimits(backstop_secs=0.1)) as pool:
        with pytest.raises(ScriptFailed, match=r"took more than 0\.1 s in total") as failure:
            await run(pool, "\nwhile true do\nctx:get_device('x') end", Notes(lambda *_: None))
    assert failure.value.line in (4, 3)
    assert failure.value.status == "timeout"
