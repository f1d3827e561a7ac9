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

-- Those of a list that are tables.
local function rows(list)
  local found = {}
  for _, each in ipairs(list) do
    if type(each) == "table" then found[#found + 1] = each end
  end
  return found
end

local function number(of, name)
  return type(of[name]) == "number" and of[name] or nil
end

-- The white that this lamp can show; the schema counts in mired, the other way round.
local function white_of(temperature)
  local schema = part(temperature, "mirek_schema")
  local coldest, warmest = number(schema, "mirek_minimum") or 153, number(schema, "mirek_maximum") or 500
  return { capability = "color_temperature", actions = { "set" }, min = 1000000 // warmest, max = 1000000 // coldest + 1, unit = "kelvin" }
end

local function get(ctx, what)
  local answer = ctx:http { path = "/clip/v2/resource/" .. what }
  if answer.status == 403 or answer.status == 401 then error("the bridge does not know the key; pair it, and put it into headers", 0) end
  if answer.status ~= 200 or type(answer.json) ~= "table" or type(answer.json.data) ~= "table" then
    error("what answers at this address is no Hue bridge (status " .. answer.status .. ")", 0)
  end
  return rows(answer.json.data)
end

-- What a part of a resource shows: the same in a poll and in what the bridge pushes. Sensors of newer firmware report
-- their values in a part of its own.
local function attributes_of(each)
  local found = {}
  local on, mirek, xy = part(each, "on").on, number(part(each, "color_temperature"), "mirek"), part(part(each, "color"), "xy")
  if type(on) == "boolean" then found.power = on and "on" or "off" end
  local brightness = number(part(each, "dimming"), "brightness")
  found.brightness = brightness and math.floor(brightness + 0.5)
  if mirek then found.color_temperature, found.color_mode = { value = math.floor(1000000 / mirek + 0.5), unit = "kelvin" }, "color_temp"
  elseif number(xy, "x") and number(xy, "y") then found.color_xy, found.color_mode = { x = xy.x, y = xy.y }, "xy"
  end
  local motion, warmth, light = part(each, "motion"), part(each, "temperature"), part(each, "light")
  local moves = part(motion, "motion_report").motion
  if moves == nil then moves = motion.motion end
  if type(moves) == "boolean" then found.motion = moves and "detected" or "clear" end
  local degrees = number(part(warmth, "temperature_report"), "temperature") or number(warmth, "temperature")
  found.temperature = degrees and { value = degrees, unit = "°C" }
  local level = number(part(light, "light_level_report"), "light_level") or number(light, "light_level")
  found.illuminance = level and math.floor(10 ^ ((level - 1) / 10000) + 0.5)
  found.battery = number(part(each, "power_state"), "battery_level")
  found.contact = ({ contact = "closed", no_contact = "open" })[part(each, "contact_report").state]
  return found
end

local SENSORS = { "motion", "temperature", "light_level", "device_power", "contact", "button" }
local UNREACHED = { connectivity_issue = true, disconnected = true }

local function poll(ctx)
  local found, by_owner = {}, {}
  ctx.memory.owners = {}
  for _, device in ipairs(get(ctx, "device")) do
    local id, product = device.id, part(device, "product_data")
    if type(id) == "string" then
      by_owner[id] = { id = id, kind = "Sensor", name = part(device, "metadata").name, attributes = {}, info = {
        manufacturer = product.manufacturer_name, model = product.model_id, firmware = product.software_version } }
      for _, service in ipairs(rows(part(device, "services"))) do ctx.memory.owners[tostring(service.rid)] = id end
    end
  end
  local function add(resources, is_light)
    for _, each in ipairs(resources) do
      local told = by_owner[part(each, "owner").rid or ""]
      if told then
        for name, value in pairs(attributes_of(each)) do told.attributes[name] = value end
        if is_light then
          told.kind, ctx.memory[told.id] = "Light", each.id
          told.commands = { POWER }
          if each.dimming then told.commands[#told.commands + 1] = DIMMER end
          if each.color then told.commands[#told.commands + 1] = COLOR end
          if each.color_temperature then told.commands[#told.commands + 1] = white_of(each.color_temperature) end
        end
        if not told.is_listed then found[#found + 1], told.is_listed = told, true end
      end
    end
  end
  add(get(ctx, "light"), true)
  for _, what in ipairs(SENSORS) do add(get(ctx, what), false) end
  for _, link in ipairs(get(ctx, "zigbee_connectivity")) do
    local told = by_owner[part(link, "owner").rid or ""]
    if told and UNREACHED[link.status] then told.state = "unavailable" end
  end
  for _, told in ipairs(found) do told.is_listed = nil end
  return found
end

-- One event has a list of messages, and each a list of parts of resources that changed.
local function receive(ctx, event)
  local devices, events, asks = {}, {}, false
  for _, message in ipairs(rows(part(event, "data"))) do
    if message.type == "add" or message.type == "delete" then asks = true end
    for _, each in ipairs(rows(part(message, "data"))) do
      local owner = part(each, "owner").rid or part(ctx.memory, "owners")[each.id or ""]
      local button = part(each, "button")
      local pressed = part(button, "button_report").event or button.last_event           -- older firmware has no report
      if each.type == "zigbee_connectivity" then asks = true
      elseif owner and EVENTS[pressed] then
        events[#events + 1] = { id = owner, event = EVENTS[pressed], data = { button = each.id, raw = pressed } }
      elseif owner and next(attributes_of(each)) then devices[#devices + 1] = { id = owner, attributes = attributes_of(each) }
      end
    end
  end
  return { devices = devices, events = events, poll = asks or nil }
end

local function command(ctx, device, asked)
  local value, wish = asked.value, nil
  if asked.capability == "power" then
    wish = { on = { on = asked.action == "on" or asked.action == "toggle" and device.attributes.power == "off" } }
  elseif asked.capability == "brightness" then wish = { on = { on = value > 0 }, dimming = value > 0 and { brightness = value } or nil }
  elseif asked.capability == "color_xy" then wish = { color = { xy = value } }
  else wish = { color_temperature = { mirek = value.unit == "mireds" and value.value or math.floor(1000000 / value.value + 0.5) } }
  end
  if asked.transition_secs then wish.dynamics = { duration = math.floor(asked.transition_secs * 1000) } end
  local answer = ctx:http { method = "PUT", path = "/clip/v2/resource/light/" .. tostring(ctx.memory[device.id]), json = wish }
  if answer.status ~= 200 then return nil, "the bridge refuses with status " .. answer.status end
  if asked.capability == "brightness" and value == 0 then return true end            -- it is off, and remembers how bright it was
end

local function pair(ctx)
  local answer = ctx:http { method = "POST", path = "/api", json = { devicetype = "lares#hub", generateclientkey = true } }
  local key = part(part(answer.json, 1), "success").username
  if type(key) ~= "string" then return nil, "press the bridge's button, then call this within 30 seconds" end
  return 'headers = { hue-application-key = "' .. key .. '" }'
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
