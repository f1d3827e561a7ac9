"""Hostile scripts that only a whole hub can be tried with: they misuse what `ctx` reaches, and the time and place at
which Lua is run. How each ends is its own matter; that it ends in time and leaves nothing behind is the test's.
"""

from __future__ import annotations

_LAMP = "'elgato_lights:light:0'"
_ON = "{capability = 'power', action = 'on'}"
_BIG = "('x'):rep(250000)"
_SPIN = "while true do end"
_STUCK = "(('a'):rep(200000)):find(('.-'):rep(20) .. 'b')"

_COMMANDS = (
    f"for i = 1, 2000 do ctx:command(({_BIG}):sub(1, 120000) .. i, {_ON}) end",
    f"for i = 1, 100000 do ctx:command('n' .. i, {_ON}) end",
    "for i = 1, 300 do ctx:command('a' .. i, {capability = 'target_temperature', action = 'set', value = {value = 20,"
    f" unit = {_BIG}}}}}) end",
    f"for i = 1, 300 do ctx:command({_LAMP}, {{capability = 'media_source', action = 'set', value = {_BIG}}}) end",
    f"while true do ctx:command({_LAMP}, {_ON}) end",
    f"while true do pcall(ctx.command, ctx, {_LAMP}, {{capability = {_BIG}, action = 'on'}}) end",
    f"while true do pcall(ctx.command, ctx, {_LAMP}, {{capability = 'power', action = {_BIG}}}) end",
    f"while true do pcall(ctx.command, ctx, {_LAMP}, {{capability = 'power', action = 'on', transition_secs"
    f" = 1e308}})"
    " end",
    f"ctx:command({_LAMP}, {{capability = 'brightness', action = 'set', value = math.mininteger}})",
    f"ctx:command({_LAMP}, {{capability = 'brightness', action = 'set', value = 1e308}})",
    f"ctx:command({_LAMP}, {{capability = 'color_temperature', action = 'set', value = {{value = 1 << 62, unit ="
    " 'kelvin'}})",
    "local t = {} for i = 1, 20000 do t['k' .. i] = i end while true do pcall(ctx.command, ctx, 'a', t) end",
    f"while true do pcall(ctx.command_group, ctx, {_BIG}, {_ON}) pcall(ctx.command_room, ctx, {_BIG}, {_ON}) end",
    f"while true do pcall(ctx.invoke, ctx, 'elgato_lights:identify', {{device_id = {_BIG}}}) end",
    f"while true do pcall(ctx.invoke, ctx, 'elgato_lights:' .. {_BIG}, {{}}) end",
    "local t = {} for i = 1, 20000 do t[i] = {} end while true do pcall(ctx.invoke, ctx,"
    " 'elgato_lights:info', {t = t})"
    " end",
)

_VARIABLES = (
    "for i = 1, 100000 do pcall(ctx.set, ctx, 'v' .. i, ('x'):rep(16000)) end",
    "for i = 1, 100000 do ctx:set('v', ('x'):rep(i % 16000)) end",
    "for i = 1, 100000 do ctx:set('v' .. i % 10, i, {durable = true}) end",
    f"while true do pcall(ctx.set, ctx, {_BIG}, 1) pcall(ctx.set, ctx, 'a', {_BIG}) end",
    "local t = 1 for _ = 1, 30 do t = {t} end while true do ctx:set('deep', t) end",
    "local t = {} for i = 1, 2000 do t[i] = i end while true do ctx:set('list', t) ctx:get('list') end",
    f"while true do ctx:get('none', {_BIG}) end",
    "while true do pcall(ctx.set, ctx, 'a', 1, {durable = 'yes', " + "x = 1}) end",
    "local t = {} for i = 1, 9000 do t['o' .. i] = 1 end while true do pcall(ctx.set, ctx, 'a', 1, t) end",
    "while true do pcall(ctx.get, ctx, '\\0\\255') pcall(ctx.set, ctx, 'a', '\\255') pcall(ctx.set, ctx,"
    " 'a', 0/0) end",
)

_TIMERS = (
    "for i = 1, 100000 do ctx:start_timer('t' .. i, 3600, ('x'):rep(16000)) end",
    "for i = 1, 100000 do ctx:start_timer('t', 0) end",
    "for i = 1, 100000 do ctx:start_timer('t' .. i % 100, 0, {i}) ctx:cancel_timer('t' .. i % 100) end",
    f"while true do pcall(ctx.start_timer, ctx, {_BIG}, 1) pcall(ctx.start_timer, ctx, 'a', 1, {_BIG}) end",
    "for _, s in ipairs({-1, 1e308, -1e308, 1 << 62, math.mininteger, 400 * 86400 + 1}) do"
    " pcall(ctx.start_timer, ctx, 'a', s) end ctx:start_timer('a', 0/0)",
    f"while true do pcall(ctx.cancel_timer, ctx, {_BIG}) end",
)

