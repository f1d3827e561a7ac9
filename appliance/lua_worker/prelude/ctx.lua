-- ctx: what execute is given. Each method is one request; a fault in its arguments is raised at the user's line.
local lares = ...
local type, tostring, rawequal, sub = type, tostring, rawequal, string.sub
local encode, decode, raise, request = lares.encode, lares.decode, lares.raise, lares.request

local MAX_LOG_BYTES = 8192  -- bytes of a log message, and of its fields
local ctx = {}
lares.ctx = ctx

local ARGUMENTS = {            -- methods, and what their arguments must be
  command = {'string', 'table'}, command_group = {'string', 'table'}, command_room = {'string', 'table'},
  invoke = {'string', 'table?'}, sleep = {'number'}, get_device = {'string'}, list_devices = {}, get_room = {'string'},
  list_rooms = {}, list_room_devices = {'string'}, get_group = {'string'}, list_groups = {},
  list_group_devices = {'string'}, get = {'string'}, set = {'string', 'any', 'table?'},
  start_timer = {'string', 'number'}, cancel_timer = {'string'}, run_scene = {'string'},
  wait_for = {'string', 'table'}, snapshot = {'table'}, restore = {'table'}, notify = {'string', 'table?'},
}
local ABSENT = {get_device = 'device', get_room = 'room', get_group = 'group'}

local function check_self(self, name)
  if not rawequal(self, ctx) then raise('call it with a colon: ctx:' .. name .. '(...), not ctx.' .. name .. '(...)') end
end

local function check_argument(value, expected, number, name)
  if not expected or expected == 'any' then return end
  local kind = sub(expected, -1) == '?' and sub(expected, 1, -2) or expected
  if type(value) == kind or (value == nil and kind ~= expected) then return end
  raise('bad argument #' .. number .. ' to ctx:' .. name .. ' (' .. kind .. ' expected, got ' .. type(value) .. ')')
end

local function encoded(value, what)
  if value == nil then return 'null' end
  local text, fault = encode(value, what)
  if not text then raise(fault) end
  return text
end

for name, expected in next, ARGUMENTS do
  local what = 'ctx:' .. name .. ': argument #'
  ctx[name] = function(self, first, second, third)
    check_self(self, name)
    check_argument(first, expected[1], 1, name)
    check_argument(second, expected[2], 2, name)
    check_argument(third, expected[3], 3, name)
    local arguments = '[' .. encoded(first, what .. 1) .. ',' .. encoded(second, what .. 2) .. ','
      .. encoded(third, what .. 3) .. ']'
    if name == 'sleep' and first >= 1 then collectgarbage('collect') end    -- the state stays for that long
    local answer = decode(request(name, arguments))
    if answer == nil and ABSENT[name] then lares.absent = ABSENT[name] .. " '" .. sub(first, 1, 100) .. "'" end
    return answer
  end
end

-- A line for the log. It is sent at once and waits for nothing, so it works everywhere and is no request.
function lares.log(level, message, fields)
  if #message > MAX_LOG_BYTES then message = sub(message, 1, MAX_LOG_BYTES) .. '…' end
  lares.emit(level, message, fields)
end

local LEVELS = {trace = true, debug = true, info = true, warn = true, error = true}

function ctx.log(self, level, message, fields)
  check_self(self, 'log')
  check_argument(level, 'string', 1, 'log')
  check_argument(fields, 'table?', 3, 'log')
  if not LEVELS[level] then raise("ctx:log: level must be trace, debug, info, warn or error, not '" .. sub(level, 1, 40) .. "'") end
  local text = fields and encoded(fields, 'ctx:log: fields') or nil
  if text and #text > MAX_LOG_BYTES then raise('ctx:log: fields are larger than 8 KiB') end
  lares.log(level, tostring(message), text)
end
