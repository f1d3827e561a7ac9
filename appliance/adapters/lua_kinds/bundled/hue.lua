-- Lamps, buttons and sensors behind a Philips Hue bridge, over its API of version 2. The bridge tells what changes.
--
--   [adapters.hue]
--   base_url = "https://192.168.1.20"
--   fingerprint = "…"                                  # of the bridge's own certificate
--   headers = { hue-application-key = "…" }
--
-- For the key, press the bridge's button and call POST /adapters/hue/operations/pair: it answers with the line to add.

local EVENTS = { initial_press = "press", short_release = "single", long_press = "hold", long_release = "long" }
local POWER = { capability = "power", actions = { "on", "off", "toggle" } }
local DIMMER = { capability = "brightness", actions = { "set" }, min = 0, max = 100 }
local COLOR = { capability = "color_xy", actions = { "set" } }
local WHITE = { capability = "color_temperature", actions = { "set" }, min = 2203, max = 6536, unit = "kelvin" }

local function get(ctx, what)
  local answer = ctx:http { path = "/clip/v2/resource/" .. what }
  if answer.status == 403 or answer.status == 401 then error("the bridge does not know the key; pair it, and put it into headers", 0) end
  if answer.status ~= 200 or type(answer.json) ~= "table" or type(answer.json.data) ~= "table" then
    error("what answers at this address is no Hue bridge (status " .. answer.status .. ")", 0)
  end
  return answer.json.data
end

-- What a part of a resource shows: the same in a poll and in what the bridge pushes.
local function attributes_of(each)
  local found = {}
  if type(each.on) == "table" then found.power = each.on.on and "on" or "off" end
  if type(each.dimming) == "table" then found.brightness = math.floor((each.dimming.brightness or 0) + 0.5) end
  local white = each.color_temperature
  if type(white) == "table" and white.mirek then
    found.color_temperature, found.color_mode = { value = 1000000 // white.mirek, unit = "kelvin" }, "color_temp"
  elseif type(each.color) == "table" and type(each.color.xy) == "table" then
    found.color_xy, found.color_mode = { x = each.color.xy.x, y = each.color.xy.y }, "xy"
  end
  if type(each.motion) == "table" then found.motion = each.motion.motion and "detected" or "clear" end
  if type(each.temperature) == "table" and each.temperature.temperature then found.temperature = { value = each.temperature.temperature, unit = "°C" } end
  if type(each.light) == "table" and each.light.light_level then found.illuminance = math.floor(10 ^ ((each.light.light_level - 1) / 10000) + 0.5) end
  if type(each.power_state) == "table" then found.battery = each.power_state.battery_level end
  return found
end

local SENSORS = { motion = true, temperature = true, light_level = true, device_power = true, button = true }

local function poll(ctx)
  local found, by_owner = {}, {}
  ctx.memory.owners = {}
  for _, device in ipairs(get(ctx, "device")) do
    local product = device.product_data or {}
    local told = { id = device.id, kind = "Sensor", name = (device.metadata or {}).name, attributes = {}, info = {
      manufacturer = product.manufacturer_name, model = product.model_id, firmware = product.software_version } }
    by_owner[device.id] = told
    for _, service in ipairs(device.services or {}) do ctx.memory.owners[service.rid] = device.id end
  end
  local function add(rows, is_light)
    for _, each in ipairs(rows) do
      local told = type(each.owner) == "table" and by_owner[each.owner.rid]
      if told then
        for name, value in pairs(attributes_of(each)) do told.attributes[name] = value end
        if is_light then
          told.kind, ctx.memory[each.owner.rid] = "Light", each.id
          told.commands = { POWER, each.dimming and DIMMER }
          if each.color then told.commands[#told.commands + 1] = COLOR end
          if each.color_temperature then told.commands[#told.commands + 1] = WHITE end
        end
        if not told.is_listed then found[#found + 1], told.is_listed = told, true end
      end
    end
  end
  add(get(ctx, "light"), true)
  for what in pairs(SENSORS) do add(get(ctx, what), false) end
  for _, told in ipairs(found) do told.is_listed = nil end
  return found
end

-- One event has a list of messages, and each a list of parts of resources that changed.
local function receive(ctx, event)
  local devices, events = {}, {}
  for _, message in ipairs(type(event.data) == "table" and event.data or {}) do
    if message.type == "add" or message.type == "delete" then return { poll = true } end
    for _, each in ipairs(type(message.data) == "table" and message.data or {}) do
      local owner = type(each.owner) == "table" and each.owner.rid or (ctx.memory.owners or {})[each.id]
      local pressed = type(each.button) == "table" and each.button.button_report
      if owner and type(pressed) == "table" and EVENTS[pressed.event] then
        events[#events + 1] = { id = owner, event = EVENTS[pressed.event], data = { button = each.id, raw = pressed.event } }
      elseif owner and next(attributes_of(each)) then devices[#devices + 1] = { id = owner, attributes = attributes_of(each) }
      end
    end
  end
  return { devices = devices, events = events }
end

local function command(ctx, device, asked)
  local value, wish = asked.value, nil
  if asked.capability == "power" then
    wish = { on = { on = asked.action == "on" or asked.action == "toggle" and device.attributes.power == "off" } }
  elseif asked.capability == "brightness" then wish = { on = { on = value > 0 }, dimming = value > 0 and { brightness = value } or nil }
  elseif asked.capability == "color_xy" then wish = { color = { xy = value } }
  else wish = { color_temperature = { mirek = value.unit == "mireds" and value.value or 1000000 // value.value } }
  end
  if asked.transition_secs then wish.dynamics = { duration = math.floor(asked.transition_secs * 1000) } end
  local answer = ctx:http { method = "PUT", path = "/clip/v2/resource/light/" .. ctx.memory[device.id], json = wish }
  if answer.status ~= 200 then return nil, "the bridge refuses with status " .. answer.status end
end

local function pair(ctx)
  local answer = ctx:http { method = "POST", path = "/api", json = { devicetype = "lares#hub", generateclientkey = true } }
  local first = type(answer.json) == "table" and answer.json[1]
  if type(first) ~= "table" or not first.success then return nil, "press the bridge's button, then call this within 30 seconds" end
  return 'headers = { hue-application-key = "' .. first.success.username .. '" }'
end

return {
  name = "Philips Hue",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "https://192.168.1.20"' } },
  poll_interval_secs = 60,
  listen = { path = "/eventstream/clip/v2", kind = "sse", receive = receive },
  poll = poll,
  command = command,
  operations = { pair = { timeout_secs = 30, run = pair } },
}
