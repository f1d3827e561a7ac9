"""Expressions over the library that a script sees; the plain interpreter says what each is."""

from __future__ import annotations

from itertools import product

_FORMATS = tuple(
    f"string.format('{form}', {value})"
    for form, value in (
        *product(
            ("%d", "%5d", "%-5d|", "%05d", "%+d", "%i", "%x", "%X", "%#x", "%o", "%c"), ("65", "65.0", "'65'", "97")
        ),
        *product(("%f", "%.2f", "%8.3f", "%e", "%.1e", "%g", "%.3g", "%a"), ("1.5", "-0.0", "1e300", "100", "1/0")),
        *product(("%s", "%10s", "%-10s|", "%.2s", "%q"), ("'abc'", "'a\\nb\\0c'", "12", "1.5", "true", "nil")),
    )
)
_PATTERNS = tuple(
    f"string.{name}('{text}', '{pattern}')"
    for name, text, pattern in product(
        ("find", "match"),
        ("hello world", "key = value", "[x](y)", ""),
        (
            "o",
            "(%w+)",
            "(%w+)%s*=%s*(%w+)",
            "^%s*$",
            "()l()",
            "%b[]",
            "%f[%w]%w+",
            "l*",
            "[^%w]",
            ".-l",
            "%",
            "(",
            "[a",
            "%1",
        ),
    )
)
_SUBSTITUTIONS = tuple(
    f"string.gsub('{text}', '{pattern}', {replacement})"
    for text, pattern, replacement in product(
        ("hello", "a b c", "abc=1"),
        ("%w+", "", "l", "(%w)(%w)", "%s*", "^a", "b*"),
        ("'<%0>'", "'%1'", "'%2'", "string.upper", "{l = 'L', a = false}", "function() end", "'%'"),
    )
)
_ARITHMETIC = tuple(
    f"{left} {operator} {right}"
    for left, operator, right in product(
        ("7", "-7", "7.5", "'10'", "math.maxinteger", "math.mininteger", "0.0"),
        ("+", "-", "*", "/", "//", "%", "^", "<", "==", "..", "&", "<<"),
        ("2", "-2", "0", "0.5", "'3'"),
    )
)
_MORE = r"""
tonumber('0x10')
tonumber('0x1p4')
tonumber(' 12 ')
tonumber('1e1')
tonumber('1e')
tonumber('z', 36)
tonumber('ff', 16)
tonumber('8', 8)
tonumber('7', 8)
tonumber('')
tonumber('0x')
tonumber('1 2')
tonumber('9223372036854775808')
tonumber('-9223372036854775808')
tonumber('inf')
tonumber('nan')
tonumber(1.5)
tonumber(nil)
tonumber({})
tonumber('1', 1)
tonumber('10', 2)
math.type(1)
math.type(1.0)
math.type('1')
math.tointeger('8')
math.tointeger(3.0)
math.floor(-3.5)
math.ceil(3.2)
math.fmod(-7, 3)
math.fmod(7, 0)
math.ult(1, -1)
math.abs(math.mininteger)
math.max()
math.max(1, 2.5)
math.min(3, -1)
math.modf(-3.7)
math.sqrt(2)
math.exp(1)
math.log(8, 2)
math.pi
3 // 0.0
3 % -math.huge
1 // 0
1 % 0
2^53 == 2^53 + 1
math.maxinteger + 1
1 << 64
1 << -1
utf8.char(72, 228, 8364, 128512)
utf8.len('häß€')
utf8.len('\xff')
utf8.codepoint('€', 1)
utf8.charpattern
utf8.offset('a€b', 3)
utf8.offset('a€b', -1)
utf8.codepoint('€', 2)
utf8.char(-1)
utf8.len('abc', 4)
string.rep('ab', 3, ',')
string.rep('x', 0)
string.rep('x', -1)
string.byte('abc', -1)
string.char()
string.char(256)
string.reverse('abc')
string.len('a\0b')
string.sub('hello', -3, -2)
('x'):sub(2)
string.pack('<i4', 100)
string.unpack('<i4', string.pack('<i4', -2))
string.packsize('i4i8')
string.pack('z', 'a\0')
string.unpack('s1', '\3abc')
string.pack('i17', 1)
string.unpack('>I2', 'ab')
string.pack('i1', 200)
table.concat({1, 2, 3}, '-')
table.concat({1, {}, 3})
table.concat({}, 'x')
table.concat({1, 2, 3}, ',', 2, 3)
table.unpack({1, 2, 3}, 2)
table.unpack({}, 1, 3)
table.pack(nil, 2).n
select('#', nil, nil)
select(-1, 1, 2)
select(0)
#table.move({1, 2, 3}, 2, 3, 1)
table.insert({}, 3, 1)
table.insert({}, 1, 2, 3)
table.remove({})
table.remove({1, 2, 3}, 1)
(function() local t = {5, 2, 8, 1} table.sort(t) return table.concat(t, ' ') end)()
(function() local t = {5, 2, 8, 1} table.sort(t, function(a, b) return a > b end) return table.concat(t, ' ') end)()
(function() local t = {3, 'x'} table.sort(t) end)()
table.sort({1, 2}, 5)
table.sort()
next({})
next({10})
rawlen({1, 2})
rawlen('abc')
rawlen(5)
rawequal('a', 'a')
rawget({a = 1}, 'a')
type(print)
type()
tostring(1e15)
tostring(1e100)
tostring(-0.0)
tostring(2^63)
tostring(1/0)
tostring(0/0) ~= nil
10 // 3
pcall(error)
pcall(error, 'x', 0)
pcall(error, nil)
pcall()
select('#', pcall(error))
assert(false)
assert(nil, 'no')
assert(1, 2, 3)
xpcall(function() error('a', 0) end, function(e) return e .. 'b' end)
xpcall(print)
xpcall(function(...) return ... end, print, 1, 2)
xpcall(error, function() error('again', 0) end)
load('return 1 + 1')()
load('x =')
load('return ...')(5)
load(function() end)
load({})
load('return x', 'c', 't', {x = 9})()
load('a b', '=n')
getmetatable('').__index == string
getmetatable(setmetatable({}, {__metatable = 'no'}))
setmetatable({}, 5)
#'\u{20AC}'
coroutine.wrap(function(...) return ... end)(1, 2)
coroutine.resume(coroutine.create(error), 'x')
coroutine.isyieldable()
coroutine.status(coroutine.create(print))
select(2, coroutine.running())
coroutine.close(coroutine.create(print))
coroutine.resume(coroutine.create(function() coroutine.yield(7) end))
coroutine.create(5)
coroutine.wrap(5)
coroutine.wrap(function() return pcall(coroutine.yield, 3) end)()
coroutine.resume(5)
coroutine.wrap(error)('x')
os.date('!%Y-%m-%d %H:%M:%S', 0)
os.date('%Y-%m-%d %H:%M', 1782901815)
os.date('*t', 1782901815).hour
os.date('%z %Z', 0)
os.date('!*t', 86400).yday
os.date('%x %X %p %A %B', 1e9)
os.date('%Ex', 0)
os.date('%E', 0)
os.date('%Q', 0)
os.time({year = 2026, month = 3, day = 29, hour = 2, min = 30})
os.time({year = 2026, month = 10, day = 25, hour = 2})
os.time({year = 2026, month = 14, day = -3, hour = 30})
os.time({year = 2026})
os.time({year = 1, month = 'x', day = 1})
os.time({year = 2026, month = 7, day = 1, hour = 12, isdst = false})
os.difftime(10, 4)
os.date('%j', false)
os.date(false)
os.date({}, 5)
os.time(5)
setmetatable(5, {})
setmetatable({}, 5)
xpcall(print, 5)
load(5)
load(nil)
coroutine.create('x')
coroutine.wrap({})
coroutine.resume(nil)
coroutine.close(true)
string.pack('Xi17', 1)
utf8.offset('äö', 1, 2)
utf8.codepoint('x', 1, 2.5)
table.concat({1, {}, 3})
table.unpack({}, 1, 1e7)
string.rep('x', '2', 5)
math.tointeger('8')
tonumber('7', 1)
tonumber('9223372036854775808')
'0x7fffffffffffffff' + 1
'10' // '0'
2^53 == 2^53 + 1
math.ult(1, '-1')
"a" < 1
{} .. 'x'
-{}
#5
(5)()
select(0)
string.format('%5.2s|%-5d|%+.3f', 'abc', 3, 2.5)
string.format('%q', 0/0)
string.format('%a', 1)
string.format('%i', 3.5)
string.find('a', '[a-')
string.gsub('abc', '(a)(b)', '%3')
math.type(os.clock())
"""

EXPRESSIONS = (*_FORMATS, *_PATTERNS, *_SUBSTITUTIONS, *_ARITHMETIC, *_MORE.strip().splitlines())
