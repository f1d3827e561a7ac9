"""More hostile scripts: whatever makes Lua's own C work for long, or leaves its hook behind. How each ends is its own
matter; that it ends in time, and that no other execution is affected, is the test's.
"""

from __future__ import annotations

_BIG = "local big = ('x'):rep(4000000) "
_MANY = "local t = {} for i = 1, 300000 do t[i] = i end "
_SPIN = "while true do end"

_DISPOSAL = (
    "local m = getmetatable('') setmetatable(m, {__newindex = function() while true do end end}) m.__index = nil",
    "setmetatable(getmetatable(''), {__newindex = function() while true do end end, __index = function() end})",
    "getmetatable('').__close = function() while true do end end local x <close> = 'x'",
    "getmetatable('').__gc = function() while true do end end",
    "setmetatable({}, setmetatable({}, {__index = function(_, k) if k == '__gc' then while true do end end end}))",
    "local t = setmetatable({}, {}) getmetatable(t).__gc = function() while true do end end t = nil collectgarbage()",
    "local x <close> = setmetatable({}, {__close = function() while true do end end}) error('out')",
    "local m = {} m.__close = function() local y <close> = setmetatable({}, m) end local x <close> ="
    " setmetatable({}, m)",
    "local m = {__mode = 'k', __index = function() while true do end end} setmetatable(getmetatable(''),"
    " m) local _ = ('').x",
)

_COROUTINES = (
    "local function f() return coroutine.wrap(f)() end f()",
    "local c c = coroutine.create(function() while true do pcall(coroutine.close, c) end end) coroutine.resume(c)",
    "local function deep(n) if n == 0 then while true do end end return coroutine.wrap(deep)(n - 1) end deep(150)",
    "local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() while true do end"
    " end}) coroutine.yield() end) coroutine.resume(c) coroutine.close(c)",
    "local function f() local x <close> = setmetatable({}, {__close = function() f() end}) return f() end pcall(f)",
    "local t = {} while true do local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c)"
    " t[#t + 1] = c end",
    "local function f(...) return select('#', ...) + f(1, ...) end pcall(f) while true do pcall(f) end",
    "while true do coroutine.wrap(function() local x <close> = setmetatable({}, {__close = error})"
    " error() end)() end",
    "local c = coroutine.wrap(function() while true do coroutine.yield(table.unpack({}, 1, 200000)) end end)"
    " while true do c() end",
    "local main = coroutine.running() while true do pcall(coroutine.resume, main) pcall(coroutine.close, main) end",
    "local function h(e) return h(e) end while true do xpcall(error, h) end",
    "local function h() error('again') end while true do xpcall(error, h) end",
    "xpcall(function() local function f() return 1 + f() end f() end, function() while true do end end)",
    "local function f() local ok = pcall(f) while true do end end f()",
    "local f f = function() pcall(pcall, f) pcall(f) end f() while true do f() end",
    "for i = 1, 200 do coroutine.wrap(function() pcall(string.rep, 'x', 1 << 40) coroutine.yield() end)() end "
    + _SPIN,
    "local function f(n) if n > 190 then while true do end end local _ = ('x'):gsub('.', function() f(n"
    " + 1) end) end f(1)",
    "local function f(n) table.sort({1, 2, 3}, function() f(n + 1) while true do end end) end f(1)",
)

