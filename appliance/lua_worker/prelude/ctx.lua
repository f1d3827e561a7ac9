-- ctx: the first argument of execute. Each call of a method sends one request. A wrong argument raises an error at
-- the user's line.
local lares = ...
local type, tostring, rawequal, sub = type, tostring, rawequal, string.sub
local running, yield, is_yieldable = coroutine.running, coroutine.yield, coroutine.isyieldable
local encode, encoded, decode = lares.encode, lares.encoded, lares.decode
local raise, position_at = lares.raise, lares.position_at
local ask, take, limit, methods = lares.ask, lares.take, lares.limit, lares.methods

local MAX_LOG_BYTES = 8192  -- maximum bytes of a log message, and of its fields
local ctx = {}
lares.ctx = ctx

local is_ok, body, script      -- the parts of the latest answer

function lares.answer(...)
  is_ok, body, script = ...
end

-- Return the answer to a request: a text, and for a script also the script's name. The outermost coroutine yields and
-- is resumed with the answer, so that waiting needs no thread. If Lua cannot yield, for example in a user's coroutine
-- or inside a library function, the thread waits.
function lares.request(operation, payload)
  if lares.stopped then lares.stop(lares.stopped) end
  local position = position_at(4)
  if is_yieldable() and rawequal(running(), lares.main) then
    yield(operation, payload, position)
  else
    local answer = ask(operation, payload, position)
    if not answer then lares.check() end
    is_ok, body, script = answer == 1, take(), take()
    limit()
  end
  local text, name = body, script
  body, script = nil, nil
  if is_ok then return text, name end
  raise(text)
end

local function check_self(self, name)
  if not rawequal(self, ctx) then raise('call it with a colon: ctx:' .. name .. '(...), not ctx.' .. name .. '(...)') end
end

local function check_argument(value, expected, number, name)
  if not expected or expected == 'any' or expected == 'any?' then return end
  local kind = sub(expected, -1) == '?' and sub(expected, 1, -2) or expected
  if type(value) == kind or (value == nil and kind ~= expected) then return end
  raise('bad argument #' .. number .. ' to ctx:' .. name .. ' (' .. kind .. ' expected, got ' .. type(value) .. ')')
end

local function encoded_argument(value, number, name)
  if value == nil then return 'null' end
  local text, fault = encode(value, '')
  return text or raise('ctx:' .. name .. ': argument #' .. number .. fault)
end

local function call(name, method, first, second, third)
  check_argument(first, method[1], 1, name)
  check_argument(second, method[2], 2, name)
  check_argument(third, method[3], 3, name)
  local arguments = '[' .. encoded_argument(first, 1, name) .. ',' .. encoded_argument(second, 2, name)
    .. ',' .. encoded_argument(third, 3, name) .. ']'
  if name == 'sleep' and first >= 1 then collectgarbage('collect') end    -- free memory, because the state remains during the sleep
  local answer = decode(lares.request(name, arguments))
  if answer == nil and method.absent then lares.absent = method.absent .. " '" .. sub(first, 1, 100) .. "'" end
  return answer
end

-- Create each method at its first use, because most executions use only a few. ctx_methods.py lists the methods.
setmetatable(ctx, {__metatable = false, __index = function(_, name)
  local method = methods[name]
  if not method then return nil end
  local function run(self, first, second, third)
    check_self(self, name)
    return call(name, method, first, second, third)
  end
  ctx[name] = run
  return run
end})

-- Log a line. The line is sent without waiting for an answer, so logging works even if Lua cannot yield.
function lares.log(level, message, fields)
  if #message > MAX_LOG_BYTES then message = sub(message, 1, MAX_LOG_BYTES) .. '…' end
  lares.emit(level, message, fields)
end

local LEVELS = {trace = true, debug = true, info = true, warn = true, error = true}

-- Implement ctx:log for scenes, automations, and adapter kinds.
function lares.write(level, message, fields)
  check_argument(level, 'string', 1, 'log')
  check_argument(fields, 'table?', 3, 'log')
  if not LEVELS[level] then raise("ctx:log: level must be trace, debug, info, warn or error, not '" .. sub(level, 1, 40) .. "'") end
  local text = fields and encoded(fields, 'ctx:log: fields') or nil
  if text and #text > MAX_LOG_BYTES then raise('ctx:log: fields are larger than 8 KiB') end
  lares.log(level, tostring(message), text)
end

function ctx.log(self, level, message, fields)
  check_self(self, 'log')
  lares.write(level, message, fields)
end
