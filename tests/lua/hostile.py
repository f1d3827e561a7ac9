"""Hostile and broken scripts, and how each must end."""

from __future__ import annotations

CPU = (
    r"ran for [\d.]+ s without waiting and (?:was|could not be) stopped"
    r"|the Lua worker was killed, because .*could not be stopped|the Lua worker gave no sign of life"
)
"""Stopped by the hook, else with its worker; or another of the batch was."""

MEMORY = r"needed more than [\d.]+ MB of memory and was stopped"
BACKSTOP = r"took more than [\d.]+ s in all"
OVERFLOW = r"stack overflow|C stack overflow|too many nested|memory"

_BIG = "local big = ('x'):rep(1000000)\n"

HOSTILE: tuple[tuple[str, str, str], ...] = (
    # loops
    ("loop", "while true do end", CPU),
    ("goto", "::again:: goto again", CPU),
    ("repeat", "repeat until false", CPU),
    ("long for", "for _ = 1, math.maxinteger do end", CPU),
    ("recursion by tail calls", "local function f() return f() end f()", CPU),
    ("loop in pcall, for ever", "while true do pcall(function() while true do end end) end", CPU),
    ("pcall of pcall", "local function f() pcall(f) end while true do pcall(f) end", CPU),
    ("pcall nested deeply", "local function f() while true do pcall(f) end end f()", CPU),
    ("pcall that fails at once", "while true do pcall(error) end", CPU),
    ("pcall in tail position", "local function f() return pcall(f) end while true do f() end", CPU),
    ("xpcall with a looping handler", "while true do xpcall(error, function() while true do end end) end", CPU),
    ("xpcall of xpcall", "local function h() return xpcall(error, h) end while true do h() end", CPU),
    (
        "handler that calls itself protected",
        "local function h() while true do pcall(h) end end xpcall(error, h)",
        CPU,
    ),
    (
        "handler of the stop",
        "while true do xpcall(function() while true do end end, function() return 1 end) end",
        CPU,
    ),
    # coroutines
    ("loop in a coroutine", "coroutine.wrap(function() while true do end end)()", CPU),
    (
        "loop in coroutines, for ever",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        CPU,
    ),
    (
        "resume in pcall, for ever",
        "while true do local c = coroutine.create(function() while true do end end) pcall(coroutine.resume, c) end",
        CPU,
    ),
    (
        "tower of coroutines",
        "local function f() while true do coroutine.resume(coroutine.create(f)) end end f()",
        CPU + "|" + MEMORY,
    ),
    (
        "generator without end",
        "for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end",
        CPU,
    ),
    ("coroutines created in a loop", "while true do coroutine.create(function() end) end", CPU),
    (
        "coroutine.close in a loop",
        "while true do local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = function()"
        " while true do end end}) coroutine.yield() end) coroutine.resume(c) pcall(coroutine.close, c) end",
        CPU,
    ),
    ("wrap in wrap", "local function f() while true do pcall(coroutine.wrap(f)) end end f()", CPU + "|" + MEMORY),
    (
        "yield values without end",
        "local c = coroutine.wrap(function() while true do coroutine.yield(1, 2, 3) end end) while true do c() end",
        CPU,
    ),
    # metamethods
    ("loop in __index", "local t = setmetatable({}, {__index = function() while true do end end}) return t.x", CPU),
    (
        "__index of itself",
        "local t = {} setmetatable(t, {__index = function(_, k) return t[k .. 'x'] end}) return t.x",
        OVERFLOW,
    ),
    ("loop in __tostring", "tostring(setmetatable({}, {__tostring = function() while true do end end}))", CPU),
    (
        "loop in __close",
        "do local x <close> = setmetatable({}, {__close = function() while true do end end}) end",
        CPU,
    ),
    (
        "loop in many __close",
        "local function f(n) local x <close> = setmetatable({}, {__close = function() while true do end end})"
        " if n > 0 then f(n - 1) end end f(10000)",
        CPU + "|" + OVERFLOW,
    ),
    (
        "loop in __eq",
        "local m = {__eq = function() while true do end end} return setmetatable({}, m) == setmetatable({}, m)",
        CPU,
    ),
    (
        "loop in __lt in sort",
        "local m = {__lt = function() while true do end end} table.sort({setmetatable({}, m), setmetatable({}, m)})",
        CPU,
    ),
    ("loop in __len", "return #setmetatable({}, {__len = function() while true do end end})", CPU),
    ("loop in __concat", "return setmetatable({}, {__concat = function() while true do end end}) .. ''", CPU),
    ("loop in __call", "setmetatable({}, {__call = function() while true do end end})()", CPU),
    ("loop in __pairs", "for _ in pairs(setmetatable({}, {__pairs = function() while true do end end})) do end", CPU),
    ("ipairs without end", "for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end", CPU),
    (
        "concat through __index",
        "table.concat(setmetatable({}, {__index = function() return '' end}), '', 1, 1 << 60)",
        CPU,
    ),
    (
        "loop in the error's __tostring",
        "error(setmetatable({}, {__tostring = function() while true do end end}))",
        CPU,
    ),
    (
        "finalizer",
        "setmetatable({}, {__gc = function() while true do end end})",
        "__gc metamethods are not available",
    ),
    (
        "finalizer set later",
        "local m = {} local t = setmetatable({}, m) m.__gc = function() while true do end end"
        " t = nil collectgarbage() while true do end",
        CPU,
    ),
    (
        "finalizer through __index",
        "setmetatable({}, setmetatable({}, {__index = {__gc = function() while true do end"
        " end}})) collectgarbage() error('alive')",
        "alive",
    ),
    # callbacks
    ("loop in gsub", "(('x'):rep(10)):gsub('x', function() while true do end end)", CPU),
    ("gsub in gsub", "local function f(x) return (x:gsub('.', f)) end f('x')", OVERFLOW),
    (
        "gsub through a table's __index",
        "('x'):gsub('x', setmetatable({}, {__index = function() while true do end end}))",
        CPU,
    ),
    ("loop in a comparator", "table.sort({3, 2, 1}, function() while true do end end)", CPU),
    (
        "comparator that is wrong",
        "local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function() return true end) end",
        "invalid order function",
    ),
    ("loop in a reader of load", "load(function() while true do end end)", CPU),
    ("reader of load without end", "load(function() return 'x = 1 ' end)", MEMORY),
    ("iterator without end", "for _ in function() return 1 end do end", CPU),
    # loading
    ("load in a loop", "while true do load('return ' .. ('1 + '):rep(50000) .. '1') end", CPU),
    ("deep nesting in load", "while true do load(('('):rep(1000) .. (')'):rep(1000)) end", CPU),
    ("loop in loaded text", "while true do pcall(load('while true do end')) end", CPU),
    ("too many locals", "while true do load(('local a '):rep(300)) end", CPU),
    ("require in a loop", "while true do pcall(require, 'missing') end", CPU),
    ("require of many names", "local n = 0 while true do n = n + 1 pcall(require, 'm' .. n) end", CPU),
    # work in C
    ("rep in a loop", "while true do local _ = ('x'):rep(5000000) end", CPU),
    ("rep of nothing", "while true do local _ = (''):rep(1 << 60) end", CPU),
    ("rep far beyond", "return ('x'):rep(1 << 60)", "resulting string too large"),
    ("rep beyond memory", "return ('x'):rep(1 << 30)", MEMORY),
    ("upper in a loop", _BIG + "while true do local _ = big:upper() end", CPU),
    ("reverse in a loop", _BIG + "while true do local _ = big:reverse() end", CPU),
    ("format in a loop", _BIG + "while true do local _ = ('%q'):format(big) end", CPU),
    ("pack in a loop", _BIG + "while true do local _ = string.pack('s4', big) end", CPU),
    ("unpack in a loop", _BIG + "while true do local _ = string.unpack('z', big .. '\\0') end", CPU),
    ("utf8.len in a loop", _BIG + "while true do local _ = utf8.len(big) end", CPU),
    ("utf8.codes in a loop", _BIG + "while true do for _ in utf8.codes(big) do end end", CPU),
    (
        "comparison of long strings",
        _BIG + "local a, b = big .. 'a', big .. 'b' while true do local _ = a < b end",
        CPU,
    ),
    ("concatenation in a loop", _BIG + "while true do local _ = big .. 'x' end", CPU),
    (
        "table.concat in a loop",
        "local t = {} for i = 1, 100000 do t[i] = 'abc' end while true do table.concat(t) end",
        CPU,
    ),
    ("sort in a loop", "local t = {} for i = 1, 100000 do t[i] = i end while true do table.sort(t) end", CPU),
    ("insert at the front", "local t = {} while true do table.insert(t, 1, 1) end", CPU + "|" + MEMORY),
    (
        "unpack in a loop of tables",
        "local t = {} for i = 1, 200000 do t[i] = i end while true do select('#', table.unpack(t)) end",
        CPU + "|too many results|" + OVERFLOW,
    ),
    (
        "next over a hole",
        "local t = {} for i = 1, 100000 do t['k' .. i] = 1 end for k in pairs(t) do t[k] = nil end"
        " while true do next(t) end",
        CPU,
    ),
    (
        "collectgarbage in a loop",
        "local t = {} for i = 1, 50000 do t[i] = {} end while true do collectgarbage() end",
        CPU,
    ),
    ("os.date in a loop", "local f = ('%c'):rep(1000) while true do os.date(f) end", CPU),
    ("os.time in a loop", "while true do os.time({year = 2026, month = 1, day = 1}) end", CPU),
    ("tostring in a loop", "while true do tostring(1.5) end", CPU),
    ("move far", "table.move({}, 1, math.maxinteger - 1, 2)", CPU),
    ("move through the whole range", "table.move({}, math.mininteger, math.maxinteger, 1)", "too large|too many"),
    (
        "insert into a liar",
        "table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)",
        CPU,
    ),
    (
        "insert into one that lies the second time",
        "local n = 0 table.insert(setmetatable({}, {__len = function()"
        " n = n + 1 return n == 1 and 3 or 1 << 60 end}), 1, 1) error('alive')",
        "alive",
    ),
    (
        "remove from one that lies the second time",
        "local n = 0 table.remove(setmetatable({}, {__len = function()"
        " n = n + 1 return n == 1 and 3 or 1 << 60 end}), 1) error('alive')",
        "alive",
    ),
    (
        "sort of a liar",
        "table.sort(setmetatable({}, {__len = function() return 1 << 60 end}))",
        "array too big",
    ),
    (
        "concat of a liar",
        "local n = 0 table.concat(setmetatable({}, {__index = function() return 'x' end,"
        " __len = function() return 1 << 60 end}))",
        CPU + "|" + MEMORY,
    ),
    (
        "unpack of a liar",
        "table.unpack(setmetatable({}, {__len = function() return 1 << 60 end}))",
        "too many results to unpack",
    ),
    ("unpack of far more than fits", "table.unpack({}, 1, 100000000)", "too many results to unpack"),
    # patterns
    ("catastrophic find", "(('a'):rep(100000)):find(('a*'):rep(10) .. 'b')", CPU),
    ("catastrophic match", "(('a'):rep(50000)):match('.-.-.-.-b')", CPU),
    ("catastrophic gmatch", "for _ in (('a'):rep(50000)):gmatch('.-.-x') do end", CPU),
    ("catastrophic gsub", "(('a'):rep(50000)):gsub('(a*)*(a*)b', '')", CPU + "|malformed"),
    ("many options", "(('a'):rep(64)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b')", CPU),
    ("balance on many openings", "(('('):rep(200000)):find('%b()')", CPU),
    ("captures again and again", "(('a'):rep(50000)):find('(.-)%1b')", CPU),
    (
        "plain find without end",
        "local a, b = ('a'):rep(1000000), ('a'):rep(500000) .. 'b' while true do a:find(b, 1, true) end",
        CPU,
    ),
    (
        "plain find in a loop",
        "local a, b = ('a'):rep(60000), ('a'):rep(30000) .. 'b' while true do a:find(b, 1, true) end",
        CPU,
    ),
    ("find in a loop", _BIG + "while true do big:find('y') end", CPU),
    ("gmatch anchored, a caret to it", "for _ in (('^a'):rep(50000)):gmatch('^.-.-x') do end", CPU),
    ("frontier with repetitions", "(('a'):rep(50000)):find('%f[a]a*a*b')", CPU),
    ("sets with repetitions", "(('a]'):rep(50000)):find('[]a]*[%]a]*b')", CPU),
    # memory
    ("table without end", "local t = {} while true do t[#t + 1] = #t end", MEMORY),
    (
        "table without end in pcall",
        "while true do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end",
        MEMORY,
    ),
    ("string that doubles", "local s = 'x' while true do s = s .. s end", MEMORY),
    ("strings that are kept", "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end", MEMORY),
    ("coroutines that are kept", "local t = {} while true do t[#t + 1] = coroutine.create(print) end", MEMORY),
    (
        "closures that are kept",
        "local t = {} while true do local x = #t t[#t + 1] = function() return x end end",
        MEMORY,
    ),
    (
        "memory in a coroutine",
        "coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end)()",
        MEMORY,
    ),
    (
        "memory caught in a coroutine",
        "while true do pcall(coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end)) end",
        MEMORY,
    ),
    ("memory in xpcall", "xpcall(function() local t = {} while true do t[#t + 1] = {} end end, print)", MEMORY),
    (
        "memory in a comparator",
        "table.sort({1, 2, 3}, function() local t = {} while true do t[#t + 1] = {} end end)",
        MEMORY,
    ),
    (
        "memory in __close",
        "do local x <close> = setmetatable({}, {__close = function() local t = {}"
        " while true do t[#t + 1] = {} end end}) end",
        MEMORY,
    ),
    ("memory in load", "load('return {' .. ('{},'):rep(300000) .. '}')()", MEMORY + "|larger than|overflow"),
    (
        "memory in __tostring of the error",
        "error(setmetatable({}, {__tostring = function() local t = {} while true do t[#t + 1] = {} end end}))",
        MEMORY,
    ),
    (
        "memory in captures",
        "local s = ('x'):rep(3000000) local t = {} for w in s:gmatch('.') do t[#t + 1] = {w} end",
        MEMORY,
    ),
    ("memory by a number's width", "while true do string.format('%99.99f', 1e300) end", CPU),
    ("huge error message", "error(('x'):rep(5000000))", "x{100}"),
    ("deep recursion", "local function f() return 1 + f() end f()", OVERFLOW),
    (
        "deep recursion, caught for ever",
        "local function f() return 1 + f() end while true do pcall(f) end",
        CPU + "|" + MEMORY,
    ),
    (
        "recursion through metamethods",
        "local m = {} m.__add = function(a, b) return a + b end return setmetatable({}, m) + 1",
        OVERFLOW,
    ),
    (
        "recursion through tostring",
        "local m = {} m.__tostring = function(x) return tostring(x) end tostring(setmetatable({}, m))",
        OVERFLOW,
    ),
    # ctx
    ("commands in a loop", "while true do ctx:command('a', {}) end", BACKSTOP),
    ("commands in pcall in a loop", "while true do pcall(ctx.command, ctx, 'a', {}) end", BACKSTOP),
    ("command that never returns", "ctx:invoke('hang')", BACKSTOP),
    ("command that never returns, in pcall", "while true do pcall(ctx.invoke, ctx, 'hang') end", BACKSTOP),
    ("sleep of nothing in a loop", "while true do ctx:sleep(0) end", BACKSTOP),
    ("look-ups in a loop", "while true do ctx:list_devices() end", BACKSTOP),
    ("log in a loop", "while true do ctx:log('info', 'x') end", CPU),
    ("print in a loop", "while true do print('x') end", CPU),
    ("long lines in a loop", _BIG + "while true do print(big) end", CPU),
    (
        "long fields in a loop",
        "local t = {} for i = 1, 1000 do t[i] = 'x' end while true do ctx:log('info', 'x', {t = t}) end",
        CPU,
    ),
    ("argument that is too large", "ctx:invoke('a', {x = ('x'):rep(2000000)})", "is larger than 256 KiB"),
    ("argument that holds itself", "local t = {} t.t = t ctx:invoke('a', t)", "holds itself"),
    (
        "argument of many tables",
        "local t = {} for i = 1, 200000 do t[i] = {1, 2} end ctx:invoke('a', {t = t})",
        "is larger than 256 KiB|" + MEMORY,
    ),
    ("answer that is too large", "ctx:invoke('much')", "the answer is larger than 4 MiB"),
    ("answers that are kept", "local t = {} while true do t[#t + 1] = ctx:invoke('some') end", MEMORY),
    (
        "memory full, then a call",
        "local t = {} pcall(function() while true do t[#t + 1] = ('x'):rep(1000) .. #t end end) ctx:list_devices()",
        MEMORY,
    ),
    (
        "almost full, then a call",
        "local t = {} for i = 1, 15 do t[i] = ('x'):rep(1000000) .. i end"
        " while true do t[#t + 1] = ctx:invoke('some') end",
        MEMORY,
    ),
)
"""Name, body of execute, and the pattern of the error."""

FILES: tuple[tuple[str, str, str], ...] = (
    ("loop at the top", "while true do end", CPU),
    ("memory at the top", "local t = {} while true do t[#t + 1] = {} end", MEMORY),
    (
        "loop in the table's metatable",
        "return setmetatable({}, {__index = function() while true do end end})",
        CPU + "|execute must be a function",
    ),
    ("bytecode", "\x1bLua", "attempt to load a binary chunk"),
    ("not text", "\x00\x01", "unexpected symbol"),
    ("nothing", "", "must return a table"),
    ("deep nesting", "return " + "{" * 300 + "}" * 300, "overflow|levels"),
)
"""As above, whole files, which must end so when they are described, too."""