_TABLES = (
    "local t = {} for i = 1, 60000 do t[i * 262143] = i end while true do for i = 1, 60000 do local _ ="
    " t[i * 262143] end end",
    "local t = {} for i = 1, 60000 do t[i * 2.0 ^ 40] = i end while true do for k in pairs(t) do t[k] ="
    " nil t[k] = 1 end end",
    "local t = {} for i = 1, 300000 do t[i + 0.5] = i end while next(t) do t[next(t)] = nil end",
    "local k = ('k'):rep(4000000) local t = {} for _ = 1, 2000 do t = setmetatable({}, {__index = t}) end"
    " while true do local _ = t[k] end",
    "local t = {} for _ = 1, 1990 do t = setmetatable({}, {__index = t}) end while true do local _ = t.x end",
    "local t = {} for _ = 1, 1990 do t = setmetatable({}, {__newindex = t}) end while true do t.x = nil end",
    "local e = setmetatable({}, {__mode = 'k'}) local a = {} for _ = 1, 100000 do local b = {} e[a] = b a = b end"
    " while true do collectgarbage() end",
    "local e = setmetatable({}, {__mode = 'kv'}) while true do e[{}] = {} collectgarbage('step') end",
    _MANY + "while true do table.move(t, 1, #t, 2) end",
    _MANY + "while true do table.concat(t, ', ') end",
    _MANY + "table.sort(t, function(a, b) return math.random() < 0.5 end)",
    _MANY + "while true do table.sort(t, math.ult) end",
    "table.move({}, 1.0, 1e15, 2)",
    "table.move({}, -(1 << 62), 1 << 61, 1)",
    "table.move(setmetatable({}, {__index = function() return 1 end}), 1, 1 << 40, 1, setmetatable({},"
    " {__newindex = print}))",
    "table.concat(setmetatable({}, {__index = function() return 'x' end}), '', 1, 1 << 40)",
    "table.concat({}, 'x', 1, '9007199254740993')",
    "table.unpack({}, 1, 1e6)",
    "while true do pcall(table.unpack, {}, 1, 999999) end",
    "table.insert(setmetatable({}, {__len = function() return 1e15 end}), 1, 1)",
    "table.remove(setmetatable({}, {__len = function() return 1 << 50 end}), 1)",
    "table.sort(setmetatable({}, {__len = function() return 2147483646 end, __index = function(_, k) return k end}))",
    "while true do table.pack(table.unpack({}, 1, 250000)) end",
    "for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end",
    "for k, v in next, setmetatable({}, {}) do end local t = {} t[1] = 1 for k in pairs(t) do t[k + 1] = 1 end",
    "local t = {} for i = 1, 24 do t[i] = {} for j = 1, 20000 do t[i][j] = j end end " + _SPIN,
    "while true do select(-1, table.unpack({}, 1, 200000)) end",
    "local t = table.pack(table.unpack({}, 1, 100000)) while true do select('#', table.unpack(t, 1, t.n)) end",
)

