-- Lamps, buttons, and sensors of a Philips Hue bridge, over version 2 of its API. The bridge pushes changes.
--
--   [adapters.hue]
--   base_url = "https://192.168.1.20"
--   fingerprint = "…"                                  # of the bridge's own certificate
--   headers = { hue-application-key = "…" }
--
-- For the key, press the button of the bridge, then Pair on the page (Box), or call POST /adapters/hue/operations/pair:
-- the answer contains the line to add.

local UNKNOWN = "the bridge does not know the key; pair it, and add the key to headers"
local EVENTS = { initial_press = "press", short_release = "single", long_press = "hold", long_release = "long",
  double_short_release = "double" }
local PARTS = { "light", "motion", "temperature", "light_level", "device_power", "contact", "button" }
local SHOWN = { light = true, zigbee_connectivity = true }
for _, what in ipairs(PARTS) do SHOWN[what] = true end
local SILENT = {           -- properties of the device itself
  bridge = true, entertainment = true, zgp_connectivity = true, device_software_update = true, zigbee_device_discovery = true,
  homekit = true, matter = true, taurus_7455 = true, grouped_light = true, geolocation = true, wifi_connectivity = true, device_mode = true,
}
local OPTIONAL = { motion = true, temperature = true, light_level = true, device_power = true, contact = true, button = true }
local UNREACHED = { connectivity_issue = true, disconnected = true }
local FLAGS = { motion = "motion_valid", temperature = "temperature_valid", light = "light_level_valid" }
local ON, MOTIONS, CONTACTS = { [true] = "on", [false] = "off" }, { [true] = "detected", [false] = "clear" }, { contact = "closed", no_contact = "open" }

-- Return the resources of one type. If an answer contains no list, the poll fails, because an empty list would remove
-- every lamp. Older bridges do not know every type.
local function get(ctx, what)
  local path = "/clip/v2/resource/" .. what
  local answer = ctx:http { path = path }
  if answer.status == 404 and OPTIONAL[what] then return {} end
  if answer.status == 401 or answer.status == 403 then error(UNKNOWN, 0) end
  if answer.status ~= 200 or type(part(answer.json).data) ~= "table" then
    error((answer.fault or "the bridge answers without a list of " .. what) .. " (" .. path .. ": status " .. answer.status .. ")", 0)
  end
  return rows(answer.json, "data")
end

-- Return a colour temperature in mired. Return nil if the number is missing, or if the number is 0, because 0 means
-- unknown.
local function mired(value)
  value = tonumber(value)
  return value and value > 0 and value or nil
end

