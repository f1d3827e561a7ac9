-- Shelly devices of both generations, over their local HTTP interface.
--
--   [adapters.kitchen]
--   type = "shelly"
--   base_url = "http://192.168.1.50"
--
-- A device with a password: `password = "…"`, and for the second generation `auth = "digest"` beside it.

local function measure(value, unit)
  return type(value) == "number" and { value = value, unit = unit } or nil
end

local function kilowatt_hours(watt_hours)
  return type(watt_hours) == "number" and { value = watt_hours / 1000, unit = "kWh", period = "total" } or nil
end

local SWITCH = { { capability = "power", actions = { "on", "off", "toggle" } } }
local DIMMER = { SWITCH[1], { capability = "brightness", actions = { "set" }, min = 0, max = 100 } }
local COVER = { { capability = "cover_position", actions = { "open", "close", "stop", "set" }, min = 0, max = 100 } }

-- What GET answers as JSON. What lacks the field that every Shelly has there ends the poll with a sentence.
local function get(ctx, path, field)
  local answer = ctx:http { path = path }
  if answer.status == 401 then
    error('the device asks for a password; set password, and for the second generation auth = "digest" too', 0)
  end
  if answer.status ~= 200 or type(answer.json) ~= "table" or not answer.json[field] then
    error("what answers at this address is no Shelly (" .. path .. ": status " .. answer.status .. ")", 0)
  end
  return answer.json
end

-- GET /shelly tells the generation, without a password. It is asked once.
local function about(ctx)
  if not ctx.memory.about then
    local found = get(ctx, "/shelly", "mac")
    local model = found.model or found.type
    if type(found.mac) ~= "string" or type(model) ~= "string" then error("what answers at this address is no Shelly", 0) end
    local firmware = type(found.ver) == "string" and found.ver or type(found.fw) == "string" and found.fw:match("v[%d.]+") or nil
    ctx.memory.about = {
      generation = found.gen or 1,
      name = type(found.name) == "string" and found.name or model,
      info = { manufacturer = "Shelly", model = model, firmware = firmware, serial = found.mac },
    }
  end
  return ctx.memory.about
end

local function first_generation(ctx)
  local status = get(ctx, "/status", "mac")
  local meters, found = status.meters or status.emeters or {}, {}
  for number, relay in ipairs(status.relays or {}) do
    local meter = meters[number] or {}
    local total = meter.total and (status.emeters and meter.total or meter.total / 60)    -- /status counts watt-minutes
    found[#found + 1] = { id = "switch:" .. number - 1, kind = "Switch", class = "plug", commands = SWITCH, attributes = {
      power = relay.ison and "on" or "off", power_consumption = measure(meter.power, "W"),
      voltage = measure(meter.voltage, "V"), energy_total = kilowatt_hours(total),
    } }
  end
  for number, light in ipairs(status.lights or {}) do
    found[#found + 1] = { id = "light:" .. number - 1, kind = "Light", commands = DIMMER, attributes = {
      power = light.ison and "on" or "off", brightness = light.brightness or light.gain,
    } }
  end
  for number, roller in ipairs(status.rollers or {}) do
    found[#found + 1] = { id = "cover:" .. number - 1, kind = "Switch", class = "cover", commands = COVER, attributes = {
      cover_position = roller.positioning and roller.current_pos or nil, power_consumption = measure(roller.power, "W"),
    } }
  end
  local sensor = { temperature = measure((status.tmp or {}).tC, "°C"), battery = (status.bat or {}).value,
    humidity = measure((status.hum or {}).value, "%"), illuminance = (status.lux or {}).value }
  return found, sensor
end

local function second_generation(ctx)
  local found, sensor = {}, {}
  for key, part in pairs(get(ctx, "/rpc/Shelly.GetStatus", "sys")) do
    local what = key:match("^(%a+):%d+$")
    local shared = type(part) == "table" and { power_consumption = measure(part.apower, "W"), voltage = measure(part.voltage, "V"),
      current = measure(part.current, "A"), energy_total = kilowatt_hours((part.aenergy or {}).total) } or {}
    if what == "switch" then
      shared.power = part.output and "on" or "off"
      found[#found + 1] = { id = key, kind = "Switch", class = "plug", commands = SWITCH, attributes = shared }
    elseif what == "light" then
      shared.power, shared.brightness = part.output and "on" or "off", part.brightness
      found[#found + 1] = { id = key, kind = "Light", commands = DIMMER, attributes = shared }
    elseif what == "cover" then
      shared.cover_position = part.current_pos
      found[#found + 1] = { id = key, kind = "Switch", class = "cover", commands = COVER, attributes = shared }
    elseif what == "temperature" then sensor.temperature = measure(part.tC, "°C")
    elseif what == "humidity" then sensor.humidity = measure(part.rh, "%")
    elseif what == "illuminance" then sensor.illuminance = part.lux
    elseif what == "devicepower" then sensor.battery = (part.battery or {}).percent
    end
  end
  table.sort(found, function(a, b) return a.id < b.id end)
  return found, sensor
end

local function poll(ctx)
  local device = about(ctx)
  local found, sensor = (device.generation >= 2 and second_generation or first_generation)(ctx)
  if next(sensor) and (#found == 0 or sensor.humidity or sensor.illuminance or sensor.battery) then
    found[#found + 1] = { id = "sensor", kind = "Sensor", attributes = sensor }
  end
  for number, each in ipairs(found) do
    each.info = device.info
    each.name = #found == 1 and device.name or device.name .. " " .. number
  end
  return found
end

-- What a command makes of each part of a device: the path and the query of the first generation, the method and its
-- parameters of the second.
local function wish(part, command)
  local action, value = command.action, command.value
  if part == "cover" then
    local go = ({ open = "Open", close = "Close", stop = "Stop", set = "GoToPosition" })[action]
    return { go = action == "set" and "to_pos" or action, roller_pos = value }, "Cover." .. go, { pos = value }
  end
  local method = part == "light" and "Light." or "Switch."
  if action == "set" then return { turn = value > 0 and "on" or "off", brightness = value }, method .. "Set", { on = value > 0, brightness = value } end
  if action == "toggle" then return { turn = "toggle" }, method .. "Toggle", {} end
  return { turn = action }, method .. "Set", { on = action == "on" }
end

local PATHS = { switch = "/relay/", light = "/light/", cover = "/roller/" }

local function command(ctx, device, asked)
  local part, number = device.id:match("^(%a+):(%d+)$")
  local query, method, parameters = wish(part, asked)
  local answer
  if about(ctx).generation >= 2 then
    parameters.id = tonumber(number)
    answer = ctx:http { method = "POST", path = "/rpc", json = { id = 1, method = method, params = parameters } }
    local fault = type(answer.json) == "table" and answer.json.error
    if fault then return nil, "the Shelly refuses: " .. tostring(fault.message) end
  else
    answer = ctx:http { path = PATHS[part] .. number, query = query }
  end
  if answer.status ~= 200 then return nil, "the Shelly refuses with status " .. answer.status end
end

return {
  name = "Shelly",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.50"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
