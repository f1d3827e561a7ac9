-- The driver: what the hub calls. It begins an execution or a description, and takes it on step by step; every step
-- ends with a kind and up to three texts.
local lares = ...
local error, type, tostring, next, sub, rawget = error, type, tostring, next, string.sub, rawget
local create, resume, status = coroutine.create, coroutine.resume, coroutine.status
local getinfo, metatable_of, place_in = debug.getinfo, debug.getmetatable, lares.place_in

local LONGEST = 4096           -- bytes of an error's message
lares.FUNCTION = '\0function'  -- the key that stands for a function in a description

function lares.line_of(f)
  local line = getinfo(f, 'S').linedefined
  return line > 0 and line or 0                      -- Lua's own functions have none
end

local function definition_of(text, name)
  local definition = lares.compile(text, name)()
  if type(definition) ~= 'table' then
    error({is_definition = true, 'must return a table, not ' .. (definition == nil and 'nothing' or 'a ' .. type(definition))}, 0)
  end
  return definition
end

local function begin(body)
  lares.main = create(body)
  lares.watch(lares.main)
end

local function start(text, name, event)
  begin(function()
    local definition = definition_of(text, name)
    if type(definition.execute) ~= 'function' then
      error({is_definition = true, 'execute must be a function, not ' .. type(definition.execute)}, 0)
    end
    if event then definition.execute(lares.ctx, lares.decode(event)) else definition.execute(lares.ctx) end
  end)
end

local function describe(text, name)
  begin(function()
    local description, fault = lares.encode(definition_of(text, name), 'the returned table', true)
    if not description then error({is_definition = true, fault}, 0) end
    return description
  end)
end

-- What an error says, whatever value was thrown.
local function text_of(fault)
  if type(fault) == 'string' or type(fault) == 'number' then return tostring(fault) end
  if type(fault) == 'table' then
    if rawget(fault, 'is_definition') then return rawget(fault, 1) end
    local meta = metatable_of(fault)
    if type(meta) == 'table' and rawget(meta, '__tostring') then
      local ok, text = lares.raw_pcall(tostring, fault)
      lares.caught(ok, text)
      if ok then return text end
    end
    local message = rawget(fault, 'message')
    if type(message) == 'string' then return message end
    local text = lares.encode(fault, '')
    if text then return text end
  end
  return 'the error is a ' .. type(fault) .. ' value, not a message'
end

-- Where the execution is. A coroutine that died of a full stack cannot be looked into.
local function place()
  local ok, at = lares.raw_pcall(place_in, 0, lares.main)
  return lares.place or ok and at or ''
end

local function failed(fault)
  local teller = create(text_of)                     -- __tostring is the user's, so it is watched like all that is theirs
  lares.watch(teller)
  local ok, text = resume(teller, fault)
  if lares.stopped then return 'stopped', lares.stopped, lares.place or '' end
  if not ok or type(text) ~= 'string' then text = 'the error cannot be told' end
  return 'failed', sub(text, 1, LONGEST), place(), lares.absent or ''
end

-- 'asks', operation, arguments | 'done', result | 'stopped', reason, place | 'failed', message, place, what was absent
local function step()
  local is_ok, first, second = resume(lares.main)
  if lares.stopped then return 'stopped', lares.stopped, lares.place or '' end
  if not is_ok then return failed(first) end
  if status(lares.main) == 'suspended' then return 'asks', first, second end
  return 'done', first or ''
end

return lares.answer, start, describe, step, place
