-- Stop: end an execution when the hub requests a stop. A hook polls regularly. Once a poll returns a reason
-- to stop, every further instruction raises STOP, and the functions that catch errors (pcall, coroutines, require)
-- raise STOP again.
-- If the hook cannot stop the code, for example during a long library function, the worker halts the code's thread.
local lares = ...

-- Remove everything that opens files or runs code outside of Lua.
for _, name in next, {'io', 'package', 'python', 'require', 'dofile', 'loadfile'} do
  _G[name] = nil
  debug.getregistry()._LOADED[name] = nil
end
for _, name in next, {'execute', 'exit', 'getenv', 'remove', 'rename', 'setlocale', 'tmpname'} do os[name] = nil end

local poll = lares.poll
local error, type, find, sub = error, type, string.find, string.sub
local sethook, getinfo, time, clock = debug.sethook, debug.getinfo, os.time, os.clock

local INSTRUCTIONS_PER_POLL = 500   -- each instruction may be a long call of a C function
local ASKED_SECS = 0.01        -- seconds of computing between two polls, unless the second has changed
local STOP = setmetatable({}, {__tostring = function() return 'execution stopped' end, __metatable = false})

lares.MEMORY = 4               -- the only reason that is found here; protocol.py lists the hub's reasons
lares.stopped = false          -- the reason to stop; initially false instead of nil, because a new field would need memory
lares.position = false            -- the position of the stop, as 'file:line'

local asked, second = 0, 0     -- the time of the last poll
local hook

-- Return the innermost line of a file, starting at this stack level. Skip C frames and prelude frames, which have no
-- line, and text from load(), which has no file.
local function position(level, co)
  for each = level, level + 30 do
    local info
    if co then info = getinfo(co, each, 'Sl') else info = getinfo(each, 'Sl') end
    if not info then return nil end
    if info.currentline > 0 and sub(info.source, 1, 1) == '@' then return info.short_src .. ':' .. info.currentline end
  end
end

local function stop(reason)
  if not lares.stopped then
    lares.stopped = reason
    lares.position = position(3)
  end
  sethook(hook, '', 1)
  error(STOP, 0)
end

hook = function()
  if not lares.stopped then
    local now = clock()
    if now - asked < ASKED_SECS and time() == second then return end
    asked, second = now, time()
  end
  local reason = lares.stopped or poll(position(3))
  if reason then stop(reason) end
end

local function check()
  local reason = lares.stopped or poll()
  if reason then stop(reason) end
end

-- Call this function after every caught error. If the error is a stop or a lack of memory, the function raises a
-- stop. The function also polls, because the hook cannot run at the limit of the C stack.
local function caught(ok, fault)
  if lares.stopped then stop(lares.stopped) end
  if not ok and type(fault) == 'string' then
    if fault == 'not enough memory' then stop(lares.MEMORY) end
    if find(fault, 'stack overflow', 1, true) then check() end
  end
end

-- Return the results of pcall, xpcall, and resume. Raise a stop again.
local function passed(ok, ...)
  if not ok or lares.stopped then caught(ok, ...) end
  return ok, ...
end

local function watch(co)
  sethook(co, hook, '', INSTRUCTIONS_PER_POLL)
end

-- Raise an error at the user's line, even through frames of the prelude.
local function raise(message)
  local at = position(3)
  error(at and at .. ': ' .. message or message, 0)
end

lares.stop, lares.check, lares.caught, lares.passed, lares.watch, lares.raise, lares.position_at =
  stop, check, caught, passed, watch, raise, position
