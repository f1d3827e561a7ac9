-- Functions for automations that `lares import homeassistant` wrote. Values are those of Lares: numbers without units.

local ha = {}

--- The value of a device's attribute, nil if it is unknown. Of a measurement, its number.
function ha.value(ctx, device_id, attribute)
  local device = ctx:get_device(device_id)
  local value = device and device.attributes[attribute]
  if type(value) == "table" and value.value ~= nil then
    return value.value
  end
  return value
end

--- The same as a number, or the default if it is unknown or no number.
function ha.number(ctx, device_id, attribute, default)
  return ha.to_number(ha.value(ctx, device_id, attribute), default)
end

--- A text, number, or measurement as a number, or the default.
function ha.to_number(value, default)
  if type(value) == "table" then
    value = value.value
  end
  local number = type(value) == "number" and value or tonumber(value)
  if number == nil then
    return default
  end
  return number
end

function ha.name(ctx, device_id)
  local device = ctx:get_device(device_id)
  return device and device.name or device_id
end

--- Comparisons with an unknown value are false.
function ha.is_above(value, limit)
  local number = ha.to_number(value)
  return number ~= nil and number > limit
end

function ha.is_below(value, limit)
  local number = ha.to_number(value)
  return number ~= nil and number < limit
end

function ha.is_at_least(value, limit)
  local number = ha.to_number(value)
  return number ~= nil and number >= limit
end

function ha.is_at_most(value, limit)
  local number = ha.to_number(value)
  return number ~= nil and number <= limit
end

--- True as Home Assistant reads a template's result: true, "on", "yes", and numbers other than 0.
function ha.is_true(value)
  if type(value) == "string" then
    local word = value:lower()
    return word == "true" or word == "on" or word == "yes" or word == "enable" or word == "1"
  end
  return value == true or (type(value) == "number" and value ~= 0)
end

--- Whether it is between two times of day, given as HH:MM:SS; the window may span midnight.
function ha.is_between(from, to)
  local now = os.date("%H:%M:%S")
  if from < to then
    return now >= from and now < to
  end
  return now >= from or now < to
end

--- Whether today is one of these days: "mon", "tue", …
function ha.is_day(days)
  return ha.contains(days, ({ "sun", "mon", "tue", "wed", "thu", "fri", "sat" })[os.date("*t").wday])
end

function ha.contains(list, value)
  if type(list) == "string" then
    return list:find(ha.text(value), 1, true) ~= nil
  end
  for _, each in ipairs(list or {}) do
    if each == value then
      return true
    end
  end
  return false
end

function ha.choose(test, one, other)
  if test then
    return one
  end
  return other
end

function ha.default(value, default)
  if value == nil then
    return default
  end
  return value
end

function ha.text(value)
  if type(value) == "table" then
    value = value.value
  end
  if value == nil then
    return "unknown"
  end
  if math.type(value) == "float" and value == math.floor(value) and math.abs(value) < 1e15 then
    return ("%.1f"):format(value)
  end
  return tostring(value)
end

function ha.trim(value)
  return (ha.text(value):gsub("^%s+", ""):gsub("%s+$", ""))
end

function ha.round(value, digits)
  local factor = 10 ^ (digits or 0)
  local rounded = math.floor(value * factor + 0.5) / factor
  return (digits or 0) > 0 and rounded or math.tointeger(rounded) or rounded
end

function ha.truncate(value)
  if value == nil then
    return nil
  end
  return math.tointeger(value < 0 and math.ceil(value) or math.floor(value))
end

function ha.clamp(value, low, high)
  return math.max(low, math.min(high, value))
end

function ha.min(list)
  return math.min(table.unpack(list))
end

function ha.max(list)
  return math.max(table.unpack(list))
end

--- Sleep for any number of seconds; `ctx:sleep` takes at most an hour.
function ha.sleep(ctx, secs)
  while secs > 3600 do
    ctx:sleep(3600)
    secs = secs - 3600
  end
  ctx:sleep(math.max(secs, 0))
end

--- Wait until a test holds, at most for the seconds given; the test is repeated once per second.
function ha.wait_until(ctx, test, timeout_secs)
  local waited = 0
  while not test() do
    if waited >= timeout_secs then
      return false
    end
    ctx:sleep(1)
    waited = waited + 1
  end
  return true
end

--- Add to a variable that holds a number.
function ha.add(ctx, name, step)
  ctx:set(name, ha.to_number(ctx:get(name), 0) + step)
end

return ha
