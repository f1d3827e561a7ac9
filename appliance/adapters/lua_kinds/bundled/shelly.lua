-- Shelly devices of both generations, over their local HTTP interface.
--
--   [adapters.kitchen]
--   type = "shelly"
--   base_url = "http://192.168.1.50"
--
-- A device with a password: `password = "…"`, and for the second generation `auth = "digest"` beside it.

local function kilowatt_hours(watt_hours)
  return measure(type(watt_hours) == "number" and watt_hours / 1000, "kWh", "total")
end

local SWITCH = { { capability = "power", actions = { "on", "off", "toggle" } } }
local DIMMER = { SWITCH[1], { capability = "brightness", actions = { "set" }, min = 0, max = 100 } }
local MOVES = { { capability = "cover_position", actions = { "open", "close", "stop" } } }
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
      generation = type(found.gen) == "number" and found.gen or 1,
      name = type(found.name) == "string" and found.name or model,
      info = { manufacturer = "Shelly", model = model, firmware = firmware, serial = found.mac },
    }
  end
  return ctx.memory.about
end

local function switched(value)
  if type(value) == "boolean" then return value and "on" or "off" end
end

local function device(id, kind, class, commands, attributes)
  return { id = id, kind = kind, class = class, commands = commands, attributes = attributes }
end

-- A cover that is not calibrated knows no position: it opens, closes and stops.
local function cover(id, position, attributes)
  attributes.cover_position = position
  return device(id, "Switch", "cover", position and COVER or MOVES, attributes)
end

local CONTACTS, MOTIONS = { open = "open", close = "closed" }, { [true] = "detected", [false] = "clear" }

