-- Tasmota over HTTP, for homes without a broker. With a broker, the kind mqtt finds Tasmota devices automatically.
--
--   [adapters.heater]
--   type = "tasmota_http"
--   base_url = "http://192.168.1.60"

local NOT_TASMOTA = "the device at this address is not a Tasmota"
local STATES = { ON = "on", OFF = "off" }
local BITS = { [0] = "off", [1] = "on" }
local MAX_RELAYS = 32

-- Return the sum of a list of phases. Return a single value unchanged.
local function sum(value)
  if type(value) ~= "table" then return value end
  local found
  for _, each in ipairs(value) do
    if type(each) == "number" then found = (found or 0) + each end
  end
  return found
end

-- Send a command, with user and password in the query. Return the answer. Return nil and a message if Tasmota refuses.
-- Return only nil if an answer with status 200 is unreadable.
local function ask(ctx, words)
  local login = ctx.settings.password and { user = ctx.settings.username or "admin", password = ctx.settings.password } or {}
  login.cmnd = words
  local answer = ctx:http { path = "/cm", query = login }
  local found = answer.json
  if answer.status == 401 or part(found).WARNING then return nil, "Tasmota rejects the password; set password" end
  if answer.status ~= 200 then return nil, (answer.fault or NOT_TASMOTA) .. " (status " .. answer.status .. ")" end
  if type(found) ~= "table" then return nil end
  if found.Command == "Unknown" or found.Command == "Error" then return nil, "Tasmota rejects the command " .. words end
  return found
end

local WHITE = { capability = "color_temperature", actions = { "set" }, min = 2000, max = 6536, unit = "kelvin" }

-- Return hue and saturation of a lamp in colour mode. HSBColor is a text like "120,100,50".
local function color_of(state, is_white_separate)
  local hue, saturation = (text(state.HSBColor) or ""):match("^(%d+),(%d+),%d+$")
  if hue and (is_white_separate or (tonumber(state.White) or 0) == 0) then return { hue = tonumber(hue), saturation = tonumber(saturation) } end
end

local SPEED, FULL_SPEED = "custom.tasmota_http.speed", 3

local HALF_TURN = { low = -90, high = 90 }

-- Return both end positions of the slats in degrees. TiltConfig begins with the two ends and the seconds of a turn.
local function slats_of(fields)
  local ends = part(fields, "TiltConfig")
  local low, high, secs = math.tointeger(ends[1]), math.tointeger(ends[2]), tonumber(ends[3])
  if low and high and low ~= high and (secs or 0) > 0 then return { low = low, high = high } end
end

-- Read the shutters, and return their relays. Status 13 contains the relays of each shutter. The last digit of Opt in
-- Status 13 shows whether positions are counted from the open end.
local function add_shutters(ctx, found, devices, about)
  local relays, inverted, slats = {}, {}, {}
  for name, each in parts(found, "StatusSNS") do
    local number = tonumber(name:match("^Shutter(%d+)$"))
    if number then
      local fields = part(found, "StatusSHT", "SHT" .. number - 1)
      local first = math.tointeger(fields.Relay1) or 2 * number - 1
      relays[first], relays[math.tointeger(fields.Relay2) or first + 1] = true, true
      inverted[tostring(number)] = (text(fields.Opt) or ""):sub(-1) == "1"
      local position = math.tointeger(each.Position)
      if position and inverted[tostring(number)] then position = 100 - position end
      local ends, degrees = slats_of(fields), tonumber(each.Tilt)
      slats[tostring(number)] = ends
      devices[#devices + 1] = about { id = "shutter:" .. number, kind = "Switch", class = "cover", name = first,
        commands = { "cover_position", ends and { capability = "cover_tilt", actions = { "open", "close", "set" } } },
        attributes = { cover_position = position,
          cover_tilt = ends and degrees and math.max(0, math.min(100, round((degrees - ends.low) * 100 / (ends.high - ends.low)))) } }
    end
  end
  ctx.memory.inverted, ctx.memory.slats = inverted, slats
  return relays
