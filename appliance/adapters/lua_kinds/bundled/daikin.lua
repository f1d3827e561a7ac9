-- A Daikin air conditioner with a local WLAN adapter: BRP069A or B, except with firmware 2.
--
--   [adapters.bedroom]
--   type = "daikin"
--   base_url = "http://192.168.1.97"

local MODES = { ["0"] = "auto", ["1"] = "auto", ["7"] = "auto", ["2"] = "dry", ["3"] = "cool", ["4"] = "heat", ["6"] = "fan_only" }
local NUMBERS = { auto = "1", dry = "2", cool = "3", heat = "4", fan_only = "6" }
local FANS = { A = "auto", B = "quiet", ["3"] = "1", ["4"] = "2", ["5"] = "3", ["6"] = "4", ["7"] = "5" }
local RATES = { auto = "A", quiet = "B", ["1"] = "3", ["2"] = "4", ["3"] = "5", ["4"] = "6", ["5"] = "7" }

local NOT_DAIKIN = "the device at this address is not a Daikin"
local MAX_FAILURES = 3

local MODE = { capability = "hvac_mode", actions = { "set" }, values = { "off", "auto", "cool", "heat", "dry", "fan_only" } }
local TARGET = { capability = "target_temperature", actions = { "set" }, min = 10, max = 32, step = 0.5, unit = "°C" }
local FAN = { capability = "fan_mode", actions = { "set" }, values = { "auto", "quiet", "1", "2", "3", "4", "5" } }

-- Request the fields of an answer like ret=OK,pow=1,mode=3. Names are percent-encoded. Return nil and a message if the
-- unit reports an error. Return only nil if an answer with status 200 is unreadable.
local function ask(ctx, path, query)
  local answer = ctx:http { path = path, query = query }
  local found = {}
  for key, value in answer.body:gmatch("([%w_]+)=([^,]*)") do
    found[key] = value:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end)
  end
  if answer.status ~= 200 then return nil, (answer.fault or NOT_DAIKIN) .. " (" .. path .. ": status " .. answer.status .. ")" end
  if found.ret == "OK" then return found end
  if found.ret then return nil, "the Daikin answers " .. found.ret:sub(1, 100) .. " (" .. path .. ")" end
end

local function need(ctx, path)
  local found, fault = ask(ctx, path)
  if not found then error(fault or NOT_DAIKIN .. " (" .. path .. ")", 0) end
  return found
end

local function degrees(text) return measure(tonumber(text), "°C") end

-- Name and firmware. If the unit does not report name and firmware, the next poll requests them again.
local function about(ctx)
  if not ctx.memory.about then
    local found = ask(ctx, "/common/basic_info")
    if not found then return {} end
    ctx.memory.about = { name = found.name, info = { manufacturer = "Daikin", serial = found.mac, firmware = (found.ver or ""):gsub("_", ".") } }
  end
  return ctx.memory.about
end

-- The sensors. After a few failed readings, the last values of the sensors are dropped. If a unit has no sensors, the
-- values of sensors are missing.
local function sensors(ctx)
  local found, failures = ask(ctx, "/aircon/get_sensor_info"), (ctx.memory.failures or 0) + 1
  if found then failures = 0 elseif failures <= MAX_FAILURES then found = ctx.memory.sensor end
  ctx.memory.sensor, ctx.memory.failures = found, failures
  return found or {}
end

local function poll(ctx)
  local control = need(ctx, "/aircon/get_control_info")
  local unit, sensor = about(ctx), sensors(ctx)
  local mode
  if control.pow == "0" then mode = "off" elseif control.pow == "1" then mode = MODES[control.mode] end
  local commands = { MODE, TARGET }
  if control.f_rate then commands[3] = FAN end           -- some units have no adjustable fan
  return { { id = "air", kind = "Switch", class = "climate", name = unit.name, info = unit.info, commands = commands, attributes = {
    hvac_mode = mode, target_temperature = degrees(control.stemp), fan_mode = FANS[control.f_rate],
    temperature = degrees(sensor.htemp), temperature_outdoor = degrees(sensor.otemp), humidity = measure(tonumber(sensor.hhum), "%"),
  } } }
end

-- Return the temperature to send with a mode. Each mode stores its temperature, but some modes have none ("--"), and "M"
-- is valid only in the modes dry and fan_only.
local function target_in(control, mode)
  for _, name in ipairs { "dt" .. mode, "stemp", "dt7", "dt3", "dt4" } do
    local found = control[name]
    if tonumber(found) or found == "M" and (mode == NUMBERS.dry or mode == NUMBERS.fan_only) then return found end
  end
  return control.stemp
end

-- A command must contain the whole state of the unit, so all other fields are sent back unchanged.
local function command(ctx, device, asked)
  local control, unread = ask(ctx, "/aircon/get_control_info")
  if not control then return nil, unread or NOT_DAIKIN end
  local goal = { pow = control.pow, mode = control.mode, stemp = control.stemp, shum = control.shum or "0", f_rate = control.f_rate, f_dir = control.f_dir }
  if asked.capability == "hvac_mode" then
    goal.pow = asked.value == "off" and "0" or "1"
    if asked.value ~= "off" then
      goal.mode = NUMBERS[asked.value]
      goal.stemp = target_in(control, goal.mode)
      goal.shum = control["dh" .. goal.mode] or goal.shum          -- each mode also stores its humidity and fan speed
      if goal.f_rate then goal.f_rate = control["dfr" .. goal.mode] or goal.f_rate end
    end
  elseif asked.capability == "target_temperature" then
    if not tonumber(control.stemp) then return nil, "the unit has no target temperature in its present mode" end
    goal.stemp = string.format("%.1f", asked.value.value)
  else goal.f_rate = RATES[asked.value]
  end
  local _, fault = ask(ctx, "/aircon/set_control_info", goal)
  if fault then return nil, fault end
end

return {
  name = "Daikin",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.97"' } },
  poll_interval_secs = 15,
  poll = poll,
  command = command,
}
