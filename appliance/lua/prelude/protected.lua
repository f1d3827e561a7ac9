-- Catching errors, loading text and coroutines: as in Lua, but no stop is ever caught.
local lares = ...
local error, type, next, select, rawequal, unpack, pack, concat = error, type, next, select, rawequal, table.unpack, table.pack, table.concat
local raw_pcall, raw_xpcall, raw_load = pcall, xpcall, load
local traceback, gsub, sub = debug.traceback, string.gsub, string.sub
local create, close, running, status, yield, is_yieldable =
  coroutine.create, coroutine.close, coroutine.running, coroutine.status, coroutine.yield, coroutine.isyieldable
local caught, raise, charge, resume = lares.caught, lares.raise, lares.charge, lares.resume

local DEEPEST = 160            -- pcalls within each other: Lua's own count of them restarts at each failure in a coroutine,
                               -- and unwinding many thousands of them takes minutes
local LONGEST = 1048576        -- bytes of source text
local depths = setmetatable({}, {__mode = 'k'})

lares.raw_pcall = raw_pcall

-- Functions that few executions need: their part is loaded when one of them is first called. As bytecode it takes a
-- third of the room.
function lares.rarely(part, ...)
  for _, name in next, {...} do
    lares[name] = function(...)
      local chunk, fault = raw_load(lares.rare[part], '=prelude', 'b')
      if not chunk then caught(false, fault) error(fault, 0) end
      chunk(lares)
      return lares[name](...)
    end
  end
end

---------------------------------------------------------------- pcall, xpcall
local function enter()
  local co = running()
  local depth = depths[co] or 0
  if depth >= DEEPEST then raise('stack overflow (more than ' .. DEEPEST .. ' pcalls within each other)') end
  depths[co] = depth + 1
  return co, depth
end

local function leave(co, depth, ok, ...)
  depths[co] = depth
  if not ok or lares.stopped then caught(ok, ...) end
  return ok, ...
end

function lares.pcall(f, ...)
  local co, depth = enter()
  return leave(co, depth, raw_pcall(f, ...))
end

local function clean(trace)
  return (gsub(trace, '\n\t%?: [^\n]*', ''))
end

local trace_of_handled         -- while a handler of xpcall runs: the trace of the error that it handles

local function handle(handler, co, depth, ok, ...)
  depths[co] = depth
  if ok and not lares.stopped then return true, ... end
  local held = ...
  if type(held) ~= 'table' or not held.is_held then held = {fault = held} end   -- 'error in error handling' is text
  caught(false, held.fault)
  local before = trace_of_handled
  trace_of_handled = held.trace
  local results = pack(lares.pcall(handler, held.fault))
  trace_of_handled = before
  return false, unpack(results, 2, results.n)
end

-- The handler runs after unwinding, so that it may call ctx and cannot hide a stop; debug.traceback in it still tells
-- where the error was.
function lares.xpcall(f, handler, ...)
  local co, depth = enter()
  local function hold(fault)
    return {is_held = true, fault = fault, trace = not lares.stopped and traceback('', 2) or nil}
  end
  return handle(handler, co, depth, raw_xpcall(f, hold, ...))
end

function lares.traceback(message, level, ...)
  if type(message) == 'thread' then return clean(traceback(message, level, ...)) end
  if message ~= nil and type(message) ~= 'string' and type(message) ~= 'number' then return message end
  if trace_of_handled then return clean((message and message .. '\n' or '') .. sub(trace_of_handled, 2)) end
  return clean(traceback(message, (type(level) == 'number' and level or 1) + 1))
end

---------------------------------------------------------------- load
local function gather(reader)
  local parts, size = {}, 0
  while true do
    local part = reader()
    if part == nil or part == '' then return concat(parts) end
    if type(part) ~= 'string' then raise('reader function must return a string') end
    size = size + #part
    if size > LONGEST then raise('source text is larger than 1 MiB') end
    parts[#parts + 1] = part
  end
end

-- As load, text only; `environment` is what the chunk sees when it names none.
function lares.load(environment, chunk, name, mode, ...)
  if type(chunk) == 'function' then chunk, name = gather(chunk), name or '=(load)' end
  if type(chunk) ~= 'string' then raise("bad argument #1 to 'load' (string or function expected)") end
  if #chunk > LONGEST then return nil, 'source text is larger than 1 MiB' end
  charge(50 * #chunk)
  if select('#', ...) > 0 then environment = ... end
  local compiled, fault = raw_load(chunk, name or chunk, 't', environment)
  if not compiled then caught(false, fault) end
  return compiled, fault
end

---------------------------------------------------------------- coroutines
local library = {status = status}
lares.coroutine = library

function library.create(f)
  local co = create(f)
  lares.watch(co)
  return co
end

library.resume = resume

local function closed(ok, ...)
  if not ok or lares.stopped then caught(ok, ...) end
  return ok, ...
end

function library.close(co)
  return closed(close(co))
end

function library.running()
  local co = running()
  return co, rawequal(co, lares.main)
end

function library.isyieldable(co)
  co = co or running()
  return not rawequal(co, lares.main) and is_yieldable(co)
end

function library.yield(...)
  if rawequal(running(), lares.main) then raise('attempt to yield from outside a coroutine') end
  return yield(...)
end

local function unwrap(co, ok, ...)
  if ok then return ... end
  close(co)
  error((...), 0)
end

function library.wrap(f)
  local co = library.create(f)
  return function(...) return unwrap(co, resume(co, ...)) end
end
