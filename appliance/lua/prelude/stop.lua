-- Stopping: how an execution ends when the hub wants it to, whatever it is doing.
-- A hook looks up every so often and asks the hub; once the answer is a reason, every further instruction raises STOP,
-- and whatever would catch errors (pcall, coroutines, require) raises it anew.
local lares = ...

-- What opens files and runs code of the host's is taken out of the state altogether.
for _, name in next, {'io', 'package', 'python', 'require', 'dofile', 'loadfile'} do
  _G[name] = nil
  debug.getregistry()._LOADED[name] = nil
end
for _, name in next, {'execute', 'exit', 'getenv', 'remove', 'rename', 'setlocale', 'tmpname'} do os[name] = nil end

local poll = lares.poll
local error, type, find = error, type, string.find
local sethook, getinfo, time = debug.sethook, debug.getinfo, os.time

local EVERY = 1000             -- instructions between two looks
local ASKED_EVERY = 50         -- looks between two questions to the hub, unless the second has changed meanwhile
local LARGE = 1000000          -- bytes or items of work in C after which the hub is asked anyway
local STOP = setmetatable({}, {__tostring = function() return 'execution stopped' end, __metatable = false})

lares.MEMORY = 4               -- the reason that is found here; the others are the hub's (appliance/lua/limits.py)
lares.stopped = false          -- the reason, once there is one; false and not nil, for a new field would need memory
lares.place = false            -- where it was found, as 'file:line'

local looks, second, work = 0, time(), 0
local hook

-- The user's innermost line from this level of the stack on. Frames of the stripped prelude and of C have no line.
local function place(level, co)
  for each = level, level + 30 do
    local info
    if co then info = getinfo(co, each, 'Sl') else info = getinfo(each, 'Sl') end
    if not info then return nil end
    if info.currentline > 0 then return info.short_src .. ':' .. info.currentline end
  end
end

local function stop(reason)
  if not lares.stopped then
    lares.stopped = reason
    lares.place = place(3)
  end
  sethook(hook, '', 1)
  error(STOP, 0)
end

hook = function()
  if not lares.stopped then
    looks = looks + 1
    if looks < ASKED_EVERY and time() == second then return end
    looks, second = 0, time()
  end
  local reason = lares.stopped or poll()
  if reason then stop(reason) end
end

local function check()
  local reason = lares.stopped or poll()
  if reason then stop(reason) end
end

-- Instructions are what the hook counts; work that C does in one instruction is counted here.
local function charge(amount)
  work = work + amount
  if work > LARGE then work = 0 check() end
end

-- After every caught error: nobody catches a stop, and running out of memory is one. At the limit of the C stack the
-- hook itself finds no room to run, so the hub is asked here.
local function caught(ok, fault)
  if lares.stopped then stop(lares.stopped) end
  if not ok and type(fault) == 'string' then
    if fault == 'not enough memory' then stop(lares.MEMORY) end
    if find(fault, 'stack overflow', 1, true) then check() end
  end
end

local function watch(co)
  sethook(co, hook, '', EVERY)
end

-- Raise an error at the user's line, however many frames of the prelude lie between.
local function raise(message)
  local at = place(3)
  error(at and at .. ': ' .. message or message, 0)
end

lares.stop, lares.check, lares.charge, lares.caught, lares.watch, lares.raise, lares.place_in =
  stop, check, charge, caught, watch, raise, place