_WAITING = (
    f"while true do ctx:wait_for({_LAMP}, {{attribute = 'power', equals = 'off', timeout_secs = 0}}) end",
    f"ctx:wait_for({_LAMP}, {{attribute = 'power', equals = 'off', timeout_secs = 1e308}})",
    f"ctx:wait_for({_LAMP}, {{attribute = 'power', equals = 'on', timeout_secs = -1}})",
    f"ctx:wait_for({_LAMP}, {{attribute = {_BIG}, equals = 'on', timeout_secs = 1}})",
    f"local t = {{timeout_secs = 1}} for i = 1, 9000 do t['f' .. i] = 1 end while true do pcall(ctx.wait_for, ctx,"
    f" {_LAMP}, t) end",
    f"ctx:wait_for({_LAMP}, {{attribute = 'brightness', above = 1e308, below = -1e308, timeout_secs = 0.1}})",
    "table.sort({3, 2, 1}, function() ctx:sleep(0.1) return false end) while true do ctx:sleep(0) end",
    "while true do coroutine.wrap(function() ctx:sleep(0) end)() end",
    "for _, s in ipairs({-1, 3601, 1e308, -1e308, 1 << 62}) do pcall(ctx.sleep, ctx, s) end ctx:sleep(0/0)",
    "for _ = 1, 1000 do ctx:sleep(0.0001) end",
    "setmetatable(_G, {__index = function(_, k) ctx:sleep(0) return nil end}) while true do local _ = nothing end",
    "local x <close> = setmetatable({}, {__close = function() while true do ctx:sleep(0) end end}) error('out')",
    "string.gsub(('a'):rep(100000), '.', function() ctx:sleep(0) end)",
)

_SCENES = (
    "while true do ctx:run_scene('quiet') end",
    "ctx:run_scene('circle_a')",
    "while true do pcall(ctx.run_scene, ctx, 'circle_b') end",
    f"while true do pcall(ctx.run_scene, ctx, {_BIG}) end",
    "while true do pcall(ctx.run_scene, ctx, 'loud') end",
    "while true do pcall(ctx.run_scene, ctx, 'failing') end",
    "ctx:run_scene('stuck')",
    "for _ = 1, 3 do pcall(ctx.run_scene, ctx, 'spinning') end",
    "string.gsub('aaa', '.', function() ctx:run_scene('quiet') end)",
)

_SNAPSHOTS = (
    "local t = {} for i = 1, 12000 do t['n' .. i] = {power = 'off'} end ctx:restore(t)",
    "local t = {} for i = 1, 12000 do t['n' .. i] = {brightness = 1} end ctx:restore(t)",
    "local t = {} for i = 1, 9000 do t['n' .. i] = {power = 'on'} end while true do ctx:restore(t) end",
    f"local t = {{}} for i = 1, 9000 do t[i] = {_LAMP} end while true do ctx:snapshot(t) end",
    "local t = {} for i = 1, 9000 do t[i] = 'n' .. i end while true do pcall(ctx.snapshot, ctx, t) end",
    f"ctx:restore({{[{_LAMP}] = {{brightness = {{}}, color_temperature = {_BIG}}}}})",
    f"ctx:restore({{[{_LAMP}] = {{power = 5}}, a = {{power = {{}}}}}})",
    "ctx:snapshot({a = 1})",
    "ctx:snapshot({{}, {}})",
    "ctx:restore({1, 2, 3})",
)

_TALK = (
    "for i = 1, 1e7 do ctx:notify(('x'):rep(4000) .. i) end",
    "for i = 1, 1e7 do ctx:notify('x', {title = ('y'):rep(200000), i = i}) end",
    "while true do ctx:log('info', '\\27[2J\\r\\n\\0\\255' .. ('x'):rep(8000)) end",
    "for _, k in ipairs({'message', 'msg', 'args', 'name', 'exc_info', 'levelname', 'asctime', 'scene', '\\n', '',"
    " 'stack_info', 'taskName', ('k'):rep(8000)}) do ctx:log('error', 'x', {[k] = '\\n\\27[31m'}) end",
    "ctx:log('info', '%s %d %(x)s {0} {x}', {a = '%s'})",
    "for i = 1, 1000 do print(('%08d'):format(i), ('x'):rep(900)) end",
    "while true do print() end",
    "print(setmetatable({}, {__tostring = function() ctx:sleep(0) return 'x' end, __name = 'y'}))"
    " print(setmetatable({}, {__tostring = function() return 5 end}))",
    "local t = {} for i = 1, 250000 do t[i] = i end print(table.unpack(t))",
)