-- Return the commands of a lamp. The lamp's schema is in mired, so the schema's maximum is the lowest colour
-- temperature.
local function commands_of(light)
  local found, white = { "power" }, part(light, "color_temperature", "mirek_schema")
  if light.dimming then found[#found + 1] = "brightness" end
  if light.color then found[#found + 1] = "color_xy" end
  if light.color_temperature then
    local coldest, warmest = mired(white.mirek_minimum) or 153, mired(white.mirek_maximum) or 500
    found[#found + 1] = { capability = "color_temperature", actions = { "set" }, min = 1000000 // warmest, max = 1000000 // coldest + 1, unit = "kelvin" }
  end
  return found
end

-- Return the value of a sensor, or nil if the bridge marks the value as invalid. In newer firmware, the value is a
-- table. A sensor that is switched off in the app keeps an outdated value.
local function reading(each, what, name)
  if each.enabled == false then return nil end
  local fields = part(each, what)
  local value = part(fields, name .. "_report")[name]
  if value == nil then value = fields[name] end
  if fields[name .. "_valid"] == false then return nil end
  return value
end

-- Return the attributes of a whole resource, or of a pushed part.
local function attributes_of(each)
  local mirek, xy = mired(part(each, "color_temperature").mirek), part(each, "color").xy
  local contact = { enabled = each.enabled, contact = each.contact_report }
  local bright, level = tonumber(part(each, "dimming").brightness), tonumber(reading(each, "light", "light_level"))
  return {
    power = ON[part(each, "on").on], brightness = bright and (bright > 0 and math.max(1, round(bright)) or 0),
    color_temperature = mirek and measure(round(1000000 / mirek), "kelvin"), color_xy = not mirek and xy or nil,
    color_mode = mirek and "color_temp" or xy and "xy",
    motion = MOTIONS[reading(each, "motion", "motion")], contact = CONTACTS[reading(contact, "contact", "state")],
    temperature = measure(reading(each, "temperature", "temperature"), "°C"),
    illuminance = level and (level > 0 and round(10 ^ ((level - 1) / 10000)) or 0), battery = part(each, "power_state").battery_level,
  }
end

-- Log each unsupported type of service once, by name.
local function report_unknown(ctx, services)
  local reported = ctx.memory.reported or {}
  for _, service in ipairs(services) do
    local what = text(service.rtype)
    if what and not SHOWN[what] and not SILENT[what] and not reported[what] then
      ctx:log("warn", "this kind does not show " .. what .. " of the bridge's devices")
      reported[what] = true
    end
  end
  ctx.memory.reported = reported
end

-- Return the resources in the order of their ids, so that each lamp keeps its device.
local function sorted(resources)
  table.sort(resources, function(one, other) return tostring(one.id) < tostring(other.id) end)
  return resources
end

-- Return the device of a lamp. A device can have several lamps: the first lamp is the device, and each further lamp is a
-- device of its own.
local function add_lamp(device, lamps, light)
  local group = lamps[device.id]
  if not group then
    lamps[device.id] = { name = device.name or "Lamp", devices = { device } }
    return device
  end
  local number, info = #group.devices + 1, { parent_id = device.id }
  device.name = group.name .. " 1"
  for key, value in pairs(device.info) do info[key] = value end
  group.devices[number] = { id = device.id .. ":" .. tostring(light.id), name = group.name .. " " .. number, info = info, attributes = {} }
  return group.devices[number]
end

local function poll(ctx)
  local found, known, listed, lights, owners, lamps = {}, {}, {}, {}, {}, {}
  for _, device in ipairs(get(ctx, "device")) do
    local id, product = tostring(device.id), part(device, "product_data")
    known[id] = { id = id, kind = "Sensor", name = text(part(device, "metadata").name), attributes = {}, info = {
      manufacturer = text(product.manufacturer_name), model = text(product.model_id), firmware = text(product.software_version) } }
    for _, service in ipairs(rows(device, "services")) do owners[tostring(service.rid)] = id end
    report_unknown(ctx, rows(device, "services"))
  end
  for _, what in ipairs(PARTS) do
    for _, each in ipairs(sorted(get(ctx, what))) do
      local device = known[part(each, "owner").rid]
      if device then
        if what == "light" then
          device = add_lamp(device, lamps, each)
          device.kind, device.commands = "Light", commands_of(each)
          lights[device.id], owners[tostring(each.id)] = each.id, device.id
        end
        for name, value in pairs(attributes_of(each)) do device.attributes[name] = value end
        if not listed[device.id] then found[#found + 1], listed[device.id] = device, true end
      end
    end
  end
  for _, link in ipairs(get(ctx, "zigbee_connectivity")) do
    if UNREACHED[link.status] then
      local owner = part(link, "owner").rid
      local devices = lamps[owner] and lamps[owner].devices or { known[owner] }
      for _, device in ipairs(devices) do device.state = "unavailable" end
    end
  end
  ctx.memory.lights, ctx.memory.owners = lights, owners
  return found
end

-- An event is a list of messages. Each message is a list of changed parts of resources.
local function receive(ctx, event)
  local devices, events, asks = {}, {}, false
  for _, message in ipairs(rows(event, "data")) do
    asks = asks or message.type == "add" or message.type == "delete"
    for _, each in ipairs(rows(message, "data")) do
      local owner, attributes = part(ctx.memory, "owners")[each.id] or part(each, "owner").rid, attributes_of(each)
      local pressed = part(each, "button", "button_report").event or part(each, "button").last_event           -- older firmware has no report
      for what, flag in pairs(FLAGS) do asks = asks or part(each, what)[flag] == false end
      if each.type == "zigbee_connectivity" or each.enabled ~= nil then asks = true
      elseif owner and EVENTS[pressed] then
        events[#events + 1] = { id = owner, event = EVENTS[pressed], data = { button = each.id, raw = pressed } }
      elseif owner and next(attributes) then devices[#devices + 1] = { id = owner, attributes = attributes }
      end
    end
  end
  return { devices = devices, events = events, poll = asks }
end

local function command(ctx, device, asked)
  local value, goal = asked.value, nil
  if asked.capability == "power" then
    goal = { on = { on = asked.action == "on" } }
  elseif asked.capability == "brightness" then goal = { on = { on = value > 0 }, dimming = value > 0 and { brightness = value } or nil }
  elseif asked.capability == "color_xy" then goal = { color = { xy = value } }
  else goal = { color_temperature = { mirek = value.unit == "mireds" and value.value or round(1000000 / value.value) } }
  end
  if asked.transition_secs then goal.dynamics = { duration = math.floor(asked.transition_secs * 1000) } end
  local answer = ctx:http { method = "PUT", path = "/clip/v2/resource/light/" .. tostring(part(ctx.memory, "lights")[device.id]), json = goal }
  if answer.status >= 300 then                    -- with status 207, the result is unknown until the next poll
    local reason = text(part(answer.json, "errors", 1).description)
    return nil, "the bridge refuses: " .. (reason and reason:sub(1, 200) or "status " .. answer.status)
  end
end

local function pair(ctx)
  local answer = ctx:http { method = "POST", path = "/api", json = { devicetype = "lares#hub", generateclientkey = true } }
  local key = part(answer.json, 1, "success").username
  if type(key) ~= "string" then return nil, "press the button of the bridge, then repeat this within 30 seconds" end
  return 'headers = { hue-application-key = "' .. key .. '" }'
end

return {
  name = "Philips Hue bridge",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "https://192.168.1.20"' } },
  poll_interval_secs = 60,
  listen = { path = "/eventstream/clip/v2", kind = "sse", receive = receive },
  poll = poll,
  command = command,
  operations = { pair = { timeout_secs = 30, run = pair } },
}
