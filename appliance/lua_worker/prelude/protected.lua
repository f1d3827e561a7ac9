-- Versions of pcall, load, and the coroutine functions that never catch a stop.
local lares = ...
local type, select, rawequal = type, select, rawequal
local raw_traceback, gsub = debug.traceback, string.gsub
local running, yield, is_yieldable = coroutine.running, coroutine.yield, coroutine.isyieldable
local raw, coroutine = {load = load, pcall = pcall, xpcall = xpcall}, coroutine   -- called as fields, so that Lua includes their names in errors
local caught, passed, watch = lares.caught, lares.passed, lares.watch

lares.raw_pcall = pcall

function lares.pcall(...)
  return passed(raw.pcall(...))
end

-- A stop skips the handler, because the handler would run inside the hook and could not be stopped.
function lares.xpcall(f, handler, ...)
  if type(handler) ~= 'function' then return raw.xpcall(f, handler) end
  return passed(raw.xpcall(f, function(...)
    if lares.stopped then return nil end
    return handler(...)
  end, ...))
end

local function clean(trace)
  return type(trace) == 'string' and gsub(trace, '\n\t%?: [^\n]*', '') or trace
end

function lares.traceback(message, level, ...)
  if type(message) == 'thread' then return clean(raw_traceback(message, level, ...)) end
  return clean(raw_traceback(message, (level or 1) + 1))
end

-- Like Lua's load, but reject binary chunks. `environment` is the chunk's default environment.
function lares.load(environment, chunk, name, _, ...)
  if select('#', ...) > 0 then environment = ... end
  local compiled, fault = raw.load(chunk, name, 't', environment)
  if compiled then return compiled end
  caught(false, fault)
  return nil, fault
end

--- ------------------------------------------------------------- coroutines; the hook watches each coroutine from its
--- start
lares.coroutine = {status = coroutine.status}

function lares.coroutine.create(f)
  local co = coroutine.create(f)
  watch(co)
  return co
end

function lares.coroutine.wrap(f)
  if type(f) ~= 'function' then return coroutine.wrap(f) end
  return coroutine.wrap(function(...)
    watch((running()))
    return f(...)
  end)
end

function lares.coroutine.resume(...)
  return passed(coroutine.resume(...))
end

function lares.coroutine.close(...)
  return passed(coroutine.close(...))
end

-- The outermost coroutine belongs to the driver. Users see this coroutine as the main program, which cannot yield.
function lares.coroutine.running()
  local co = running()
  return co, rawequal(co, lares.main)
end

function lares.coroutine.isyieldable(co)
  co = co or running()
  return not rawequal(co, lares.main) and is_yieldable(co)
end

function lares.coroutine.yield(...)
  if rawequal(running(), lares.main) then lares.raise('attempt to yield from outside a coroutine') end
  return yield(...)
end
