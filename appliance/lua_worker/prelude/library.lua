-- The library: what users find under string, table, utf8, math, os, coroutine and debug. Everything is Lua's own but
-- what could leave the sandbox or would tell another time than the hub's.
local lares = ...
local type, rawget, setmetatable = type, rawget, setmetatable
local os, instant = os, lares.instant        -- called as fields, so that Lua knows their names where it complains

string.dump = nil

-- In the home's time zone, which is the worker's; the present is the hub's.
local function time(fields)
  if fields == nil then return instant() end
  return (os.time(fields))
end

local function date(form, seconds)
  return (os.date(form or '%c', seconds or instant()))
end

-- __gc is refused: a finalizer also runs while the state is closed, where no hook reaches.
function lares.setmetatable(object, meta)
  if type(meta) == 'table' and rawget(meta, '__gc') ~= nil then lares.raise('__gc metamethods are not available') end
  return setmetatable(object, meta)
end

lares.os = {clock = os.clock, difftime = os.difftime, time = time, date = date}
lares.debug = {traceback = lares.traceback}
