-- Functions for the automations that `lares import homeassistant` has written. Values have the same form as in Lares,
-- except that measurements are numbers without units.

-- The home's coordinates, for the sun's elevation.
local LATITUDE, LONGITUDE = 0, 0

local ha = {}

--- Return the value of a device's attribute, or nil if the value is unknown. If the value is a measurement, return only its number.
function ha.value(ctx, device_id, attribute)
  local device = ctx:get_device(device_id)
  local value = device and device.attributes[attribute]
  if type(value) == "table" and value.value ~= nil then
    return value.value
  end
  return value
end

--- Return the value of an attribute as a number, divided by the factor, if any. If the value is unknown or not a
--- number, return the default.
function ha.number(ctx, device_id, attribute, default, factor)
  local number = ha.to_number(ha.value(ctx, device_id, attribute))
  if number == nil then
    return default
  end
  return factor and number / factor or number
end

--- Convert a text, number, or measurement to a number. Return the default for any other value.
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

--- A comparison with an unknown value is false.
function ha.is_above(value, limit)
  local number, least = ha.to_number(value), ha.to_number(limit)
  return number ~= nil and least ~= nil and number > least
end

function ha.is_below(value, limit)
  local number, most = ha.to_number(value), ha.to_number(limit)
  return number ~= nil and most ~= nil and number < most
end

function ha.is_at_least(value, limit)
  local number = ha.to_number(value)
  return number ~= nil and number >= limit
end

function ha.is_at_most(value, limit)
  local number = ha.to_number(value)
  return number ~= nil and number <= limit
end

--- Return whether a template's result is true in Home Assistant: true, "on", "yes", and numbers other than 0.
function ha.is_true(value)
  if type(value) == "string" then
    local word = value:lower()
    return word == "true" or word == "on" or word == "yes" or word == "enable" or word == "1"
  end
  return value == true or (type(value) == "number" and value ~= 0)
end

--- Return whether the time is between two times of day (HH:MM:SS). The window can include midnight.
function ha.is_between(from, to)
  local now = os.date("%H:%M:%S")
  from, to = ha.full_time(from), ha.full_time(to)
  if not from or not to then
    return false
  end
  if from < to then
    return now >= from and now < to
  end
  return now >= from or now < to
end

--- Return the time of day in a text ("7:30", "2026-12-24 07:30:00") as HH:MM:SS, or nil if the text contains none.
function ha.full_time(text)
  local hour, minute, second = tostring(text):match("(%d%d?):(%d%d):?(%d*)$")
  return hour and ("%02d:%s:%02d"):format(tonumber(hour), minute, tonumber(second) or 0)
end

--- Find the next time in a text ("07:30", "2026-12-24 07:30:00", "2026-12-24"), add some seconds, and start the timer
--- for the result. Return whether this timer fired the event.
function ha.start_timer(ctx, timer, text, offset_secs)
  local at = ha.next_time(text, offset_secs)
  if at then
    ctx:start_timer(timer, at - os.time())
  else
    ctx:cancel_timer(timer)
  end
end

--- Return the next time that matches a text of this form, or nil if no time in the next 400 days matches.
function ha.next_time(text, offset_secs)
  local year, month, day = tostring(text):match("(%d%d%d%d)-(%d%d?)-(%d%d?)")
  local time = ha.full_time(text)
  if not year and not time then
    return nil
  end
  local hour, minute, second = (time or "00:00:00"):match("(%d+):(%d+):(%d+)")
  local now = os.time()
  for days = 0, year and 0 or 3 do -- because of the offset, a time of yesterday or tomorrow can be next
    local at = os.date("*t", now)
    at.day = at.day + days - 1
    if year then
      at.year, at.month, at.day = tonumber(year), tonumber(month), tonumber(day)
    end
    at.hour, at.min, at.sec, at.isdst = tonumber(hour), tonumber(minute), tonumber(second), nil
    local instant = os.time(at) + (offset_secs or 0)
    if instant > now and instant - now < 400 * 86400 then
      return instant
    end
  end
end

