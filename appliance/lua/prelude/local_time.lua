-- Time: os.time and os.date in the home's time zone. The hub answers in whole numbers: the present instant, how far
-- local time is ahead of UTC at an instant (doubled, plus one in summer time), and the instant of a local time.
-- Loaded when a script first asks for the time (library.lua).
local lares = ...
local instant, ahead_at, instant_of = lares.instant, lares.ahead_at, lares.instant_of
local type, tonumber, mathtype, format, gsub, sub, date = type, tonumber, math.type, string.format, string.gsub, string.sub, os.date
local raise = lares.raise

local function whole(fields, name, default)
  local value = fields[name]
  if value == nil then
    if not default then raise("field '" .. name .. "' missing in date table") end
    return default
  end
  local number = mathtype(value) == 'float' and value // 1 == value and value // 1 | 0 or tonumber(value)
  if mathtype(number) ~= 'integer' then raise("field '" .. name .. "' is not an integer") end
  if number > 2147483647 or number < -2147483648 then raise("field '" .. name .. "' is out-of-bound") end
  return number
end

local function fields_at(seconds, ahead)
  local fields = date('!*t', seconds + ahead // 2)
  fields.isdst = ahead % 2 == 1
  return fields
end

function lares.time(fields)
  if fields == nil then return instant() end
  if type(fields) ~= 'table' then raise("bad argument #1 to 'time' (table expected, got " .. type(fields) .. ')') end
  local seconds = instant_of(whole(fields, 'year'), whole(fields, 'month'), whole(fields, 'day'),
    whole(fields, 'hour', 12), whole(fields, 'min', 0), whole(fields, 'sec', 0))
  if not seconds then raise('time result cannot be represented in this installation') end
  for name, value in next, fields_at(seconds, ahead_at(seconds)) do fields[name] = value end
  return seconds
end

local function zone(ahead)
  local minutes = ahead // 2 // 60
  local sign = minutes < 0 and '-' or '+'
  if minutes < 0 then minutes = -minutes end
  return format('%s%02d%02d', sign, minutes // 60, minutes % 60)
end

function lares.date(form, seconds)
  form, seconds = form or '%c', seconds or instant()
  if type(form) ~= 'string' then raise("bad argument #1 to 'date' (string expected, got " .. type(form) .. ')') end
  if mathtype(seconds) == 'float' and seconds // 1 == seconds then seconds = seconds // 1 | 0 end
  if mathtype(seconds) ~= 'integer' then raise("bad argument #2 to 'date' (number has no integer representation)") end
  lares.charge(#form)
  if sub(form, 1, 1) == '!' then return date(form, seconds) end
  local ahead = ahead_at(seconds)
  if not ahead then raise("bad argument #2 to 'date' (time out-of-bounds)") end
  if sub(form, 1, 2) == '*t' then return fields_at(seconds, ahead) end
  form = gsub(form, '%%(.)', function(letter) if letter == 'z' or letter == 'Z' then return zone(ahead) end end)
  return date('!' .. form, seconds + ahead // 2)
end