_ERRORS = (
    "error({message = ('x'):rep(1000000)})",
    "error(setmetatable({}, {__tostring = function() return ('\\255'):rep(1000000) end}))",
    "error('config/scenes/x.lua:99999999999999999999999999: no such line')",
    "error(('config/scenes/x.lua:1: '):rep(100000))",
    "error('config/scenes/x.lua:' .. ('9'):rep(5000) .. ': x')",
    "load('error(\"far\")', '@/etc/passwd')()",
    "load('error(\"far\")', '=\\255\\254\\n:1: ')()",
    "load('\\n\\n\\nerror(\"far\")', '@config/scenes/' .. ('x'):rep(1000))()",
    "load('local x = nil + 1', '=' .. ('y'):rep(1000000))()",
    "error(coroutine.create(print))",
    "error(nil)",
    "error(setmetatable({}, {__tostring = function() ctx:sleep(1) end}))",
    "local t = {} for i = 1, 5000 do t['f' .. i] = ('x'):rep(40) end error(t)",
    "local s = ('a'):rep(190000) error(\"attempt to call a nil value (global '\" .. s .. \"')\")",
    "error(\"attempt to index a nil value (local '\" .. (\"' '\"):rep(100000) .. ' (')",
    "_G[('x'):rep(1000000)]()",
    "local t = setmetatable({}, {__index = error}) t[('x'):rep(1000000)] = t.y",
    "coroutine.wrap(function() coroutine.wrap(function() error('in two') end)() end)()",
    "local function f(n) if n == 0 then error('deep') end local ok, e = pcall(f, n - 1) error(e .. e:sub(1, 100)) end"
    " f(180)",
    "assert(false, setmetatable({}, {__tostring = function() while true do end end}))",
    "assert(nil, {is_definition = true, ('x'):rep(1000000)})",
    "error({is_definition = true})",
    "error({is_definition = true, setmetatable({}, {__tostring = error})})",
)

_MODULES = (
    "while true do pcall(require, 'heavy') end",
    "while true do pcall(require, 'heavy_fault') end",
    "require('spinning')",
    "require('stuck')",
    "while true do pcall(require, 'circle') end",
    "require('greedy')",
    "while true do pcall(require, 'nowhere' .. math.random(1e9)) end",
    "while true do pcall(require, ('a.'):rep(50) .. 'b') end",
    "pcall(require, 'pipe') pcall(require, 'folder') pcall(require, 'away') pcall(require, 'zero') require('loop')",
    "while true do pcall(require, 'pipe') end",
    "require('asks')(ctx)",
    "require('false')",
    "local m = require('meta') local _ = m.x",
)