local function first_generation(ctx)
  local status, found = get(ctx, "/status", "mac"), {}
  local relays, meters, counts = part(status, "relays"), part(status, "meters"), 60         -- meters count watt-minutes
  if status.emeters then meters, counts = part(status, "emeters"), 1 end
  for number = 1, math.max(#relays, status.emeters and #meters or 0) do
    local relay, meter = part(relays, number), part(meters, number)
    local total = type(meter.total) == "number" and meter.total / counts or nil
    local shown = { power = switched(relay.ison), power_consumption = measure(meter.power, "W"), voltage = measure(meter.voltage, "V"),
      current = measure(meter.current, "A"), energy_total = kilowatt_hours(total) }
    if relay.ison == nil then found[#found + 1] = device("meter:" .. number - 1, "Sensor", "meter", nil, shown)
    else found[#found + 1] = device("switch:" .. number - 1, "Switch", "plug", SWITCH, shown)
    end
  end
  for number in ipairs(part(status, "lights")) do
    local light = part(status.lights, number)
    local bright = light.mode == "color" and light.gain or light.brightness or light.gain
    found[#found + 1] = device("light:" .. number - 1, "Light", nil, DIMMER, { power = switched(light.ison), brightness = bright })
  end
  for number in ipairs(part(status, "rollers")) do
    local roller = part(status.rollers, number)
    local shown = { power_consumption = measure(roller.power, "W") }
    found[#found + 1] = cover("cover:" .. number - 1, roller.positioning and roller.current_pos or nil, shown)
  end
  local told = part(status, "sensor")
  return found, { temperature = measure(part(status, "tmp").tC, "°C"), battery = part(status, "bat").value,
    humidity = measure(part(status, "hum").value, "%"), illuminance = part(status, "lux").value,
    water_leak = status.flood, smoke = status.smoke, contact = CONTACTS[told.state], motion = MOTIONS[told.motion],
    ["custom.shelly.gas"] = measure(part(status, "concentration").ppm, "ppm"), ["custom.shelly.gas_alarm"] = part(status, "gas_sensor").alarm_state }
end

local METERS = { pm1 = true, em = true, em1 = true }

local function second_generation(ctx)
  local found, sensor, status, keys = {}, {}, get(ctx, "/rpc/Shelly.GetStatus", "sys"), {}
  for key in pairs(status) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)                                                          -- of two sensors the first counts
  for _, key in ipairs(keys) do
    local what, told, counted = key:match("^([%a%d]+):%d+$"), part(status, key), part(status, (key:gsub(":", "data:")))
    local watts, total = told.apower or told.act_power or told.total_act_power, part(told, "aenergy").total
    local shown = { power = switched(told.output), power_consumption = measure(watts, "W"), voltage = measure(told.voltage, "V"),
      current = measure(told.current or told.total_current, "A"),
      energy_total = kilowatt_hours(total or counted.total_act_energy or counted.total_act) }
    if what == "switch" then found[#found + 1] = device(key, "Switch", "plug", SWITCH, shown)
    elseif what == "light" then
      shown.brightness = told.brightness
      found[#found + 1] = device(key, "Light", nil, DIMMER, shown)
    elseif what == "cover" then found[#found + 1] = cover(key, told.current_pos, shown)
    elseif METERS[what] then found[#found + 1] = device(key, "Sensor", "meter", nil, shown)
    elseif what == "temperature" then sensor.temperature = sensor.temperature or measure(told.tC, "°C")
    elseif what == "humidity" then sensor.humidity = sensor.humidity or measure(told.rh, "%")
    elseif what == "illuminance" then sensor.illuminance = told.lux
    elseif what == "smoke" then sensor.smoke = told.alarm
    elseif what == "flood" then sensor.water_leak = told.alarm
    elseif what == "devicepower" then sensor.battery = part(told, "battery").percent
    end
  end
  return found, sensor
end

local function poll(ctx)
  local whole = about(ctx)
  local found, sensor = (whole.generation >= 2 and second_generation or first_generation)(ctx)
  if next(sensor) and (#found == 0 or sensor.humidity or sensor.illuminance or sensor.battery) then
    found[#found + 1] = { id = "sensor", kind = "Sensor", attributes = sensor }
  end
  for number, each in ipairs(found) do
    each.info = whole.info
    each.name = #found == 1 and whole.name or whole.name .. " " .. number
  end
  return found
end

-- What a command makes of each part of a device: the path and the query of the first generation, the method and its
-- parameters of the second.
local function wish(part_of, command)
  local action, value = command.action, command.value
  if part_of == "cover" then
    local go = ({ open = "Open", close = "Close", stop = "Stop", set = "GoToPosition" })[action]
    return { go = action == "set" and "to_pos" or action, roller_pos = value }, "Cover." .. go, { pos = value }
  end
  local method = part_of == "light" and "Light." or "Switch."
  if action == "set" then         -- how bright a lamp of the first generation is in its colour mode is its gain
    if value == 0 then return { turn = "off" }, method .. "Set", { on = false } end
    return { turn = "on", brightness = value, gain = value }, method .. "Set", { on = true, brightness = value }
  end
  if action == "toggle" then return { turn = "toggle" }, method .. "Toggle", {} end
  return { turn = action }, method .. "Set", { on = action == "on" }
end

local PATHS = { switch = "/relay/", light = "/light/", cover = "/roller/" }

local function command(ctx, device, asked)
  local part_of, number = device.id:match("^(%a+):(%d+)$")
  local query, method, parameters = wish(part_of, asked)
  local answer
  if about(ctx).generation >= 2 then
    parameters.id = tonumber(number)
    answer = ctx:http { method = "POST", path = "/rpc", json = { id = 1, method = method, params = parameters } }
    local fault = type(answer.json) == "table" and answer.json.error
    if fault then return nil, "the Shelly refuses: " .. tostring(part(answer.json, "error").message or fault) end
  else
    answer = ctx:http { path = PATHS[part_of] .. number, query = query }
  end
  if answer.status ~= 200 then return nil, "the Shelly refuses with status " .. answer.status end
  if asked.action == "set" and asked.value == 0 and part_of == "light" then return true end          -- it is off, and remembers how bright it was
end

return {
  name = "Shelly",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.50"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
