-- A Daikin air conditioner with a WLAN adapter that answers locally (BRP069A and B; those of firmware 2 do not).
--
--   [adapters.bedroom]
--   type = "daikin"
--   base_url = "http://192.168.1.97"

local MODES = { ["0"] = "auto", ["1"] = "auto", ["7"] = "auto", ["2"] = "dry", ["3"] = "cool", ["4"] = "heat", ["6"] = "fan_only" }
local NUMBERS = { auto = "1", dry = "2", cool = "3", heat = "4", fan_only = "6" }
local FANS = { A = "auto", B = "quiet", ["3"] = "1", ["4"] = "2", ["5"] = "3", ["6"] = "4", ["7"] = "5" }
local RATES = { auto = "A", quiet = "B", ["1"] = "3", ["2"] = "4", ["3"] = "5", ["4"] = "6", ["5"] = "7" }

local MAX_REFUSALS = 3

local MODE = { capability = "hvac_mode", actions = { "set" }, values = { "off", "auto", "cool", "heat", "dry", "fan_only" } }
local TARGET = { capability = "target_temperature", actions = { "set" }, min = 10, max = 32, step = 0.5, unit = "°C" }
local FAN = { capability = "fan_mode", actions = { "set" }, values = { "auto", "quiet", "1", "2", "3", "4", "5" } }

-- What it answers reads ret=OK,pow=1,mode=3; names are percent-encoded.
local function ask(ctx, path, query)
  local answer = ctx:http { path = path, query = query }
  local found = {}
  for key, value in answer.body:gmatch("([%w_]+)=([^,]*)") do
    found[key] = value:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end)
  end
  if answer.status ~= 200 or found.ret ~= "OK" then return nil, "what answers at this address is no Daikin (" .. path .. ")" end
  return found
end

local function degrees(text) return measure(tonumber(text), "°C") end

local function poll(ctx)
  if not ctx.memory.about then
    local about, fault = ask(ctx, "/common/basic_info")
    if not about then error(fault, 0) end
    ctx.memory.about = { name = about.name, info = { manufacturer = "Daikin", serial = about.mac, firmware = (about.ver or ""):gsub("_", ".") } }
  end
  local control, fault = ask(ctx, "/aircon/get_control_info")
  if not control then error(fault, 0) end
  -- What the sensors said holds for a few polls in which they refuse; one without sensors is told without them.
  local sensor, refusals = ask(ctx, "/aircon/get_sensor_info"), (ctx.memory.refusals or 0) + 1
  if sensor then refusals = 0 elseif refusals <= MAX_REFUSALS then sensor = ctx.memory.sensor end
  ctx.memory.sensor, ctx.memory.refusals = sensor, refusals
  sensor = sensor or {}
  local mode = MODES[control.mode]
  if control.pow == "0" then mode = "off" end
  local commands = { MODE, TARGET }
  if control.f_rate then commands[3] = FAN end           -- some units have no fan that can be set
  return { { id = "air", kind = "Switch", class = "climate", name = ctx.memory.about.name, info = ctx.memory.about.info, commands = commands, attributes = {
    hvac_mode = mode, target_temperature = degrees(control.stemp), fan_mode = FANS[control.f_rate],
    temperature = degrees(sensor.htemp), temperature_outdoor = degrees(sensor.otemp), humidity = measure(tonumber(sensor.hhum), "%"),
  } } }
end

-- It takes all of its state at once, so that what is not asked for goes back as it was.
local function command(ctx, device, asked)
  local control, fault = ask(ctx, "/aircon/get_control_info")
  if not control then return nil, fault end
  local wish = { pow = control.pow, mode = control.mode, stemp = control.stemp, shum = control.shum or "0", f_rate = control.f_rate, f_dir = control.f_dir }
  if asked.capability == "hvac_mode" then
    wish.pow = asked.value == "off" and "0" or "1"
    if asked.value ~= "off" then
      wish.mode = NUMBERS[asked.value]
      wish.stemp = control["dt" .. wish.mode] or wish.stemp        -- each mode has its own temperature, humidity and fan
      wish.shum = control["dh" .. wish.mode] or wish.shum
      if wish.f_rate then wish.f_rate = control["dfr" .. wish.mode] or wish.f_rate end
    end
  elseif asked.capability == "target_temperature" then
    if not tonumber(control.stemp) then return nil, "the unit takes no temperature in the mode that it is in" end
    wish.stemp = string.format("%.1f", asked.value.value)
  else wish.f_rate = RATES[asked.value]
  end
  local done, refused = ask(ctx, "/aircon/set_control_info", wish)
  if not done then return nil, refused end
end

return {
  name = "Daikin",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.97"' } },
  poll_interval_secs = 15,
  poll = poll,
  command = command,
}