_STRINGS = (
    _BIG + "local s = ('9'):rep(4000000) while true do local _ = s + 0 end",
    "local s = ('9'):rep(3000000) while true do pcall(function() return s // 1 end) end",
    _BIG + "local a, b = big .. 'a', big .. 'b' while true do local _ = a < b end",
    _BIG + "local a, b = big .. 'a', big .. 'a' while true do local _ = a == b end",
    "local a = ('\\0'):rep(4000000) local b = a .. 'x' while true do local _ = a < b end",
    _BIG + "while true do big:upper() end",
    _BIG + "while true do big:reverse():lower() end",
    _BIG + "while true do local _ = big:byte(1, 200000) end",
    _BIG + "while true do string.char(big:byte(1, 200000)) end",
    _BIG + "while true do big:sub(2) end",
    _BIG + "while true do local _ = #(big .. 'x') end",
    "(('a'):rep(1000000)):gsub('a', ('%1'):rep(1000000))",
    "(('a'):rep(100000)):gsub('(a)', ('%1'):rep(100))",
    "(('a'):rep(300)):gsub('', ('x'):rep(100000))",
    "while true do string.find(123456789012, ('.-'):rep(30) .. 'x') end",
    "local n = 10 ^ 15 // 1 | 0 while true do string.find(n, '1') end",
    "(('a'):rep(2000000)):find(('a'):rep(1000000) .. 'b', 1, true)",
    "(('ab'):rep(1000000)):find(('ab'):rep(500000) .. 'c', 1, true)",
    "(('a'):rep(3000000)):find('[' .. ('b'):rep(1000000) .. ']')",
    "(('a'):rep(1000000)):find('[^' .. ('%w'):rep(300000) .. ']')",
    "(('a'):rep(100000)):find('.-.-.-.-.-b')",
    "(('a'):rep(100000)):match('(.-)(.-)(.-)(.-)x')",
    "(('('):rep(1000000)):find('%b()')",
    "(('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(41))",
    "for _ in (('a'):rep(200000)):gmatch('(a*)(a*)(a*)b') do end",
    "(('a'):rep(200000)):gsub('a*a*a*b', '')",
    "(('a'):rep(200000)):find('(.*)(.*)(.*)%1%2%3x')",
    "(('x'):rep(200000)):find('%f[a].*%f[b].*%f[c].*d')",
    "(('a'):rep(220000)):match(('(a*)'):rep(31) .. 'b')",
    "('x'):rep(1e9)",
    "('x'):rep(1e9, ('y'):rep(1e6))",
    "(''):rep(1e18)",
    "(''):rep(math.maxinteger)",
    "(''):rep(1e12, '')",
    "while true do ('x'):rep(15000000) end",
    _BIG + "while true do string.format('%.0s', big) end",
    _BIG + "while true do string.format('%q', big) end",
    _BIG + "while true do string.format('%s', setmetatable({}, {__tostring = function() return big end})) end",
    _BIG + "while true do string.format('%-99s', big) end",
    "while true do string.format('%99.99f', -1e308) end",
    "while true do string.pack(('s'):rep(1000), table.unpack((function() local t = {} for i = 1, 1000 do"
    " t[i] = 'x' end"
    " return t end)())) end",
    "while true do string.pack('!16' .. ('i8Xi16'):rep(1000), table.unpack({}, 1, 0)) end",
    "string.pack('c2000000000', 'x')",
    "while true do pcall(string.pack, 'c15000000', 'x') end",
    _BIG + "while true do string.unpack(('z'):rep(200), big) end",
    _BIG + "while true do string.unpack('!1' .. ('B'):rep(100000), big) end",
    "while true do string.packsize(('i8'):rep(200000)) end",
    "while true do utf8.char(table.unpack((function() local t = {} for i = 1, 200000 do t[i] = 8364 end"
    " return t end)())) end",
    "local s = ('€'):rep(1000000) while true do utf8.len(s) end",
    "local s = ('€'):rep(1000000) while true do utf8.codepoint(s, 1, 300000) end",
    "local s = ('€'):rep(1000000) while true do utf8.offset(s, 999999) end",
    "local s = ('€'):rep(1000000) while true do for _ in utf8.codes(s) do end end",
    "local s = ('9'):rep(200) while true do tonumber(s, 10) tonumber(s) end",
    "local s = '0x' .. ('f'):rep(4000000) while true do tonumber(s) end",
    "local s = (' '):rep(4000000) .. '1' while true do tonumber(s) end",
    "local s = '0.' .. ('0'):rep(4000000) .. '1' while true do local _ = s * 1 end",
    _BIG + "while true do tostring(big) print(big) end",
    _BIG + "error(big)",
    "error(setmetatable({}, {__tostring = function() while true do end end}))",
    "error(setmetatable({}, {__tostring = function() return 5 end}))",
    "error(setmetatable({}, {__name = ('x'):rep(1000000)}))",
    "os.date(('%c'):rep(100000))",
    "while true do os.date(('%c'):rep(100)) end",
    "while true do os.time({year = 2000, month = 1e9 // 1 | 0, day = 1}) end",
)

_COMPILER = (
    "load('return ' .. ('a or '):rep(200000) .. 'a')",
    "load('return ' .. ('a .. '):rep(100000) .. 'a')",
    "load('return ' .. ('('):rep(200000))",
    "load('return ' .. ('{'):rep(200000))",
    "load('return ' .. ('-'):rep(1000000) .. '1')",
    "load('return ' .. ('not '):rep(1000000) .. '1')",
    "load('return f' .. ('()'):rep(200000))",
    "load(('if x then '):rep(100000))",
    "load(('do '):rep(100000))",
    "load(('local a = 1 '):rep(100000))",
    "load(('x = x '):rep(300000))",
    "load('local t = {' .. ('1,'):rep(1000000) .. '}')",
    "load('return \"' .. ('\\\\u{10FFFF}'):rep(200000) .. '\"')",
    "load('--[' .. ('='):rep(3000000))",
    "load(('::a'):rep(1) .. '::' .. (' goto a'):rep(200000))",
    "load((function() local s = {} for i = 1, 50000 do s[i] = '::l' .. i .. '::' end return table.concat(s) end)())",
    "load((function() local s = {} for i = 1, 100000 do s[i] = 'x' .. i .. '=1' end return"
    " table.concat(s, ' ') end)())",
    "while true do load('return function() ' .. ('x() '):rep(10000) .. 'end') end",
    "local function r() return ('x=1 '):rep(10000) end load(r)",
    "load(function() while true do end end)",
    "load(setmetatable({}, {__call = function() while true do end end}))",
    "load('\\27Lua' .. ('\\0'):rep(1000))",
)

