-- Hostile scripts: each line is the body of a scene's execute. A line that starts with `---- ` names the kind of the
-- scripts below it. After --> come the script's name and, if known, the pattern of its error.
-- tests/attacks/scripts.py reads them.
---- hostile
while true do end --> loop => CPU
::again:: goto again --> goto => CPU
repeat until false --> repeat => CPU
for _ = 1, math.maxinteger do end --> long for => CPU
local function f() return f() end f() --> recursion by tail calls => CPU
while true do pcall(function() while true do end end) end --> loop in pcall, for ever => CPU
local function f() pcall(f) end while true do pcall(f) end --> pcall of pcall => CPU
local function f() while true do pcall(f) end end f() --> pcall nested deeply => CPU
while true do pcall(error) end --> pcall that fails at once => CPU
local function f() return pcall(f) end while true do f() end --> pcall in tail position => CPU
while true do xpcall(error, function() while true do end end) end --> xpcall with a looping handler => CPU
local function h() return xpcall(error, h) end while true do h() end --> xpcall of xpcall => CPU
local function h() while true do pcall(h) end end xpcall(error, h) --> handler that calls itself protected => CPU
while true do xpcall(function() while true do end end, function() return 1 end) end --> handler of the stop => CPU
coroutine.wrap(function() while true do end end)() --> loop in a coroutine => CPU
while true do pcall(coroutine.wrap(function() while true do end end)) end --> loop in coroutines, for ever => CPU
while true do local c = coroutine.create(function() while true do end end) pcall(coroutine.resume, c) end --> resume in pcall, for ever => CPU
local function f() while true do coroutine.resume(coroutine.create(f)) end end f() --> tower of coroutines => CPU|MEMORY
for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end --> generator without end => CPU
while true do coroutine.create(function() end) end --> coroutines created in a loop => CPU
while true do local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() while true do end end}) coroutine.yield() end) coroutine.resume(c) pcall(coroutine.close, c) end --> coroutine.close in a loop => CPU
local function f() while true do pcall(coroutine.wrap(f)) end end f() --> wrap in wrap => CPU|MEMORY
local c = coroutine.wrap(function() while true do coroutine.yield(1, 2, 3) end end) while true do c() end --> yield values without end => CPU
local t = setmetatable({}, {__index = function() while true do end end}) return t.x --> loop in __index => CPU
local t = {} setmetatable(t, {__index = function(_, k) return t[k .. 'x'] end}) return t.x --> __index of itself => OVERFLOW
tostring(setmetatable({}, {__tostring = function() while true do end end})) --> loop in __tostring => CPU
do local x <close> = setmetatable({}, {__close = function() while true do end end}) end --> loop in __close => CPU
local function f(n) local x <close> = setmetatable({}, {__close = function() while true do end end}) if n > 0 then f(n - 1) end end f(10000) --> loop in many __close => CPU|OVERFLOW
local m = {__eq = function() while true do end end} return setmetatable({}, m) == setmetatable({}, m) --> loop in __eq => CPU
local m = {__lt = function() while true do end end} table.sort({setmetatable({}, m), setmetatable({}, m)}) --> loop in __lt in sort => CPU
return #setmetatable({}, {__len = function() while true do end end}) --> loop in __len => CPU
return setmetatable({}, {__concat = function() while true do end end}) .. '' --> loop in __concat => CPU
setmetatable({}, {__call = function() while true do end end})() --> loop in __call => CPU
for _ in pairs(setmetatable({}, {__pairs = function() while true do end end})) do end --> loop in __pairs => CPU
for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end --> ipairs without end => CPU
table.concat(setmetatable({}, {__index = function() return '' end}), '', 1, 1 << 60) --> concat through __index => CPU
error(setmetatable({}, {__tostring = function() while true do end end})) --> loop in the error's __tostring => CPU
setmetatable({}, {__gc = function() while true do end end}) --> finalizer => __gc metamethods are not available
local m = {} local t = setmetatable({}, m) m.__gc = function() while true do end end t = nil collectgarbage() while true do end --> finalizer set later => CPU
setmetatable({}, setmetatable({}, {__index = {__gc = function() while true do end end}})) collectgarbage() error('alive') --> finalizer through __index => alive
(('x'):rep(10)):gsub('x', function() while true do end end) --> loop in gsub => CPU
local function f(x) return (x:gsub('.', f)) end f('x') --> gsub in gsub => OVERFLOW
('x'):gsub('x', setmetatable({}, {__index = function() while true do end end})) --> gsub through a table's __index => CPU
table.sort({3, 2, 1}, function() while true do end end) --> loop in a comparator => CPU
local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function() return true end) end --> comparator that is wrong => invalid order function
load(function() while true do end end) --> loop in a reader of load => CPU
load(function() return 'x = 1 ' end) --> reader of load without end => MEMORY
for _ in function() return 1 end do end --> iterator without end => CPU
while true do load('return ' .. ('1 + '):rep(50000) .. '1') end --> load in a loop => CPU
while true do load(('('):rep(1000) .. (')'):rep(1000)) end --> deep nesting in load => CPU
while true do pcall(load('while true do end')) end --> loop in loaded text => CPU
while true do load(('local a '):rep(300)) end --> too many locals => CPU
while true do pcall(require, 'missing') end --> require in a loop => CPU
local n = 0 while true do n = n + 1 pcall(require, 'm' .. n) end --> require of many names => CPU
while true do local _ = ('x'):rep(5000000) end --> rep in a loop => CPU
while true do local _ = (''):rep(1 << 60) end --> rep of nothing => CPU
return ('x'):rep(1 << 60) --> rep far beyond => resulting string too large
return ('x'):rep(1 << 30) --> rep beyond memory => MEMORY
local big = ('x'):rep(1000000) while true do local _ = big:upper() end --> upper in a loop => CPU
local big = ('x'):rep(1000000) while true do local _ = big:reverse() end --> reverse in a loop => CPU
local big = ('x'):rep(1000000) while true do local _ = ('%q'):format(big) end --> format in a loop => CPU
local big = ('x'):rep(1000000) while true do local _ = string.pack('s4', big) end --> pack in a loop => CPU
local big = ('x'):rep(1000000) while true do local _ = string.unpack('z', big .. '\0') end --> unpack in a loop => CPU
local big = ('x'):rep(1000000) while true do local _ = utf8.len(big) end --> utf8.len in a loop => CPU
local big = ('x'):rep(1000000) while true do for _ in utf8.codes(big) do end end --> utf8.codes in a loop => CPU
local big = ('x'):rep(1000000) local a, b = big .. 'a', big .. 'b' while true do local _ = a < b end --> comparison of long strings => CPU
local big = ('x'):rep(1000000) while true do local _ = big .. 'x' end --> concatenation in a loop => CPU
local t = {} for i = 1, 100000 do t[i] = 'abc' end while true do table.concat(t) end --> table.concat in a loop => CPU
local t = {} for i = 1, 100000 do t[i] = i end while true do table.sort(t) end --> sort in a loop => CPU
local t = {} while true do table.insert(t, 1, 1) end --> insert at the front => CPU|MEMORY
local t = {} for i = 1, 200000 do t[i] = i end while true do select('#', table.unpack(t)) end --> unpack in a loop of tables => CPU|too many results|OVERFLOW
local t = {} for i = 1, 100000 do t['k' .. i] = 1 end for k in pairs(t) do t[k] = nil end while true do next(t) end --> next over a hole => CPU
local t = {} for i = 1, 50000 do t[i] = {} end while true do collectgarbage() end --> collectgarbage in a loop => CPU
local f = ('%c'):rep(1000) while true do os.date(f) end --> os.date in a loop => CPU
while true do os.time({year = 2026, month = 1, day = 1}) end --> os.time in a loop => CPU
while true do tostring(1.5) end --> tostring in a loop => CPU
table.move({}, 1, math.maxinteger - 1, 2) --> move far => CPU
table.move({}, math.mininteger, math.maxinteger, 1) --> move through the whole range => too large|too many
table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1) --> insert into a liar => CPU
local n = 0 table.insert(setmetatable({}, {__len = function() n = n + 1 return n == 1 and 3 or 1 << 60 end}), 1, 1) error('alive') --> insert into one that lies the second time => alive
local n = 0 table.remove(setmetatable({}, {__len = function() n = n + 1 return n == 1 and 3 or 1 << 60 end}), 1) error('alive') --> remove from one that lies the second time => alive
table.sort(setmetatable({}, {__len = function() return 1 << 60 end})) --> sort of a liar => array too big
local n = 0 table.concat(setmetatable({}, {__index = function() return 'x' end, __len = function() return 1 << 60 end})) --> concat of a liar => CPU|MEMORY
table.unpack(setmetatable({}, {__len = function() return 1 << 60 end})) --> unpack of a liar => too many results to unpack
table.unpack({}, 1, 100000000) --> unpack of far more than fits => too many results to unpack
(('a'):rep(100000)):find(('a*'):rep(10) .. 'b') --> catastrophic find => CPU
(('a'):rep(50000)):match('.-.-.-.-b') --> catastrophic match => CPU
for _ in (('a'):rep(50000)):gmatch('.-.-x') do end --> catastrophic gmatch => CPU
(('a'):rep(50000)):gsub('(a*)*(a*)b', '') --> catastrophic gsub => CPU|malformed
(('a'):rep(64)):find(('a?'):rep(40) .. ('a'):rep(40) .. 'b') --> many options => CPU
(('('):rep(200000)):find('%b()') --> balance on many openings => CPU
(('a'):rep(50000)):find('(.-)%1b') --> captures again and again => CPU
local a, b = ('a'):rep(1000000), ('a'):rep(500000) .. 'b' while true do a:find(b, 1, true) end --> plain find without end => CPU
local a, b = ('a'):rep(60000), ('a'):rep(30000) .. 'b' while true do a:find(b, 1, true) end --> plain find in a loop => CPU
local big = ('x'):rep(1000000) while true do big:find('y') end --> find in a loop => CPU
for _ in (('^a'):rep(50000)):gmatch('^.-.-x') do end --> gmatch anchored, a caret to it => CPU
(('a'):rep(50000)):find('%f[a]a*a*b') --> frontier with repetitions => CPU
(('a]'):rep(50000)):find('[]a]*[%]a]*b') --> sets with repetitions => CPU
local t = {} while true do t[#t + 1] = #t end --> table without end => MEMORY
while true do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end --> table without end in pcall => MEMORY
local s = 'x' while true do s = s .. s end --> string that doubles => MEMORY
local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end --> strings that are kept => MEMORY
local t = {} while true do t[#t + 1] = coroutine.create(print) end --> coroutines that are kept => MEMORY
local t = {} while true do local x = #t t[#t + 1] = function() return x end end --> closures that are kept => MEMORY
coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end)() --> memory in a coroutine => MEMORY
while true do pcall(coroutine.wrap(function() local t = {} while true do t[#t + 1] = {} end end)) end --> memory caught in a coroutine => MEMORY
xpcall(function() local t = {} while true do t[#t + 1] = {} end end, print) --> memory in xpcall => MEMORY
table.sort({1, 2, 3}, function() local t = {} while true do t[#t + 1] = {} end end) --> memory in a comparator => MEMORY
do local x <close> = setmetatable({}, {__close = function() local t = {} while true do t[#t + 1] = {} end end}) end --> memory in __close => MEMORY
load('return {' .. ('{},'):rep(300000) .. '}')() --> memory in load => MEMORY|larger than|overflow
error(setmetatable({}, {__tostring = function() local t = {} while true do t[#t + 1] = {} end end})) --> memory in __tostring of the error => MEMORY
local s = ('x'):rep(3000000) local t = {} for w in s:gmatch('.') do t[#t + 1] = {w} end --> memory in captures => MEMORY
while true do string.format('%99.99f', 1e300) end --> memory by a number's width => CPU
error(('x'):rep(5000000)) --> huge error message => x{100}
local function f() return 1 + f() end f() --> deep recursion => OVERFLOW
local function f() return 1 + f() end while true do pcall(f) end --> deep recursion, caught for ever => CPU|MEMORY
local m = {} m.__add = function(a, b) return a + b end return setmetatable({}, m) + 1 --> recursion through metamethods => OVERFLOW
local m = {} m.__tostring = function(x) return tostring(x) end tostring(setmetatable({}, m)) --> recursion through tostring => OVERFLOW
while true do ctx:command('a', {}) end --> commands in a loop => BACKSTOP
while true do pcall(ctx.command, ctx, 'a', {}) end --> commands in pcall in a loop => BACKSTOP
ctx:invoke('hang') --> command that never returns => BACKSTOP
while true do pcall(ctx.invoke, ctx, 'hang') end --> command that never returns, in pcall => BACKSTOP
while true do ctx:sleep(0) end --> sleep of nothing in a loop => BACKSTOP
while true do ctx:list_devices() end --> look-ups in a loop => BACKSTOP
while true do ctx:log('info', 'x') end --> log in a loop => CPU
while true do print('x') end --> print in a loop => CPU
local big = ('x'):rep(1000000) while true do print(big) end --> long lines in a loop => CPU
local t = {} for i = 1, 1000 do t[i] = 'x' end while true do ctx:log('info', 'x', {t = t}) end --> long fields in a loop => CPU
ctx:invoke('a', {x = ('x'):rep(2000000)}) --> argument that is too large => is larger than 256 KiB
local t = {} t.t = t ctx:invoke('a', t) --> argument that holds itself => contains itself
local t = {} for i = 1, 200000 do t[i] = {1, 2} end ctx:invoke('a', {t = t}) --> argument of many tables => is larger than 256 KiB|MEMORY
ctx:invoke('much') --> answer that is too large => the answer is larger than 4 MiB
local t = {} while true do t[#t + 1] = ctx:invoke('some') end --> answers that are kept => MEMORY
local t = {} pcall(function() while true do t[#t + 1] = ('x'):rep(1000) .. #t end end) ctx:list_devices() --> memory full, then a call => MEMORY
local t = {} for i = 1, 15 do t[i] = ('x'):rep(1000000) .. i end while true do t[#t + 1] = ctx:invoke('some') end --> almost full, then a call => MEMORY
---- disposal
local m = getmetatable('') setmetatable(m, {__newindex = function() while true do end end}) m.__index = nil
setmetatable(getmetatable(''), {__newindex = function() while true do end end, __index = function() end})
getmetatable('').__close = function() while true do end end local x <close> = 'x'
getmetatable('').__gc = function() while true do end end
setmetatable({}, setmetatable({}, {__index = function(_, k) if k == '__gc' then while true do end end end}))
local t = setmetatable({}, {}) getmetatable(t).__gc = function() while true do end end t = nil collectgarbage()
local x <close> = setmetatable({}, {__close = function() while true do end end}) error('out')
local m = {} m.__close = function() local y <close> = setmetatable({}, m) end local x <close> = setmetatable({}, m)
local m = {__mode = 'k', __index = function() while true do end end} setmetatable(getmetatable(''), m) local _ = ('').x
---- coroutines
local function f() return coroutine.wrap(f)() end f()
local c c = coroutine.create(function() while true do pcall(coroutine.close, c) end end) coroutine.resume(c)
local function deep(n) if n == 0 then while true do end end return coroutine.wrap(deep)(n - 1) end deep(150)
local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() while true do end end}) coroutine.yield() end) coroutine.resume(c) coroutine.close(c)
local function f() local x <close> = setmetatable({}, {__close = function() f() end}) return f() end pcall(f)
local t = {} while true do local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c) t[#t + 1] = c end
local function f(...) return select('#', ...) + f(1, ...) end pcall(f) while true do pcall(f) end
while true do coroutine.wrap(function() local x <close> = setmetatable({}, {__close = error}) error() end)() end
local c = coroutine.wrap(function() while true do coroutine.yield(table.unpack({}, 1, 200000)) end end) while true do c() end
local main = coroutine.running() while true do pcall(coroutine.resume, main) pcall(coroutine.close, main) end
local function h(e) return h(e) end while true do xpcall(error, h) end
local function h() error('again') end while true do xpcall(error, h) end
xpcall(function() local function f() return 1 + f() end f() end, function() while true do end end)
local function f() local ok = pcall(f) while true do end end f()
local f f = function() pcall(pcall, f) pcall(f) end f() while true do f() end
for i = 1, 200 do coroutine.wrap(function() pcall(string.rep, 'x', 1 << 40) coroutine.yield() end)() end while true do end
local function f(n) if n > 190 then while true do end end local _ = ('x'):gsub('.', function() f(n + 1) end) end f(1)
local function f(n) table.sort({1, 2, 3}, function() f(n + 1) while true do end end) end f(1)
---- tables
local t = {} for i = 1, 60000 do t[i * 262143] = i end while true do for i = 1, 60000 do local _ = t[i * 262143] end end
local t = {} for i = 1, 60000 do t[i * 2.0 ^ 40] = i end while true do for k in pairs(t) do t[k] = nil t[k] = 1 end end
local t = {} for i = 1, 300000 do t[i + 0.5] = i end while next(t) do t[next(t)] = nil end
local k = ('k'):rep(4000000) local t = {} for _ = 1, 2000 do t = setmetatable({}, {__index = t}) end while true do local _ = t[k] end
local t = {} for _ = 1, 1990 do t = setmetatable({}, {__index = t}) end while true do local _ = t.x end
local t = {} for _ = 1, 1990 do t = setmetatable({}, {__newindex = t}) end while true do t.x = nil end
local e = setmetatable({}, {__mode = 'k'}) local a = {} for _ = 1, 100000 do local b = {} e[a] = b a = b end while true do collectgarbage() end
local e = setmetatable({}, {__mode = 'kv'}) while true do e[{}] = {} collectgarbage('step') end
local t = {} for i = 1, 300000 do t[i] = i end while true do table.move(t, 1, #t, 2) end
local t = {} for i = 1, 300000 do t[i] = i end while true do table.concat(t, ', ') end
local t = {} for i = 1, 300000 do t[i] = i end table.sort(t, function(a, b) return math.random() < 0.5 end)
local t = {} for i = 1, 300000 do t[i] = i end while true do table.sort(t, math.ult) end
table.move({}, 1.0, 1e15, 2)
table.move({}, -(1 << 62), 1 << 61, 1)
table.move(setmetatable({}, {__index = function() return 1 end}), 1, 1 << 40, 1, setmetatable({}, {__newindex = print}))
table.concat(setmetatable({}, {__index = function() return 'x' end}), '', 1, 1 << 40)
table.concat({}, 'x', 1, '9007199254740993')
table.unpack({}, 1, 1e6)
while true do pcall(table.unpack, {}, 1, 999999) end
table.insert(setmetatable({}, {__len = function() return 1e15 end}), 1, 1)
table.remove(setmetatable({}, {__len = function() return 1 << 50 end}), 1)
table.sort(setmetatable({}, {__len = function() return 2147483646 end, __index = function(_, k) return k end}))
while true do table.pack(table.unpack({}, 1, 250000)) end
for _ in ipairs(setmetatable({}, {__index = function() return 1 end})) do end
for k, v in next, setmetatable({}, {}) do end local t = {} t[1] = 1 for k in pairs(t) do t[k + 1] = 1 end
local t = {} for i = 1, 24 do t[i] = {} for j = 1, 20000 do t[i][j] = j end end while true do end
while true do select(-1, table.unpack({}, 1, 200000)) end
local t = table.pack(table.unpack({}, 1, 100000)) while true do select('#', table.unpack(t, 1, t.n)) end
---- strings
local big = ('x'):rep(4000000) local s = ('9'):rep(4000000) while true do local _ = s + 0 end
local s = ('9'):rep(3000000) while true do pcall(function() return s // 1 end) end
local big = ('x'):rep(4000000) local a, b = big .. 'a', big .. 'b' while true do local _ = a < b end
local big = ('x'):rep(4000000) local a, b = big .. 'a', big .. 'a' while true do local _ = a == b end
local a = ('\0'):rep(4000000) local b = a .. 'x' while true do local _ = a < b end
local big = ('x'):rep(4000000) while true do big:upper() end
local big = ('x'):rep(4000000) while true do big:reverse():lower() end
local big = ('x'):rep(4000000) while true do local _ = big:byte(1, 200000) end
local big = ('x'):rep(4000000) while true do string.char(big:byte(1, 200000)) end
local big = ('x'):rep(4000000) while true do big:sub(2) end
local big = ('x'):rep(4000000) while true do local _ = #(big .. 'x') end
(('a'):rep(1000000)):gsub('a', ('%1'):rep(1000000))
(('a'):rep(100000)):gsub('(a)', ('%1'):rep(100))
(('a'):rep(300)):gsub('', ('x'):rep(100000))
while true do string.find(123456789012, ('.-'):rep(30) .. 'x') end
local n = 10 ^ 15 // 1 | 0 while true do string.find(n, '1') end
(('a'):rep(2000000)):find(('a'):rep(1000000) .. 'b', 1, true)
(('ab'):rep(1000000)):find(('ab'):rep(500000) .. 'c', 1, true)
(('a'):rep(3000000)):find('[' .. ('b'):rep(1000000) .. ']')
(('a'):rep(1000000)):find('[^' .. ('%w'):rep(300000) .. ']')
(('a'):rep(100000)):find('.-.-.-.-.-b')
(('a'):rep(100000)):match('(.-)(.-)(.-)(.-)x')
(('('):rep(1000000)):find('%b()')
(('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(41))
for _ in (('a'):rep(200000)):gmatch('(a*)(a*)(a*)b') do end
(('a'):rep(200000)):gsub('a*a*a*b', '')
(('a'):rep(200000)):find('(.*)(.*)(.*)%1%2%3x')
(('x'):rep(200000)):find('%f[a].*%f[b].*%f[c].*d')
(('a'):rep(220000)):match(('(a*)'):rep(31) .. 'b')
('x'):rep(1e9)
('x'):rep(1e9, ('y'):rep(1e6))
(''):rep(1e18)
(''):rep(math.maxinteger)
(''):rep(1e12, '')
while true do ('x'):rep(15000000) end
local big = ('x'):rep(4000000) while true do string.format('%.0s', big) end
local big = ('x'):rep(4000000) while true do string.format('%q', big) end
local big = ('x'):rep(4000000) while true do string.format('%s', setmetatable({}, {__tostring = function() return big end})) end
local big = ('x'):rep(4000000) while true do string.format('%-99s', big) end
while true do string.format('%99.99f', -1e308) end
while true do string.pack(('s'):rep(1000), table.unpack((function() local t = {} for i = 1, 1000 do t[i] = 'x' end return t end)())) end
while true do string.pack('!16' .. ('i8Xi16'):rep(1000), table.unpack({}, 1, 0)) end
string.pack('c2000000000', 'x')
while true do pcall(string.pack, 'c15000000', 'x') end
local big = ('x'):rep(4000000) while true do string.unpack(('z'):rep(200), big) end
local big = ('x'):rep(4000000) while true do string.unpack('!1' .. ('B'):rep(100000), big) end
while true do string.packsize(('i8'):rep(200000)) end
while true do utf8.char(table.unpack((function() local t = {} for i = 1, 200000 do t[i] = 8364 end return t end)())) end
local s = ('€'):rep(1000000) while true do utf8.len(s) end
local s = ('€'):rep(1000000) while true do utf8.codepoint(s, 1, 300000) end
local s = ('€'):rep(1000000) while true do utf8.offset(s, 999999) end
local s = ('€'):rep(1000000) while true do for _ in utf8.codes(s) do end end
local s = ('9'):rep(200) while true do tonumber(s, 10) tonumber(s) end
local s = '0x' .. ('f'):rep(4000000) while true do tonumber(s) end
local s = (' '):rep(4000000) .. '1' while true do tonumber(s) end
local s = '0.' .. ('0'):rep(4000000) .. '1' while true do local _ = s * 1 end
local big = ('x'):rep(4000000) while true do tostring(big) print(big) end
local big = ('x'):rep(4000000) error(big)
error(setmetatable({}, {__tostring = function() while true do end end}))
error(setmetatable({}, {__tostring = function() return 5 end}))
error(setmetatable({}, {__name = ('x'):rep(1000000)}))
os.date(('%c'):rep(100000))
while true do os.date(('%c'):rep(100)) end
while true do os.time({year = 2000, month = 1e9 // 1 | 0, day = 1}) end
---- compiler
load('return ' .. ('a or '):rep(200000) .. 'a')
load('return ' .. ('a .. '):rep(100000) .. 'a')
load('return ' .. ('('):rep(200000))
load('return ' .. ('{'):rep(200000))
load('return ' .. ('-'):rep(1000000) .. '1')
load('return ' .. ('not '):rep(1000000) .. '1')
load('return f' .. ('()'):rep(200000))
load(('if x then '):rep(100000))
load(('do '):rep(100000))
load(('local a = 1 '):rep(100000))
load(('x = x '):rep(300000))
load('local t = {' .. ('1,'):rep(1000000) .. '}')
load('return "' .. ('\\u{10FFFF}'):rep(200000) .. '"')
load('--[' .. ('='):rep(3000000))
load(('::a'):rep(1) .. '::' .. (' goto a'):rep(200000))
load((function() local s = {} for i = 1, 50000 do s[i] = '::l' .. i .. '::' end return table.concat(s) end)())
load((function() local s = {} for i = 1, 100000 do s[i] = 'x' .. i .. '=1' end return table.concat(s, ' ') end)())
while true do load('return function() ' .. ('x() '):rep(10000) .. 'end') end
local function r() return ('x=1 '):rep(10000) end load(r)
load(function() while true do end end)
load(setmetatable({}, {__call = function() while true do end end}))
load('\27Lua' .. ('\0'):rep(1000))
---- crossing
local s = ('x'):rep(250000) while true do ctx:command(s, {capability = 'power', action = 'on'}) end
local s = ('x'):rep(250000) for i = 1, 200 do pcall(ctx.command, ctx, s .. i, {capability = s, action = s}) end while true do end
local s = ('\n'):rep(250000) while true do pcall(ctx.invoke, ctx, s, {}) end
local t = {} for i = 1, 5000 do t['field' .. i] = i end while true do pcall(ctx.command, ctx, 'a', t) end
local t = {} for _ = 1, 30 do t = {t, t} end ctx:invoke('a', {t = t})
local t = {} for _ = 1, 31 do t = {t} end while true do ctx:invoke('a', {t = t}) end
while true do ctx:log('info', ('x'):rep(100000), {a = ('y'):rep(5000)}) end
while true do ctx:log('info', '\27[2J\0') end
local t = setmetatable({}, {__index = function() while true do end end}) ctx:invoke('a', t)
local t = setmetatable({}, {__len = function() return 1 << 40 end}) ctx:invoke('a', {t = t})
table.sort({3, 2, 1}, function() ctx:invoke('hang') end)
coroutine.wrap(function() ctx:invoke('hang') end)()
tostring(setmetatable({}, {__tostring = function() ctx:sleep(0) while true do end end}))
while true do coroutine.wrap(function() ctx:get_device('x') end)() end
local t = {} while true do t[#t + 1] = coroutine.create(function() ctx:invoke('some') end) coroutine.resume(t[#t]) end
ctx.command = function() while true do end end ctx:command()
setmetatable(ctx, {__index = function() while true do end end}) local _ = ctx.nothing
for name in ('command invoke notify sleep get set snapshot log'):gmatch('%w+') do local f = ctx[name] pcall(f) pcall(f, ctx) pcall(f, ctx, {}, {}) end while true do end
while true do pcall(require, ('x'):rep(100000)) pcall(require, 'a.b') end
while true do pcall(require, '../' .. ('x'):rep(1000)) end
---- collector
collectgarbage('stop') while true do local _ = {} end
collectgarbage('generational') local t = {} while true do t[#t % 100000 + 1] = {{}} end
collectgarbage('incremental', 1000, 1000, 20) local t = {} while true do t[#t + 1] = {} end
local t = {} for i = 1, 100000 do t[i] = {} end while true do collectgarbage('generational') collectgarbage('incremental') end
while true do collectgarbage('step', 2147483647) end
local t = {} for i = 1, 100000 do t[i] = function() return i end end while true do collectgarbage() end
collectgarbage('setpause', 0) collectgarbage('setstepmul', 1) while true do local _ = {('x'):rep(100)} end
local t = {} for i = 1, 3000 do t[i] = ('x'):rep(5000) .. i end while true do collectgarbage('collect') end
---- commands
for i = 1, 2000 do ctx:command((('x'):rep(250000)):sub(1, 120000) .. i, {capability = 'power', action = 'on'}) end
for i = 1, 100000 do ctx:command('n' .. i, {capability = 'power', action = 'on'}) end
for i = 1, 300 do ctx:command('a' .. i, {capability = 'target_temperature', action = 'set', value = {value = 20, unit = ('x'):rep(250000)}}) end
for i = 1, 300 do ctx:command('elgato_lights:light:0', {capability = 'media_source', action = 'set', value = ('x'):rep(250000)}) end
while true do ctx:command('elgato_lights:light:0', {capability = 'power', action = 'on'}) end
while true do pcall(ctx.command, ctx, 'elgato_lights:light:0', {capability = ('x'):rep(250000), action = 'on'}) end
while true do pcall(ctx.command, ctx, 'elgato_lights:light:0', {capability = 'power', action = ('x'):rep(250000)}) end
while true do pcall(ctx.command, ctx, 'elgato_lights:light:0', {capability = 'power', action = 'on', transition_secs = 1e308}) end
ctx:command('elgato_lights:light:0', {capability = 'brightness', action = 'set', value = math.mininteger})
ctx:command('elgato_lights:light:0', {capability = 'brightness', action = 'set', value = 1e308})
ctx:command('elgato_lights:light:0', {capability = 'color_temperature', action = 'set', value = {value = 1 << 62, unit = 'kelvin'}})
local t = {} for i = 1, 20000 do t['k' .. i] = i end while true do pcall(ctx.command, ctx, 'a', t) end
while true do pcall(ctx.command_group, ctx, ('x'):rep(250000), {capability = 'power', action = 'on'}) pcall(ctx.command_room, ctx, ('x'):rep(250000), {capability = 'power', action = 'on'}) end
while true do pcall(ctx.invoke, ctx, 'elgato_lights:identify', {device_id = ('x'):rep(250000)}) end
while true do pcall(ctx.invoke, ctx, 'elgato_lights:' .. ('x'):rep(250000), {}) end
local t = {} for i = 1, 20000 do t[i] = {} end while true do pcall(ctx.invoke, ctx, 'elgato_lights:info', {t = t}) end
---- variables
for i = 1, 100000 do pcall(ctx.set, ctx, 'v' .. i, ('x'):rep(16000)) end
for i = 1, 100000 do ctx:set('v', ('x'):rep(i % 16000)) end
for i = 1, 100000 do ctx:set('v' .. i % 10, i, {durable = true}) end
while true do pcall(ctx.set, ctx, ('x'):rep(250000), 1) pcall(ctx.set, ctx, 'a', ('x'):rep(250000)) end
local t = 1 for _ = 1, 30 do t = {t} end while true do ctx:set('deep', t) end
local t = {} for i = 1, 2000 do t[i] = i end while true do ctx:set('list', t) ctx:get('list') end
while true do ctx:get('none', ('x'):rep(250000)) end
while true do pcall(ctx.set, ctx, 'a', 1, {durable = 'yes', x = 1}) end
local t = {} for i = 1, 9000 do t['o' .. i] = 1 end while true do pcall(ctx.set, ctx, 'a', 1, t) end
while true do pcall(ctx.get, ctx, '\0\255') pcall(ctx.set, ctx, 'a', '\255') pcall(ctx.set, ctx, 'a', 0/0) end
---- timers
for i = 1, 100000 do ctx:start_timer('t' .. i, 3600, ('x'):rep(16000)) end
for i = 1, 100000 do ctx:start_timer('t', 0) end
for i = 1, 100000 do ctx:start_timer('t' .. i % 100, 0, {i}) ctx:cancel_timer('t' .. i % 100) end
while true do pcall(ctx.start_timer, ctx, ('x'):rep(250000), 1) pcall(ctx.start_timer, ctx, 'a', 1, ('x'):rep(250000)) end
for _, s in ipairs({-1, 1e308, -1e308, 1 << 62, math.mininteger, 400 * 86400 + 1}) do pcall(ctx.start_timer, ctx, 'a', s) end ctx:start_timer('a', 0/0)
while true do pcall(ctx.cancel_timer, ctx, ('x'):rep(250000)) end
---- waiting
while true do ctx:wait_for('elgato_lights:light:0', {attribute = 'power', equals = 'off', timeout_secs = 0}) end
ctx:wait_for('elgato_lights:light:0', {attribute = 'power', equals = 'off', timeout_secs = 1e308})
ctx:wait_for('elgato_lights:light:0', {attribute = 'power', equals = 'on', timeout_secs = -1})
ctx:wait_for('elgato_lights:light:0', {attribute = ('x'):rep(250000), equals = 'on', timeout_secs = 1})
local t = {timeout_secs = 1} for i = 1, 9000 do t['f' .. i] = 1 end while true do pcall(ctx.wait_for, ctx, 'elgato_lights:light:0', t) end
ctx:wait_for('elgato_lights:light:0', {attribute = 'brightness', above = 1e308, below = -1e308, timeout_secs = 0.1})
table.sort({3, 2, 1}, function() ctx:sleep(0.1) return false end) while true do ctx:sleep(0) end
while true do coroutine.wrap(function() ctx:sleep(0) end)() end
for _, s in ipairs({-1, 3601, 1e308, -1e308, 1 << 62}) do pcall(ctx.sleep, ctx, s) end ctx:sleep(0/0)
for _ = 1, 1000 do ctx:sleep(0.0001) end
setmetatable(_G, {__index = function(_, k) ctx:sleep(0) return nil end}) while true do local _ = nothing end
local x <close> = setmetatable({}, {__close = function() while true do ctx:sleep(0) end end}) error('out')
string.gsub(('a'):rep(100000), '.', function() ctx:sleep(0) end)
---- scenes
while true do ctx:run_scene('quiet') end
ctx:run_scene('circle_a')
while true do pcall(ctx.run_scene, ctx, 'circle_b') end
while true do pcall(ctx.run_scene, ctx, ('x'):rep(250000)) end
while true do pcall(ctx.run_scene, ctx, 'loud') end
while true do pcall(ctx.run_scene, ctx, 'failing') end
ctx:run_scene('stuck')
for _ = 1, 3 do pcall(ctx.run_scene, ctx, 'spinning') end
string.gsub('aaa', '.', function() ctx:run_scene('quiet') end)
---- snapshots
local t = {} for i = 1, 12000 do t['n' .. i] = {power = 'off'} end ctx:restore(t)
local t = {} for i = 1, 12000 do t['n' .. i] = {brightness = 1} end ctx:restore(t)
local t = {} for i = 1, 9000 do t['n' .. i] = {power = 'on'} end while true do ctx:restore(t) end
local t = {} for i = 1, 9000 do t[i] = 'elgato_lights:light:0' end while true do ctx:snapshot(t) end
local t = {} for i = 1, 9000 do t[i] = 'n' .. i end while true do pcall(ctx.snapshot, ctx, t) end
ctx:restore({['elgato_lights:light:0'] = {brightness = {}, color_temperature = ('x'):rep(250000)}})
ctx:restore({['elgato_lights:light:0'] = {power = 5}, a = {power = {}}})
ctx:snapshot({a = 1})
ctx:snapshot({{}, {}})
ctx:restore({1, 2, 3})
---- talk
for i = 1, 1e7 do ctx:notify(('x'):rep(4000) .. i) end
for i = 1, 1e7 do ctx:notify('x', {title = ('y'):rep(200000), i = i}) end
while true do ctx:log('info', '\27[2J\r\n\0\255' .. ('x'):rep(8000)) end
for _, k in ipairs({'message', 'msg', 'args', 'name', 'exc_info', 'levelname', 'asctime', 'scene', '\n', '', 'stack_info', 'taskName', ('k'):rep(8000)}) do ctx:log('error', 'x', {[k] = '\n\27[31m'}) end
ctx:log('info', '%s %d %(x)s {0} {x}', {a = '%s'})
for i = 1, 1000 do print(('%08d'):format(i), ('x'):rep(900)) end
while true do print() end
print(setmetatable({}, {__tostring = function() ctx:sleep(0) return 'x' end, __name = 'y'})) print(setmetatable({}, {__tostring = function() return 5 end}))
local t = {} for i = 1, 250000 do t[i] = i end print(table.unpack(t))
---- errors
error({message = ('x'):rep(1000000)})
error(setmetatable({}, {__tostring = function() return ('\255'):rep(1000000) end}))
error('config/scenes/x.lua:99999999999999999999999999: no such line')
error(('config/scenes/x.lua:1: '):rep(100000))
error('config/scenes/x.lua:' .. ('9'):rep(5000) .. ': x')
load('error("far")', '@/etc/passwd')()
load('error("far")', '=\255\254\n:1: ')()
load('\n\n\nerror("far")', '@config/scenes/' .. ('x'):rep(1000))()
load('local x = nil + 1', '=' .. ('y'):rep(1000000))()
error(coroutine.create(print))
error(nil)
error(setmetatable({}, {__tostring = function() ctx:sleep(1) end}))
local t = {} for i = 1, 5000 do t['f' .. i] = ('x'):rep(40) end error(t)
local s = ('a'):rep(190000) error("attempt to call a nil value (global '" .. s .. "')")
error("attempt to index a nil value (local '" .. ("' '"):rep(100000) .. ' (')
_G[('x'):rep(1000000)]()
local t = setmetatable({}, {__index = error}) t[('x'):rep(1000000)] = t.y
coroutine.wrap(function() coroutine.wrap(function() error('in two') end)() end)()
local function f(n) if n == 0 then error('deep') end local ok, e = pcall(f, n - 1) error(e .. e:sub(1, 100)) end f(180)
assert(false, setmetatable({}, {__tostring = function() while true do end end}))
assert(nil, {is_definition = true, ('x'):rep(1000000)})
error({is_definition = true})
error({is_definition = true, setmetatable({}, {__tostring = error})})
---- modules
while true do pcall(require, 'heavy') end
while true do pcall(require, 'heavy_fault') end
require('spinning')
require('stuck')
while true do pcall(require, 'circle') end
require('greedy')
while true do pcall(require, 'nowhere' .. math.random(1e9)) end
while true do pcall(require, ('a.'):rep(50) .. 'b') end
pcall(require, 'pipe') pcall(require, 'folder') pcall(require, 'away') pcall(require, 'zero') require('loop')
while true do pcall(require, 'pipe') end
require('asks')(ctx)
require('false')
local m = require('meta') local _ = m.x
---- host
local t = {} for i = 1, 150 do t[i] = coroutine.wrap(function() table.sort({2, 1}, function() t[i + 1]() end) end) end t[1]()
local function f() return pcall(string.gsub, 'a', 'a', f) end f() while true do f() end
collectgarbage('stop') local t = {} for i = 1, 1e9 do t[i % 1000] = ('x'):rep(i % 100000) end
math.randomseed(math.maxinteger, math.mininteger) while true do math.random(math.mininteger, math.maxinteger) end
pcall(math.random, 0) pcall(math.random, 1, 0) pcall(math.random, 1e308) while true do math.tointeger('x') end
while true do os.date('*t', 1 << 40) pcall(os.date, '*t', 1 << 60) pcall(os.date, '%Ez%', -1) end
while true do pcall(os.time, {year = 1 << 40, month = 1, day = 1}) pcall(os.time, {year = 2000}) end
os.date(('%c'):rep(200000), 0)
for _, n in ipairs({'string', 'table', 'math', 'utf8', 'os', 'coroutine', 'debug'}) do for k in pairs(_G[n]) do _G[n][k] = nil end end for k in pairs(_G) do _G[k] = nil end error('bare')
for _, n in ipairs({'string', 'table', 'math', 'utf8', 'os', 'coroutine'}) do for k in pairs(_G[n]) do _G[n][k] = function() while true do end end end end print('x') ctx:log('info', 'y') tostring(5)
local m = getmetatable('') for k in pairs(m) do m[k] = nil end m.__index = function() while true do end end ctx:get_device('x') print(('x').y)
local m = getmetatable('') m.__eq, m.__lt, m.__concat, m.__len, m.__call, m.__close, m.__mode = error, error, error, error, error, error, 'kv' print('a' .. 'b') ctx:command('a', {capability = 'power', action = 'on'}) error('x')
setmetatable(_G, {__index = function() while true do end end}) local _ = undefined
debug.traceback(('x'):rep(1000000)) while true do debug.traceback() end
debug.traceback = nil local function f() f() end xpcall(f, function(e) error(e) end) error(debug)
coroutine.close(coroutine.running())
local co co = coroutine.wrap(function() co() end) co()
local t = setmetatable({}, {__pairs = function() return function() return 1 end end}) for _ in pairs(t) do end
local t = setmetatable({}, {__index = table.concat}) local _ = t[1]
goto a ::b:: while true do end ::a:: goto b
local a <const>, b <close> = 1, nil for i = math.maxinteger - 1, math.maxinteger do end for i = 1, 0/0 do end for i = 1.0, math.huge do end
for i = math.mininteger, math.maxinteger do end
pcall(string.rep, 'x', -1) string.rep('ab', 1 << 62, 'c')
string.format('%' .. ('1'):rep(100) .. 'd', 1)
string.format(('%d'):rep(100000), 1)
while true do pcall(string.format, '%a %g %q', 1e308, 0/0, math.mininteger) end
while true do pcall(utf8.char, 0x7FFFFFFF, -1) pcall(utf8.codepoint, '\xFF') pcall(utf8.offset, 'x', 1 << 62) end
for p, c in utf8.codes(('\xF4\x90\x80\x80'):rep(100000), true) do end (('a'):rep(200000)):find(('.-'):rep(20) .. 'b')
table.move({}, 1, math.maxinteger, 2)
table.insert({}, 1 << 62, 1)
next({}, ('x'):rep(1000000))
rawset(_G, 0/0, 1)
select(math.mininteger, 1)
local t = {} for i = 1, 300 do t[i] = 'x' .. i end load('local ' .. table.concat(t, ','))
load('return ' .. ('x.'):rep(200000) .. 'x')()
load(('function f() '):rep(190) .. ('end '):rep(190))