_HOST = (
    "local t = {} for i = 1, 150 do t[i] = coroutine.wrap(function() table.sort({2, 1}, function() t[i +"
    " 1]() end) end)"
    " end t[1]()",
    "local function f() return pcall(string.gsub, 'a', 'a', f) end f() while true do f() end",
    "collectgarbage('stop') local t = {} for i = 1, 1e9 do t[i % 1000] = ('x'):rep(i % 100000) end",
    "math.randomseed(math.maxinteger, math.mininteger) while true do math.random(math.mininteger,"
    " math.maxinteger) end",
    "pcall(math.random, 0) pcall(math.random, 1, 0) pcall(math.random, 1e308) while true do math.tointeger('x') end",
    "while true do os.date('*t', 1 << 40) pcall(os.date, '*t', 1 << 60) pcall(os.date, '%Ez%', -1) end",
    "while true do pcall(os.time, {year = 1 << 40, month = 1, day = 1}) pcall(os.time, {year = 2000}) end",
    "os.date(('%c'):rep(200000), 0)",
    "for _, n in ipairs({'string', 'table', 'math', 'utf8', 'os', 'coroutine', 'debug'}) do for k in pairs(_G[n]) do"
    " _G[n][k] = nil end end for k in pairs(_G) do _G[k] = nil end error('bare')",
    "for _, n in ipairs({'string', 'table', 'math', 'utf8', 'os', 'coroutine'}) do for k in pairs(_G[n]) do"
    " _G[n][k] = function() while true do end end end end print('x') ctx:log('info', 'y') tostring(5)",
    "local m = getmetatable('') for k in pairs(m) do m[k] = nil end m.__index = function() while true do end end"
    " ctx:get_device('x') print(('x').y)",
    "local m = getmetatable('') m.__eq, m.__lt, m.__concat, m.__len, m.__call, m.__close, m.__mode = error,"
    " error, error,"
    " error, error, error, 'kv' print('a' .. 'b') ctx:command('a', {capability = 'power', action = 'on'}) error('x')",
    "setmetatable(_G, {__index = function() " + _SPIN + " end}) local _ = undefined",
    "debug.traceback(('x'):rep(1000000)) while true do debug.traceback() end",
    "debug.traceback = nil local function f() f() end xpcall(f, function(e) error(e) end) error(debug)",
    "coroutine.close(coroutine.running())",
    "local co co = coroutine.wrap(function() co() end) co()",
    "local t = setmetatable({}, {__pairs = function() return function() return 1 end end}) for _ in pairs(t) do end",
    "local t = setmetatable({}, {__index = table.concat}) local _ = t[1]",
    "goto a ::b:: " + _SPIN + " ::a:: goto b",
    "local a <const>, b <close> = 1, nil for i = math.maxinteger - 1, math.maxinteger do end for i = 1, 0/0 do end"
    " for i = 1.0, math.huge do end",
    "for i = math.mininteger, math.maxinteger do end",
    "pcall(string.rep, 'x', -1) string.rep('ab', 1 << 62, 'c')",
    "string.format('%' .. ('1'):rep(100) .. 'd', 1)",
    "string.format(('%d'):rep(100000), 1)",
    "while true do pcall(string.format, '%a %g %q', 1e308, 0/0, math.mininteger) end",
    "while true do pcall(utf8.char, 0x7FFFFFFF, -1) pcall(utf8.codepoint, '\\xFF') pcall(utf8.offset, 'x',"
    " 1 << 62) end",
    "for p, c in utf8.codes(('\\xF4\\x90\\x80\\x80'):rep(100000), true) do end " + _STUCK,
    "table.move({}, 1, math.maxinteger, 2)",
    "table.insert({}, 1 << 62, 1)",
    "next({}, ('x'):rep(1000000))",
    "rawset(_G, 0/0, 1)",
    "select(math.mininteger, 1)",
    "local t = {} for i = 1, 300 do t[i] = 'x' .. i end load('local ' .. table.concat(t, ','))",
    "load('return ' .. ('x.'):rep(200000) .. 'x')()",
    "load(('function f() '):rep(190) .. ('end '):rep(190))",
)

BODIES: tuple[tuple[str, str], ...] = tuple(
    (f"{kind}_{number}", body)
    for kind, bodies in (
        ("commands", _COMMANDS),
        ("variables", _VARIABLES),
        ("timers", _TIMERS),
        ("waiting", _WAITING),
        ("scenes", _SCENES),
        ("snapshots", _SNAPSHOTS),
        ("talk", _TALK),
        ("errors", _ERRORS),
        ("modules", _MODULES),
        ("host", _HOST),
    )
    for number, body in enumerate(bodies, 1)
)
"""Name, and body of a scene's `execute`."""

HELPERS = {
    "quiet": "",
    "loud": "for i = 1, 1000 do print(i, ('x'):rep(900)) end",
    "failing": "error(('x'):rep(5000))",
    "stuck": _STUCK,
    "spinning": _SPIN,
    "circle_a": "ctx:run_scene('circle_b')",
    "circle_b": "ctx:run_scene('circle_a')",
}
"""Scenes that others run: id, and body."""

SCRIPTS = {
    "heavy": "--" + "x" * 1_000_000 + "\nerror('heavy')",
    "heavy_fault": "x = = " + "y" * 1_000_000,
    "spinning": _SPIN,
    "stuck": _STUCK,
    "circle": "return require('circle')",
    "greedy": "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end",
    "asks": "return function(ctx) while true do ctx:get_device('x') end end",
    "false": "return false",
    "meta": "return setmetatable({}, {__index = function() while true do end end})",
}
"""Modules: name, and text."""