_CROSSING = (
    "local s = ('x'):rep(250000) while true do ctx:command(s, {capability = 'power', action = 'on'}) end",
    "local s = ('x'):rep(250000) for i = 1, 200 do pcall(ctx.command, ctx, s .. i, {capability = s, action = s}) end "
    + _SPIN,
    "local s = ('\\n'):rep(250000) while true do pcall(ctx.invoke, ctx, s, {}) end",
    "local t = {} for i = 1, 5000 do t['field' .. i] = i end while true do pcall(ctx.command, ctx, 'a', t) end",
    "local t = {} for _ = 1, 30 do t = {t, t} end ctx:invoke('a', {t = t})",
    "local t = {} for _ = 1, 31 do t = {t} end while true do ctx:invoke('a', {t = t}) end",
    "while true do ctx:log('info', ('x'):rep(100000), {a = ('y'):rep(5000)}) end",
    "while true do ctx:log('info', '\\27[2J\\0') end",
    "local t = setmetatable({}, {__index = function() while true do end end}) ctx:invoke('a', t)",
    "local t = setmetatable({}, {__len = function() return 1 << 40 end}) ctx:invoke('a', {t = t})",
    "table.sort({3, 2, 1}, function() ctx:invoke('hang') end)",
    "coroutine.wrap(function() ctx:invoke('hang') end)()",
    "tostring(setmetatable({}, {__tostring = function() ctx:sleep(0) while true do end end}))",
    "while true do coroutine.wrap(function() ctx:get_device('x') end)() end",
    "local t = {} while true do t[#t + 1] = coroutine.create(function() ctx:invoke('some') end)"
    " coroutine.resume(t[#t]) end",
    "ctx.command = function() while true do end end ctx:command()",
    "setmetatable(ctx, {__index = function() while true do end end}) local _ = ctx.nothing",
    "for _, f in pairs(ctx) do pcall(f) pcall(f, ctx) pcall(f, ctx, {}, {}) end " + _SPIN,
    "while true do pcall(require, ('x'):rep(100000)) pcall(require, 'a.b') end",
    "while true do pcall(require, '../' .. ('x'):rep(1000)) end",
)

_COLLECTOR = (
    "collectgarbage('stop') while true do local _ = {} end",
    "collectgarbage('generational') local t = {} while true do t[#t % 100000 + 1] = {{}} end",
    "collectgarbage('incremental', 1000, 1000, 20) local t = {} while true do t[#t + 1] = {} end",
    "local t = {} for i = 1, 100000 do t[i] = {} end while true do collectgarbage('generational')"
    " collectgarbage('incremental') end",
    "while true do collectgarbage('step', 2147483647) end",
    "local t = {} for i = 1, 100000 do t[i] = function() return i end end while true do collectgarbage() end",
    "collectgarbage('setpause', 0) collectgarbage('setstepmul', 1) while true do local _ = {('x'):rep(100)} end",
    "local t = {} for i = 1, 3000 do t[i] = ('x'):rep(5000) .. i end while true do collectgarbage('collect') end",
)

KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("disposal", _DISPOSAL),
    ("coroutines", _COROUTINES),
    ("tables", _TABLES),
    ("strings", _STRINGS),
    ("compiler", _COMPILER),
    ("crossing", _CROSSING),
    ("collector", _COLLECTOR),
)

ATTACKS: tuple[tuple[str, str], ...] = tuple(
    (f"{kind} {number}", body) for kind, bodies in KINDS for number, body in enumerate(bodies, 1)
)
"""Name, and body of execute."""
