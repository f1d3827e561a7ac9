-- The sandbox: each execution has a separate table of globals. The table contains Lua's standard functions. Functions
-- that could leave the sandbox are missing, and functions of time use the hub's time.
local lares = ...
local error, type, tostring, rawget = error, type, tostring, rawget
local pack, concat, raw_load, raise, caught = table.pack, table.concat, load, lares.raise, lares.caught
local os, raw, instant = os, {setmetatable = setmetatable}, lares.instant   -- called as fields, so that Lua includes their names in errors

string.dump = nil

-- Use the hub's present time, and the home's time zone, which the worker has set.
local function time(fields)
  if fields == nil then return instant() end
  return (os.time(fields))
end

local function date(form, seconds)
  if form == nil then form = '%c' end
  if seconds == nil then seconds = instant() end
  return (os.date(form, seconds))
end

-- Reject __gc, because a finalizer runs when the Lua state closes, and the hook could not stop it.
local function set_metatable(object, meta)
  if type(meta) == 'table' and rawget(meta, '__gc') ~= nil then raise('__gc metamethods are not available') end
  return raw.setmetatable(object, meta)
end

local environment = {
  _VERSION = _VERSION,
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
  rawequal = rawequal, rawget = rawget, rawlen = rawlen, rawset = rawset, select = select, tonumber = tonumber,
  tostring = tostring, type = type,
  pcall = lares.pcall, xpcall = lares.xpcall, setmetatable = set_metatable, collectgarbage = collectgarbage,
  coroutine = lares.coroutine, string = string, table = table, utf8 = utf8, math = math,
  os = {clock = os.clock, difftime = os.difftime, time = time, date = date}, debug = {traceback = lares.traceback},
}
environment._G = environment
lares.environment = environment

function environment.load(...)
  return lares.load(environment, ...)
end

-- Load a file from the hub. The mode is 't' for a text, and 'b' for compiled code. Raise an error with the file and
-- the line.
function lares.compile(text, name, mode)
  local chunk, fault = raw_load(text, '@' .. name, mode, environment)
  if chunk then return chunk end
  caught(false, fault)
  error(fault, 0)
end

function environment.print(...)
  local words = pack(...)
  for index = 1, words.n do words[index] = tostring(words[index]) end
  lares.log('info', concat(words, '\t'))
end

local loaded, chain = {}, {}
local required = ''                                  -- the file that the innermost running `require` loads

local function describe_chain(name)
  for index = 1, #chain do
    if chain[index] == name then return concat(chain, ' → ', index) .. ' → ' .. name end
  end
end

local function finish(name, outer, ok, result)
  if not ok then caught(ok, result) end              -- after a stop, the script remains the required one
  required = outer
  lares.note_required(outer)
  chain[#chain] = nil
  if not ok then error(result, 0) end
  if result == nil then result = true end
  loaded[name] = result
  return result
end

-- Return a script's result. Each execution reads and runs the script once, at its first use.
function environment.require(name)
  if type(name) ~= 'string' then raise("bad argument #1 to 'require' (string expected, got " .. type(name) .. ')') end
  if loaded[name] ~= nil then return loaded[name] end
  local circle = describe_chain(name)
  if circle then raise('circular require: ' .. circle) end
  lares.check()
  local text, file = lares.request('require', name)
  local chunk = lares.compile(text, file, 't')
  local outer = required
  required = file
  lares.note_required(file)
  chain[#chain + 1] = name
  return finish(name, outer, lares.raw_pcall(chunk, name, file))
end