end

-- The fan of an iFan has four speeds, and speed 0 is off. `on` restores the last speed other than 0.
local function add_fan(ctx, state, devices, about)
  local speed = math.tointeger(state.FanSpeed)
  if not speed then return end
  ctx.memory.speed = speed > 0 and speed or ctx.memory.speed
  devices[#devices + 1] = about { id = "fan", kind = "Switch", class = "fan",
    commands = { "power", { capability = SPEED, actions = { "set" }, type = "integer", min = 0, max = FULL_SPEED } },
    attributes = { power = speed > 0 and "on" or "off", [SPEED] = speed } }
end

-- Make lamps of the last relays, because Tasmota numbers its lamps after the relays. A device usually has one lamp. With
-- SetOption68, each channel is a lamp; with SetOption37, colours and white are two lamps.
local function add_lamps(ctx, state, devices)
  local lamps, dimmers = {}, {}
  local function add(device, key)
    device.kind, device.class, device.commands, device.attributes.brightness = "Light", nil, { "power", "brightness" }, state[key]
    lamps[#lamps + 1], dimmers[device.id] = device, key
  end
  for _, device in ipairs(devices) do
    local key = "Channel" .. device.id:match("%d+$")
    if state[key] then add(device, key) end
  end
  local has_channels = #lamps > 0
  if not has_channels and state.Dimmer then add(devices[#devices], "Dimmer")
  elseif not has_channels and state.Dimmer1 and devices[2] then
    add(devices[#devices - 1], "Dimmer1")
    add(devices[#devices], "Dimmer2")
  elseif not has_channels and state.Dimmer1 then add(devices[#devices], "Dimmer1")
  end
  ctx.memory.dimmers = dimmers
  local colored, white = lamps[1], lamps[#lamps]
  if white and type(state.CT) == "number" and state.CT > 0 then
    white.commands[3], white.attributes.color_temperature = WHITE, measure(round(1000000 / state.CT), "kelvin")
  end
  if colored and state.HSBColor then
    colored.commands[#colored.commands + 1], colored.attributes.color_hs = "color_hs", color_of(state, colored ~= white)
    if colored.attributes.color_hs then colored.attributes.color_temperature = nil end
  end
end

local METER = {
  power_consumption = { "Power", "W" }, current = { "Current", "A" }, energy_total = { "Total", "kWh", "total" },
  energy_today = { "Today", "kWh", "today" }, energy_yesterday = { "Yesterday", "kWh", "yesterday" },
}

-- Read the meter. If it has one channel per relay, each relay has its own values; a single value of all relays, which
-- energy has without SetOption129, is omitted. Otherwise, the values of all channels or phases are added.
local function read_meter(meter, relays, first)
  local is_per_relay = #relays > 1 and #part(meter, "Power") == #relays
  for name, form in pairs(METER) do
    if is_per_relay then
      for number, relay in ipairs(relays) do relay.attributes[name] = measure(part(meter, form[1])[number], form[2], form[3]) end
    else first.attributes[name] = measure(sum(meter[form[1]]), form[2], form[3])
    end
  end
  first.attributes.voltage = measure(part(meter, "Voltage")[1] or meter.Voltage, "V")
end

-- Return the values of all connected sensors. If several sensors have the same value, the first by name is used. The
-- temperature of a chip is omitted, because it differs from the room temperature.
local function read_sensors(sensors, attributes)
  local unit, pressure = sensors.TempUnit == "F" and "°F" or "°C", text(sensors.PressureUnit, "hPa")
  for name, each in parts(sensors) do
    attributes.temperature = attributes.temperature or not name:find("^ESP") and measure(each.Temperature or each.Temperature1, unit) or nil
    attributes.humidity = attributes.humidity or measure(each.Humidity, "%")
    attributes.pressure = attributes.pressure or measure(each.Pressure, pressure)
    attributes.illuminance = attributes.illuminance or round(each.Illuminance)
    attributes.co2 = attributes.co2 or measure(each.CarbonDioxide, "ppm")
  end
end

-- Return the state of a relay. An owner can replace the words ON and OFF (StateText). Status.Power always has the state:
-- a number with one bit per relay or, in newer firmware, a text with the binary digits of that number.
local function power_of(status, number, word)
  local all = status.Power
  if STATES[word] then return STATES[word] end
  if math.type(all) == "integer" then return BITS[all >> (number - 1) & 1] end
  if type(all) == "string" and all:find("^[01]+$") then return BITS[tonumber(all:sub(-number, -number))] end
end

local function poll(ctx)
  local found, fault = ask(ctx, "Status 0")
  if not found then error(fault or NOT_TASMOTA, 0) end
  local state, status = found.StatusSTS, found.Status
  if type(state) ~= "table" or type(status) ~= "table" then error(NOT_TASMOTA, 0) end
  local names = type(status.FriendlyName) == "table" and status.FriendlyName or { status.FriendlyName }
  local info = { manufacturer = "Tasmota", firmware = text(part(found, "StatusFWR").Version), serial = text(part(found, "StatusNET").Mac) }
  local devices, others = {}, {}
  local function about(device)
    device.info, device.name = info, text(names[device.name], status.DeviceName)
    return device
  end
  local moving = add_shutters(ctx, found, others, about)
  for number = 1, MAX_RELAYS do
    local word = state["POWER" .. number] or number == 1 and state.POWER
    if word and not moving[number] then
      devices[#devices + 1] = about { id = "relay:" .. number, kind = "Switch", class = "plug", name = number, commands = { "power" },
        attributes = { power = power_of(status, number, word) } }
    end
  end
  add_fan(ctx, state, others, about)
  local first = devices[1] or others[1]
  if not first then
    first = about { id = "sensor", kind = "Sensor", name = 1, attributes = {} }
    devices[1] = first
  elseif devices[1] then add_lamps(ctx, state, devices)
  end
  read_sensors(part(found, "StatusSNS"), first.attributes)
  read_meter(part(found, "StatusSNS", "ENERGY"), devices, first)
  return table.move(others, 1, #others, #devices + 1, devices)
end

local function command(ctx, device, asked)
  local number, words = device.id:match("%d+$"), nil
  if device.id == "fan" then
    words = "FanSpeed " .. (asked.value or asked.action == "on" and (ctx.memory.speed or FULL_SPEED) or 0)
  elseif asked.action == "set" and asked.capability == "cover_position" then
    words = ("ShutterPosition%s %d"):format(number, part(ctx.memory, "inverted")[number] and 100 - asked.value or asked.value)
  elseif asked.capability == "cover_tilt" then
    local ends = part(ctx.memory, "slats")[number] or HALF_TURN
    local percent = asked.action == "set" and asked.value or asked.action == "open" and 100 or 0
    words = ("ShutterTilt%s %d"):format(number, round(ends.low + (ends.high - ends.low) * percent / 100))
  elseif asked.capability == "cover_position" then words = "Shutter" .. asked.action:gsub("^%l", string.upper) .. number
  elseif asked.capability == "power" then words = "Power" .. number .. " " .. asked.action
  elseif asked.capability == "brightness" then words = part(ctx.memory, "dimmers")[device.id] .. " " .. asked.value
  elseif asked.capability == "color_hs" then
    words = ("HSBColor %d,%d,%d"):format(asked.value.hue, asked.value.saturation, device.attributes.brightness or 100)
  else
    local mired = asked.value.unit == "mireds" and asked.value.value or 1000000 / asked.value.value
    words = "CT " .. math.max(153, math.min(500, round(mired)))
  end
  local _, fault = ask(ctx, words)
  if fault then return nil, fault end
end

return {
  name = "Tasmota over HTTP",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.60"' } },
  poll_interval_secs = 5,
  poll = poll,
  command = command,
}
