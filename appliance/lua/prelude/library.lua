-- The library: what users find under string, table, utf8, math, os and debug. Functions that do much work in C in one
-- instruction are charged for it; those that run callbacks from C are written in Lua, so that callbacks may call ctx.
local lares = ...
local type, next, select, rawget = type, next, select, rawget
local mathtype, sub, gsub = math.type, string.sub, string.gsub
local metatable_of = debug.getmetatable
local charge, raise = lares.charge, lares.raise

local MOST = 1000000           -- items that one call of a table function may go through

-- The state's own tables stay as they are and out of reach: parts that are loaded late find them untouched.
local function copy(from)
  local to = {}
  for key, value in next, from do to[key] = value end
  return to
end

---------------------------------------------------------------- string, utf8
local String = copy(string)
String.dump = nil
lares.string = String

-- Called as fields, so that Lua knows their names where it complains of an argument.
local raw, raw_utf8 = string, utf8

local function charged(result)
  if type(result) == 'string' then charge(#result) end
  return result
end

local function charge_for(text)
  if type(text) == 'string' then charge(#text) end
end

function String.upper(...) return charged(raw.upper(...)) end
function String.lower(...) return charged(raw.lower(...)) end
function String.reverse(...) return charged(raw.reverse(...)) end
function String.format(...) return charged(raw.format(...)) end
function String.pack(...) return charged(raw.pack(...)) end

-- Nothing, repeated 2^60 times, is nothing; C would go round as often to find that out.
function String.rep(text, count, separator)
  if text == '' and (separator == nil or separator == '') then count = count and 0 end
  return charged(raw.rep(text, count, separator))
end

function String.unpack(form, text, ...)
  charge_for(text)
  return raw.unpack(form, text, ...)
end

for name, guarded in next, lares.patterns do String[name] = guarded end
metatable_of('').__index = String

local Utf8 = copy(utf8)
lares.utf8 = Utf8
function Utf8.len(text, ...) charge_for(text) return raw_utf8.len(text, ...) end
function Utf8.offset(text, ...) charge_for(text) return raw_utf8.offset(text, ...) end
function Utf8.codepoint(text, ...) charge_for(text) return raw_utf8.codepoint(text, ...) end

---------------------------------------------------------------- table
local Table = copy(table)
lares.table = Table
local raw_table = table

local function length_of(list, name)
  if type(list) ~= 'table' then raise("bad argument #1 to '" .. name .. "' (table expected, got " .. type(list) .. ')') end
  local length = #list
  if mathtype(length) ~= 'integer' then raise('object length is not an integer') end
  if length > MOST then raise("table is too large for '" .. name .. "' (more than 1,000,000 items)") end
  charge(length)
  return length
end

lares.rarely('lists', 'sort', 'insert', 'remove')

-- A comparator may call ctx, and __len may tell C another length than it told us, with which C never ends. So where
-- there is a comparator or a metatable, Lua does the work.
function Table.sort(list, is_less)
  local length = length_of(list, 'sort')
  if is_less ~= nil and type(is_less) ~= 'function' then
    raise("bad argument #2 to 'sort' (function expected, got " .. type(is_less) .. ')')
  end
  if is_less or metatable_of(list) then return lares.sort(list, length, is_less) end
  return raw_table.sort(list)
end

function Table.insert(list, ...)
  local length = length_of(list, 'insert')
  if metatable_of(list) then return lares.insert(list, length, ...) end
  return raw_table.insert(list, ...)
end

function Table.remove(list, ...)
  local length = length_of(list, 'remove')
  if metatable_of(list) then return lares.remove(list, length, ...) end
  return raw_table.remove(list, ...)
end

function Table.move(list, from, to, ...)
  if mathtype(from) == 'integer' and mathtype(to) == 'integer' and to >= from then
    if to - from >= MOST or to - from < 0 then raise("table is too large for 'move' (more than 1,000,000 items)") end
    charge(to - from)
  end
  return raw_table.move(list, from, to, ...)
end

function Table.concat(list, ...)
  if type(list) == 'table' then charge(#list) end
  return raw_table.concat(list, ...)
end

function Table.unpack(list, ...)
  if type(list) == 'table' then charge(#list) end
  return raw_table.unpack(list, ...)
end

---------------------------------------------------------------- os, debug, the rest
lares.math = copy(math)
lares.os = {clock = os.clock, difftime = os.difftime}
lares.rarely('local_time', 'time', 'date')
function lares.os.time(...) return lares.time(...) end
function lares.os.date(...) return lares.date(...) end
lares.debug = {traceback = lares.traceback}

-- __gc is refused: a finalizer runs where the hook does not, and could hold the whole hub.
function lares.setmetatable(object, meta)
  if type(meta) == 'table' and rawget(meta, '__gc') ~= nil then raise('__gc metamethods are not available') end
  return setmetatable(object, meta)
end

function lares.collectgarbage(option)
  if option == 'count' then return collectgarbage('count') end
  if option ~= nil and option ~= 'collect' and option ~= 'step' then
    raise('collectgarbage: only "count", "collect" and "step" are available')
  end
  lares.check()
  collectgarbage('collect')
  return 0
end