--- Return the height of the sun above the horizon in degrees, accurate to within half a degree.
function ha.sun_height(at)
  local days = (at or os.time()) / 86400 - 10957.5 -- centuries since noon of 2000-01-01
  local rad = math.pi / 180
  local anomaly = (357.529 + 0.98560028 * days) * rad
  local longitude = (280.459 + 0.98564736 * days + 1.915 * math.sin(anomaly) + 0.020 * math.sin(2 * anomaly)) * rad
  local tilt = 23.439 * rad
  local declination = math.asin(math.sin(tilt) * math.sin(longitude))
  local ascension = math.atan(math.cos(tilt) * math.sin(longitude), math.cos(longitude))
  local hour_angle = (280.46061837 + 360.98564736629 * days + LONGITUDE) * rad - ascension
  local north = LATITUDE * rad
  local height = math.sin(north) * math.sin(declination)
    + math.cos(north) * math.cos(declination) * math.cos(hour_angle)
  return math.asin(height) / rad
end

--- Return whether the sun is below the horizon, now or in this number of seconds.
function ha.is_dark(secs)
  return ha.sun_height(os.time() + (secs or 0)) < -0.833
end

--- Return whether a timer's event is at most five minutes late. Home Assistant also skips times that pass while it is off.
function ha.is_on_time(event)
  return (event.late_secs or 0) <= 300
end

--- Return whether today is one of these days ("mon", "tue", …).
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

--- Sleep for any number of seconds. A single `ctx:sleep` takes at most an hour.
function ha.sleep(ctx, secs)
  while secs > 3600 do
    ctx:sleep(3600)
    secs = secs - 3600
  end
  ctx:sleep(math.max(secs, 0))
end

--- Wait until a device's attribute matches, but not longer than the time limit. A single `ctx:wait_for` takes at most
--- an hour.
function ha.wait_for(ctx, device_id, wanted, timeout_secs)
  repeat
    wanted.timeout_secs = math.min(timeout_secs, 3600)
    if ctx:wait_for(device_id, wanted) then
      return true
    end
    timeout_secs = timeout_secs - wanted.timeout_secs
  until timeout_secs <= 0
  return false
end

--- Wait until a device's attribute begins to match. If the attribute already matches, first wait until it does not.
function ha.wait_for_trigger(ctx, device_id, wanted, timeout_secs)
  local function matches()
    local value = ha.value(ctx, device_id, wanted.attribute)
    if wanted.equals ~= nil then
      return value == wanted.equals
    end
    return (wanted.above == nil or ha.is_above(value, wanted.above))
      and (wanted.below == nil or ha.is_below(value, wanted.below))
  end
  while matches() do
    if timeout_secs <= 0 then
      return false
    end
    ctx:sleep(1)
    timeout_secs = timeout_secs - 1
  end
  return ha.wait_for(ctx, device_id, wanted, math.max(timeout_secs, 0))
end

--- Wait until one of the tests becomes true and holds for some seconds, but not longer than the time limit. Repeat the
--- tests once per second. A test that is already true must first become false.
function ha.wait_for_any(ctx, tests, timeout_secs, for_secs)
  local waited, was_false, held = 0, {}, {}
  while true do
    for number, test in ipairs(tests) do
      local holds = test()
      was_false[number] = was_false[number] or not holds
      held[number] = holds and was_false[number] and (held[number] or -1) + 1 or -1
      if held[number] >= (for_secs or 0) then
        return true
      end
    end
    if waited >= timeout_secs then
      return false
    end
    ctx:sleep(1)
    waited = waited + 1
  end
end

--- Wait until a test has held for some seconds, but not longer than the time limit. Repeat the test once per second.
function ha.wait_until(ctx, test, timeout_secs, for_secs)
  local waited, held = 0, 0
  while true do
    local holds = test()
    if holds and held >= (for_secs or 0) then
      return true
    elseif waited >= timeout_secs then
      return false
    end
    ctx:sleep(1)
    waited, held = waited + 1, holds and held + 1 or 0
  end
end

--- Store the state of lights under a name, to restore it later.
function ha.keep(ctx, name, ids)
  ctx:set(name, ctx:snapshot(ids))
end

function ha.restore(ctx, name)
  local kept = ctx:get(name)
  if kept then
    ctx:restore(kept)
  end
end

--- Add a number to a variable. The result stays between the limits, if any.
function ha.add(ctx, name, step, low, high)
  ctx:set(name, ha.clamp(ha.to_number(ctx:get(name), 0) + step, low or -math.huge, high or math.huge))
end

return ha
