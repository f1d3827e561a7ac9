-- Shelly devices of both generations, over their local HTTP interface.
--
--   [adapters.kitchen]
--   type = "shelly"
--   base_url = "http://192.168.1.50"
--
-- A device with a password: `password = "…"`, and for the second generation `auth = "digest"` beside it.

local REASONS = { [401] = 'the device asks for a password; set password, and for the second generation auth = "digest" too' }
local ON, CONTACTS, MOTIONS = { [true] = "on", [false] = "off" }, { open = "open", close = "closed" }, { [true] = "detected", [false] = "clear" }
local MOVES = { { capability = "cover_position", actions = { "open", "close", "stop" } } }

local function add(found, id, kind, class, commands, attributes)
  found[#found + 1] = { id = id, kind = kind, class = class, commands = commands, attributes = attributes }
end

-- A cover that is not calibrated knows no position: it opens, closes and stops.
local function add_cover(found, id, position, attributes)
  attributes.cover_position = position
  add(found, id, "Switch", "cover", position and { "cover_position" } or MOVES, attributes)
end

-- What flows; `parts` of what is counted make a kilowatt-hour.
local function electricity(on, watts, volts, amperes, counted, parts)
  return { power = ON[on], power_consumption = measure(watts, "W"), voltage = measure(volts, "V"), current = measure(amperes, "A"),
    energy_total = measure(counted, "kWh", "total", parts) }
end

local function first_generation(ctx)
  local status, found = ctx:fetch("/status", "mac", REASONS), {}
  local relays, meters, parts = rows(status, "relays"), rows(status, "meters"), 60000         -- these count watt-minutes
  if status.emeters then meters, parts = rows(status, "emeters"), 1000 end
  for number = 1, math.max(#relays, status.emeters and #meters or 0) do
    local relay, meter = relays[number], part(meters, number)
    local shown = electricity(part(relays, number).ison, meter.power, meter.voltage, meter.current, meter.total, parts)
    if relay then add(found, "switch:" .. number - 1, "Switch", "plug", { "power" }, shown)
    else add(found, "meter:" .. number - 1, "Sensor", "meter", nil, shown)
    end
  end
  for number, light in ipairs(rows(status, "lights")) do
    local bright = light.mode == "color" and light.gain or light.brightness or light.gain
    add(found, "light:" .. number - 1, "Light", nil, { "power", "brightness" }, { power = ON[light.ison], brightness = bright })
  end
  for number, roller in ipairs(rows(status, "rollers")) do
    add_cover(found, "cover:" .. number - 1, roller.positioning and roller.current_pos or nil, { power_consumption = measure(roller.power, "W") })
  end
  local told = part(status, "sensor")
  return found, { temperature = measure(part(status, "tmp").tC, "°C"), battery = part(status, "bat").value,
    humidity = measure(part(status, "hum").value, "%"), illuminance = part(status, "lux").value,
    water_leak = status.flood, smoke = status.smoke, contact = CONTACTS[told.state], motion = MOTIONS[told.motion],
    ["custom.shelly.gas"] = measure(part(status, "concentration").ppm, "ppm"), ["custom.shelly.gas_alarm"] = part(status, "gas_sensor").alarm_state }
end

local METERS = { pm1 = true, em = true, em1 = true }

local function second_generation(ctx)
  local status, found, sensor = ctx:fetch("/rpc/Shelly.GetStatus", "sys", REASONS), {}, {}
  for key, told in parts(status) do                                         -- of two sensors the first counts
    local what, counted = key:match("^([%a%d]+):%d+$"), part(status, (key:gsub(":", "data:")))
    local watts, total = told.apower or told.act_power or told.total_act_power, part(told, "aenergy").total
    local shown = electricity(told.output, watts, told.voltage, told.current or told.total_current,
      total or counted.total_act_energy or counted.total_act, 1000)
    if what == "switch" then add(found, key, "Switch", "plug", { "power" }, shown)
    elseif what == "light" then
      shown.brightness = told.brightness
      add(found, key, "Light", nil, { "power", "brightness" }, shown)
    elseif what == "cover" then add_cover(found, key, told.current_pos, shown)
    elseif METERS[what] then add(found, key, "Sensor", "meter", nil, shown)
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

-- GET /shelly tells the generation, without a password. It is asked once.
local function about(ctx)
  ctx.memory.about = ctx.memory.about or ctx:fetch("/shelly", "mac", REASONS)
  return ctx.memory.about, (tonumber(ctx.memory.about.gen) or 1) >= 2
end

local function poll(ctx)
  local whole, is_second = about(ctx)
  local found, sensor = (is_second and second_generation or first_generation)(ctx)
  if next(sensor) and (#found == 0 or sensor.humidity or sensor.illuminance or sensor.battery) then
    add(found, "sensor", "Sensor", nil, nil, sensor)
  end
  local model = text(whole.model, whole.type)
  local name = text(whole.name, model, "Shelly")
  local firmware = text(whole.ver) or (text(whole.fw) or ""):match("v[%d.]+")
  for number, each in ipairs(found) do
    each.info = { manufacturer = "Shelly", model = model, firmware = firmware, serial = text(whole.mac) }
    each.name = #found == 1 and name or name .. " " .. number
  end
  return found
end

-- What a command asks for: the query of the first generation; the method of the second, and its parameters.
local function wish(what, action, value)
  if what == "cover" then
    local go = ({ open = "Open", close = "Close", stop = "Stop", set = "GoToPosition" })[action]
    return { go = action == "set" and "to_pos" or action, roller_pos = value }, "Cover." .. go, { pos = value }
  end
  local method = what == "light" and "Light." or "Switch."
  if action == "toggle" then return { turn = "toggle" }, method .. "Toggle", {} end
  local on = action == "on" or action == "set" and value > 0
  local bright = on and value or nil         -- in the colour mode of the first generation it is the gain
  return { turn = ON[on], brightness = bright, gain = bright }, method .. "Set", { on = on, brightness = bright }
end

local PATHS = { switch = "/relay/", light = "/light/", cover = "/roller/" }

local function command(ctx, device, asked)
  local what, number = device.id:match("^(%a+):(%d+)$")
  local query, method, parameters = wish(what, asked.action, asked.value)
  local _, is_second = about(ctx)
  parameters.id = tonumber(number)
  local answer = ctx:http(is_second and { method = "POST", path = "/rpc", json = { id = 1, method = method, params = parameters } }
    or { path = PATHS[what] .. number, query = query })
  local reason = part(answer.json, "error").message or answer.status ~= 200 and "status " .. answer.status
  if reason then return nil, "the Shelly refuses: " .. tostring(reason) end
end

return {
  name = "Shelly",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.50"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