FILES: tuple[tuple[str, str], ...] = (
    ("spin", _SPIN),
    ("stuck", _STUCK),
    ("greedy", SCRIPTS["greedy"]),
    ("asks", "ctx = ctx or require('asks') ctx({get_device = function() end})"),
    ("requires", "require('spinning')"),
    ("requires_stuck", "require('stuck')"),
    ("deep", "local t = {} for _ = 1, 40 do t = {t} end return t"),
    ("circle", "local t = {id = 'x', name = 'y', execute = print} t.t = t return t"),
    ("wide", "local t = {id = 'x', name = 'y', execute = print} for i = 1, 9000 do t['f' .. i] = i end return t"),
    ("near", "local t = {} for i = 1, 9000 do t['executed' .. i] = i end return t"),
    ("big", "return {id = ('x'):rep(250000), name = ('y'):rep(250000), execute = print}"),
    ("binary", "\x1bLua"),
    ("nothing", ""),
    ("number", "return 5"),
    ("meta", "return setmetatable({}, {__index = function() while true do end end})"),
    ("wrong", "return {id = {}, name = function() end, execute = 'x', mode = {type = {}, max = {}}}"),
    ("mode", "return {id = 'x', name = 'x', execute = print, mode = {type = 'parallel', max = 1 << 62, more = 1}}"),
    ("float", "return {id = 'x', name = 'x', execute = print, mode = {type = 'queued', max = 1e308}}"),
    ("printing", "while true do print(('x'):rep(8000)) end"),
    ("failing", "error(setmetatable({}, {__tostring = function() while true do end end}))"),
    ("quotes", "return {id = '\\0\\n\\27', name = '\\255', execute = print}"),
    ("environment", "_G.execute = 1 setmetatable(_G, {__newindex = error}) x = 1"),
    ("strings", "local s = 'x' for _ = 1, 30 do s = s .. s end"),
    ("compile", "return " + "(" * 100_000),
    ("compile_or", "return " + "a or " * 200_000 + "a"),
    ("lines", "\n" * 1_000_000 + "x = = 1"),
    ("coroutine", "return coroutine.wrap(function() while true do coroutine.yield() end end)()"),
)
"""Whole files of a scene or an automation: name, and text. None of them may be loaded."""

TRIGGER = "trigger = {type = 'interval', every_secs = 3600}"

AUTOMATIONS: tuple[tuple[str, str], ...] = (
    *(
        (name, f"{TRIGGER}, conditions = {conditions}")
        for name, conditions in (
            (
                "any_wide",
                "(function() local t = {} for i = 1, 3000 do t[i] = {type = 'variable', name = 'a' .. i,"
                " equals = i} end return {{type = 'any', conditions = t}} end)()",
            ),
            (
                "deep",
                "(function() local t = {type = 'weekday', days = {'mon'}} for _ = 1, 7 do t = {type = 'none',"
                " conditions = {t, t}} end return {t} end)()",
            ),
            ("number", "{{type = 'variable', name = 'a', above = 1e308, below = -1e308}}"),
            (
                "room",
                "{{type = 'room_state', room_id = ('x'):rep(256), min_devices = 1 << 62, max_devices = 1 << 62}}",
            ),
            ("equals", "{{type = 'variable', name = 'a', equals = ('x'):rep(200000)}}"),
            (
                "for_secs",
                "{{type = 'device_state', device_id = 'a', attribute = 'power', equals = 'on', for_secs = 1e308}}",
            ),
        )
    ),
    ("cooldown", f"{TRIGGER}, state = {{cooldown_secs = 1e308, dedupe_window_secs = 1e308}}"),
    (
        "cooldown_whole",
        f"{TRIGGER}, state = {{cooldown_secs = math.maxinteger, dedupe_window_secs = math.maxinteger}}",
    ),
    ("every_far", "trigger = {type = 'interval', every_secs = 1e308}"),
    ("every_whole", "trigger = {type = 'interval', every_secs = math.maxinteger}"),
    ("every_short", "trigger = {type = 'interval', every_secs = 1e-300}"),
    ("every_short_too", "trigger = {type = 'interval', every_secs = 1e-9}, state = {resumable_schedule = true}"),
    (
        "debounce",
        "trigger = {type = 'device_state_change', device_id = 'elgato_lights:light:0', attribute = 'power',"
        " debounce_secs = 1e308}",
    ),
    ("offset", "trigger = {type = 'sunset', offset_mins = math.maxinteger}"),
    ("cron_years", "trigger = {type = 'cron', expression = '0 0 0 29 2 SUN 2999'}"),
    ("cron_never", "trigger = {type = 'cron', expression = '0 0 0 31 2 *'}"),
    ("cron_list", "trigger = {type = 'cron', expression = ('1,'):rep(100000) .. '1 * * * * *'}"),
    ("cron_step", "trigger = {type = 'cron', expression = '0-59/99999999999999999999 * * * * *'}"),
    ("cron_zero", "trigger = {type = 'cron', expression = '*/0 * * * * *'}"),
    ("date_far", "trigger = {type = 'date', on = '9999-12-31', time = '23:59'}"),
    (
        "many",
        "triggers = (function() local t = {} for i = 1, 3000 do t[i] = {type = 'interval', every_secs = 3600 + i}"
        " end return t end)()",
    ),
)
"""Automations whose `execute` does nothing: name, and the fields. Each is loaded, or refused with a sentence."""
