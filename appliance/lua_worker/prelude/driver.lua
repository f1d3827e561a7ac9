-- The driver: the worker's entry points into Lua. The driver begins an execution or a description, and continues the
-- run step by step. Each step returns a frame kind and up to three texts.
local lares = ...
local error, type, tostring, next, rawget, concat = error, type, tostring, next, rawget, table.concat
local sub, match = string.sub, string.match
local create, resume, status = coroutine.create, coroutine.resume, coroutine.status
local getinfo, metatable_of, position_at = debug.getinfo, debug.getmetatable, lares.position_at

local DESCRIBE, COMPILE, CALL, REQUEST, DONE, STOPPED, FAILED = 2, 3, 7, 17, 19, 20, 21    -- see protocol.FrameKind
local MAX_MESSAGE_BYTES = 4096  -- maximum length of an error message
local MAX_LEVELS = 200          -- maximum nesting of coroutines, as Lua counts it
lares.FUNCTION = '\0function'  -- in a description, this key marks a function
lares.FAULT = '\0fault'        -- this key marks the error of a device that cannot be encoded as JSON

function lares.line_of(f)
  local line = getinfo(f, 'S').linedefined
  return line > 0 and line or 0                      -- functions of Lua itself have no line
end

local body, name, given, text, mode                  -- the job, see start

-- Call the user's function. First store the function's position, because a tail call removes the function's stack
-- frame.
local began = ''
local function enter(run)
  began = name .. ':' .. lares.line_of(run)
  lares.poll(began)
end

local function compiled()
  local chunk = lares.compile(text, name, mode)
  text = nil                                         -- free its memory, because the run may sleep for long
  return chunk
end

local function take_definition()
  local definition = compiled()()
  if type(definition) ~= 'table' then
    error('must return a table, not ' .. (definition == nil and 'nothing' or 'a ' .. type(definition)), 0)
  end
  return definition
end

local function execute()
  local run = take_definition().execute
  if type(run) ~= 'function' then error('execute must be a function, not ' .. type(run), 0) end
  enter(run)
  if given ~= '' then run(lares.ctx, lares.decode(given)) else run(lares.ctx) end
end

local function describe()
  local description, fault = lares.encode(take_definition(), 'the returned table', true)
  return description or error(fault, 0)
end

-- Run a function of an adapter kind. Return the function's result and ctx.memory as JSON.
local function call()
  local job = lares.decode(given)
  local definition, path = take_definition(), concat(job.path, '.')
  local run = definition
  for index = 1, #job.path do run = type(run) == 'table' and run[job.path[index]] or nil end
  if type(run) == 'table' then run = run.run end
  if type(run) ~= 'function' then error(path .. ' must be a function, not ' .. type(run), 0) end
  enter(run)
  return lares.call_kind(job, path, run, definition.name, began)
end

local BODIES = {[COMPILE] = compiled, [DESCRIBE] = describe, [CALL] = call}

lares.main = create(function()
  local result = body()
  return type(result) == 'string' and result or ''
end)
lares.watch(lares.main)

-- `given` is the event or the call as JSON. The mode is 't' for a text, and 'b' for a file that the worker has
-- compiled.
local function start(kind, ...)
  body = BODIES[kind] or execute
  name, given, text, mode = ...
end

-- Return the text of an error of any type, and whether the error contains no message.
local function text_of(fault)
  if type(fault) == 'string' or type(fault) == 'number' then return tostring(fault) end
  if type(fault) == 'table' then
    local meta = metatable_of(fault)
    if type(meta) == 'table' and rawget(meta, '__tostring') then
      local ok, text = lares.raw_pcall(tostring, fault)
      lares.caught(ok, text)
      if ok then return text end
    end
    local message = rawget(fault, 'message')
    if type(message) == 'string' then return message end
    local text = lares.encode(fault, '')
    if text and text ~= '{}' and text ~= '[]' then return text, true end
  end
  return 'the error is a ' .. type(fault) .. ' value, not a message', true
end

-- Return the running line as `file:line`. A coroutine cannot be inspected after a stack overflow.
local function position()
  local ok, at = lares.raw_pcall(position_at, 0, lares.main)
  return lares.position or ok and at or began
end

-- Remove repeated positions from the message, because coroutine.wrap adds a position at every level.
local function shortened(text)
  local position, from = match(sub(text, 1, 1024), '^[^\n]-:%d+: '), 1
  for _ = 1, position and MAX_LEVELS or 0 do
    if sub(text, from + #position, from + 2 * #position - 1) ~= position then break end
    from = from + #position
  end
  return sub(text, from, from + MAX_MESSAGE_BYTES - 1)
end

local function failed(fault)
  local teller = create(text_of)                     -- __tostring may be a function of the user, so the hook must watch it
  lares.watch(teller)
  local ok, text, has_no_message = resume(teller, fault)
  if lares.stopped then return STOPPED, lares.stopped, lares.position or '' end
  if not ok or type(text) ~= 'string' then text = 'the error has no text' end
  local at = position()
  if has_no_message and at ~= '' then text = at .. ': ' .. text end
  return FAILED, shortened(text), at, lares.absent or ''
end

-- Continue the execution. Return the next frame's kind and parts. For STOPPED, the reason is a number.
local function step()
  local is_ok, first, second, third = resume(lares.main)
  if lares.stopped then return STOPPED, lares.stopped, lares.position or '' end
  if not is_ok then return failed(first) end
  if status(lares.main) == 'suspended' then return REQUEST, first, second, third or '' end
  return DONE, first
end

return lares.answer, start, step, position
