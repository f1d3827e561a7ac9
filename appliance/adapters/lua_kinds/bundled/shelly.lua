-- Shelly devices of every generation, over their local HTTP interface. Devices of the second generation and later push
-- changes and presses over a WebSocket.
--
--   [adapters.kitchen]
--   type = "shelly"
--   base_url = "http://192.168.1.50"
--
-- For a device with a password, add `password = "…"` and, from the second generation, `auth = "digest"`. Presses of
-- first-generation buttons (i3, Button1) are found by polls. To get a press at once, create a key with role hook for this
-- section, and enter http://<hub>:3000/hooks/kitchen?token=<key> as the action URL of each press.

local REASONS = { [401] = 'the device asks for a password; set password, and from the second generation on also auth = "digest"' }
local ON, CONTACTS, MOTIONS = { [true] = "on", [false] = "off" }, { open = "open", close = "closed" }, { [true] = "detected", [false] = "clear" }
local MOVE = { capability = "cover_position", actions = { "open", "close", "stop" } }
local TILT = { capability = "cover_tilt", actions = { "open", "close", "set" } }
local SWITCH = { capability = "power", actions = { "on", "off", "toggle" } }
local VIRTUAL = { boolean = "Boolean", number = "Number", text = "Text", enum = "Enum", button = "Button" }          -- components that people add
local RPC = { switch = "Switch", light = "Light", cover = "Cover", cct = "CCT", rgb = "RGB", rgbw = "RGBW", rgbcct = "RGBCCT" }
local INPUTS = { [0] = false, [1] = true }
local DETACHED = { detached = true, action = true }
local METERS = { pm1 = true, em = true, em1 = true }
local PRESSES = {
  single_push = "single", double_push = "double", triple_push = "triple", long_push = "long",
  S = "single", SS = "double", SSS = "triple", L = "long", SL = "single_long", LS = "long_single",
}
-- Parts that are read together with another part, or that have no useful values.
local SILENT = {
  emdata = true, em1data = true, pm1data = true, script = true, blutrv = true, blutrv_rstatus = true, blutrv_rinfo = true,
  bthomedevice = true, bthomesensor = true, bthomecontrol = true, presencezone = true, boolean = true, number = true, text = true, enum = true,
  button = true, group = true,
}
local SYSTEM = {           -- these tables are of the first generation
  wifi_sta = true, wifi_sta1 = true, wifi_ap = true, cloud = true, mqtt = true, actions_stats = true, update = true, relays = true, meters = true,
  emeters = true, lights = true, rollers = true, inputs = true, tmp = true, hum = true, lux = true, bat = true, sensor = true, accel = true,
  thermostats = true, concentration = true, gas_sensor = true, ext_sensors = true, ext_temperature = true, ext_humidity = true, act_reasons = true, adcs = true,
}

-- Log the name of each unknown part, once per name.
local function report_unknown(ctx, unknown)
  local reported = ctx.memory.reported or {}
  for _, name in ipairs(unknown) do
    if not reported[name] then
      ctx:log("warn", "the Shelly has a part that this kind does not know: " .. name)
      reported[name] = true
    end
  end
  ctx.memory.reported = reported
end

local function add(found, id, kind, class, commands, attributes)
  found[#found + 1] = { id = id, kind = kind, class = class, commands = commands, attributes = attributes }
  return found[#found]
end

-- A cover that is not calibrated has no position, and can only open, close, and stop.
local function add_cover(found, id, position, attributes)
  attributes.cover_position = position
  add(found, id, "Switch", "cover", { position and "cover_position" or MOVE, attributes.cover_tilt and TILT }, attributes)
end

local function color(red, green, blue)
  if math.tointeger(red) and math.tointeger(green) and math.tointeger(blue) then return { r = red, g = green, b = blue } end
end

local function white(low, high)
  return { capability = "color_temperature", actions = { "set" }, min = low, max = high, unit = "kelvin" }
end

-- Add power and energy of a part. `parts` is the number of counted units per kilowatt-hour.
local function electricity(on, watts, volts, amperes, counted, parts)
  return { power = ON[on], power_consumption = measure(watts, "W"), voltage = measure(volts, "V"), current = measure(amperes, "A"),
    energy_total = measure(counted, "kWh", "total", parts) }
end

local function target(low, high, step)
  return { capability = "target_temperature", actions = { "set" }, min = low, max = high, step = step, unit = "°C" }
end

-- Return the attributes of a radiator valve. An open valve is heating.
local function valve_of(target, present, position, battery)
  position = tonumber(position)
  return { target_temperature = measure(target, "°C"), temperature = measure(present, "°C"), battery = battery,
    hvac_state = position and (position > 0 and "heating" or "idle"), ["custom.shelly.valve"] = position }
end

-- Read the sensors of a device and its add-on. The first sensor of each kind is part of the device `sensor`, even while
-- its value is unknown, so that no other sensor takes its place. Each further sensor is a separate device. A further
-- sensor without an id is omitted.
local function add_sensor(found, sensor, id, name, value)
  if not sensor.has_sensor[name] then
    sensor.is_present, sensor.has_sensor[name], sensor.attributes[name] = true, true, value
  elseif id then add(found, id, "Sensor", nil, nil, { [name] = value })
  end
end

---------------------------------------------------------------- first generation

-- A press raises the counter of its input. The first poll only reads the counters. If the Shelly has outputs, an
-- input becomes a device only if the input is detached, or has counted a press.
local function add_inputs(ctx, found, inputs)
  local counts, now, has_outputs = ctx.memory.counts, {}, #found > 0
  for number, input in ipairs(inputs) do
    local id = "input:" .. number - 1
    local count = math.tointeger(input.event_cnt)
    if count and (not has_outputs or count > 0 or counts and counts[id] or DETACHED[part(ctx.memory.config, "switch:" .. number - 1).mode]) then
      local device = add(found, id, "Sensor", "button", nil, { ["custom.shelly.input"] = INPUTS[input.input] })
      local before = counts and (counts[id] or 0)
      if before and count ~= before and count > 0 and text(input.event) then         -- a restart of the device resets the counter
        device.events = { { event = PRESSES[input.event] or input.event, data = { raw = input.event } } }
      end
    end
    if #found > 0 and found[#found].id == id then now[id] = count end
  end
  ctx.memory.counts = now
end

local function add_light(ctx, found, number, light)
  local is_color, id = light.mode == "color", "light:" .. number - 1
  ctx.memory.modes = ctx.memory.modes or {}
  ctx.memory.modes[id] = light.mode ~= nil
  local low = light.temp and tonumber(light.temp) and 2700
  local bright = is_color and light.gain or light.brightness or light.gain
  local commands = { "power", "brightness" }
  if low then commands[#commands + 1] = white(low, 6500) end
  if light.red then commands[#commands + 1] = "color_rgb" end
  add(found, id, "Light", nil, commands, { power = ON[light.ison], brightness = bright,
    color_temperature = not is_color and low and measure(light.temp, "kelvin") or nil,
    color_rgb = is_color and color(light.red, light.green, light.blue) or nil,
    color_mode = is_color and "rgb" or low and "color_temp" or nil })
end

-- Return the measurement of a part. Return nil if the part marks the measurement as invalid. A sensor that does not
-- respond has the value 999, so also return nil for 999.
local MISSING, INVALID = 999, { [false] = true, ["false"] = true }
local function valid(part_of, value)
  if not INVALID[part_of.is_valid] and part(value).value ~= MISSING then return value end
end

-- Return the charge of a battery. Return nil for -1, because -1 means external power.
local function charge(status)
  local percent = round(part(status, "bat").value)
  return percent and percent >= 0 and percent or nil
end

-- Return the position of a calibrated roller. Return nil for -1 and 101, because both mean unknown.
local function position_of(roller)
  local position = roller.positioning and math.tointeger(roller.current_pos)
  return position and position >= 0 and position <= 100 and position or nil
end

-- Return the illuminance. Return nil for -1, because -1 means unknown.
local function lux_of(status)
  local lux = part(status, "lux")
  return valid(lux, type(lux.value) == "number" and lux.value >= 0 and lux.value or nil)
end

-- Return whether gas is present. A sensor that tests itself, warms up, or is faulty does not know that there is no gas.
-- An alarm has to be a boolean, so that its first value can fire a trigger.
local GAS = { none = false, mild = true, heavy = true }
local function gas_of(gas)
  local detected = GAS[gas.alarm_state]
  if detected == false and text(gas.sensor_state, "normal") ~= "normal" then return nil end
  return detected
end

local function first_generation(ctx, _, sensor)
  local status, found, unknown = ctx:fetch("/status", "mac", REASONS), {}, {}
  local relays, meters, parts_of_kwh = rows(status, "relays"), rows(status, "meters"), 60000         -- the counter is in watt-minutes
  if status.emeters then meters, parts_of_kwh = rows(status, "emeters"), 1000 end
  for number = 1, math.max(#relays, status.emeters and #meters or 0) do
    local relay, meter = relays[number], part(meters, number)
    meter = valid(meter, meter) or {}
    local attributes = electricity(part(relays, number).ison, meter.power, meter.voltage, meter.current, meter.total, parts_of_kwh)
    if relay then add(found, "switch:" .. number - 1, "Switch", "plug", { "power" }, attributes)
    else add(found, "meter:" .. number - 1, "Sensor", "meter", nil, attributes)
    end
  end
  for number, light in ipairs(rows(status, "lights")) do add_light(ctx, found, number, light) end
  for number, roller in ipairs(rows(status, "rollers")) do
    add_cover(found, "cover:" .. number - 1, position_of(roller), { power_consumption = measure(roller.power, "W") })
  end
  for number, each in ipairs(rows(status, "thermostats")) do
    add(found, "thermostat:" .. number - 1, "Switch", "climate", { target(4, 31, 0.5) },
      valve_of(part(each, "target_t").value, part(each, "tmp").value, each.pos, charge(status)))
  end
  add_inputs(ctx, found, rows(status, "inputs"))
  local own, fields = {}, part(status, "sensor")
  for number, each in parts(status, "ext_temperature") do
    add_sensor(found, sensor, "temperature:10" .. number, "temperature", valid(each, measure(each.tC, "°C")))
  end
  for number, each in parts(status, "ext_humidity") do
    add_sensor(found, sensor, "humidity:10" .. number, "humidity", valid(each, measure(each.hum, "%")))
  end
  local has_addon = sensor.is_present
  own.humidity, own.illuminance = valid(part(status, "hum"), measure(part(status, "hum").value, "%")), lux_of(status)
  if not status.thermostats then own.battery = charge(status) end
  local is_shown = #found == 0 or next(own) ~= nil                             -- otherwise, `tmp` contains the temperature of the chip
  if not has_addon and is_shown then own.temperature = valid(part(status, "tmp"), measure(part(status, "tmp").tC, "°C")) end
  own.water_leak, own.smoke, own.contact, own.motion = status.flood, status.smoke, valid(fields, CONTACTS[fields.state]), valid(fields, MOTIONS[fields.motion])
  own["custom.shelly.gas"] = valid(part(status, "concentration"), measure(part(status, "concentration").ppm, "ppm"))
  own["custom.shelly.gas_alarm"], own["custom.shelly.gas_detected"] = part(status, "gas_sensor").alarm_state, gas_of(part(status, "gas_sensor"))
  sensor.class = status.gas_sensor and "gas"
  if is_shown or has_addon then
    for name, value in pairs(own) do add_sensor(found, sensor, nil, name, value) end
  end
  if #found == 0 and (status.bat or status.tmp or status.concentration) then sensor.is_present = true end          -- all values can be invalid
  for name in parts(status) do
    if type(status[name]) == "table" and not SYSTEM[name] then unknown[#unknown + 1] = name end
  end
  report_unknown(ctx, unknown)
  return found
end

-- Return the names of channels by id. If the device does not answer, return an empty table; channels then have
-- numbers instead of names.
local function read_settings(ctx)
  local fields = ctx:http { path = "/settings" }
  local names = {}
  for list, id in pairs { relays = "switch", lights = "light", rollers = "cover", inputs = "input", emeters = "meter" } do
    for number, each in ipairs(part(fields.json, list)) do 
      names[id .. ":" .. number - 1] = { name = text(part(each).name), mode = text(part(each).btn_type) }
    end
  end
  return fields.status == 200 and names or {}
end

---------------------------------------------------------------- second generation

-- Return the mode of a thermostat. The thermostat's type decides between heating and cooling.
local function thermostat_of(fields, kind)
  local mode, moves = "heat", "heating"
  if kind == "cooling" then mode, moves = "cool", "cooling" end
  return { target_temperature = measure(fields.target_C, "°C"), temperature = measure(fields.current_C, "°C"),
    hvac_mode = ({ [true] = mode, [false] = "off" })[fields.enable], hvac_state = ({ [true] = moves, [false] = "idle" })[fields.output] }
end

local WHITE = "custom.shelly.white"          -- the white channel next to the colours

-- Return the attributes of a part, from a whole answer or from a pushed part.
local function attributes_of(what, fields, counted, kind)
  if what == "thermostat" then return thermostat_of(fields, kind) end
  local watts, total = fields.apower or fields.act_power or fields.total_act_power, part(fields, "aenergy").total
  local attributes = electricity(fields.output, watts, fields.voltage, fields.current or fields.total_current,
    total or counted.total_act_energy or counted.total_act, 1000)
  if what == "cover" then attributes.power, attributes.cover_position, attributes.cover_tilt = nil, fields.current_pos, fields.slat_pos
  elseif what ~= "switch" and RPC[what] then
    local rgb = part(fields, "rgb")
    attributes.brightness, attributes.color_rgb, attributes.color_temperature = fields.brightness, color(rgb[1], rgb[2], rgb[3]), measure(fields.ct, "kelvin")
    attributes[WHITE] = fields.white
    if fields.mode == "rgb" then attributes.color_mode, attributes.color_temperature = "rgb", nil        -- the mode decides which colour is active
    elseif fields.mode == "cct" then attributes.color_mode, attributes.color_rgb = "color_temp", nil
    elseif what == "rgb" and fields.rgb then attributes.color_mode = "rgb"
    elseif what == "cct" and fields.ct then attributes.color_mode = "color_temp"
    end
  elseif what == "temperature" then attributes.temperature = measure(fields.tC, "°C")
  elseif what == "humidity" then attributes.humidity = measure(fields.rh, "%")
  elseif what == "illuminance" then attributes.illuminance = fields.lux
  elseif what == "smoke" then attributes.smoke = fields.alarm
  elseif what == "flood" then attributes.water_leak = fields.alarm
  elseif what == "devicepower" then attributes.battery = part(fields, "battery").percent
  elseif what == "input" then
    attributes["custom.shelly.input"], attributes["custom.shelly.percent"] = fields.state, fields.percent
    attributes["custom.shelly.count"] = part(fields, "counts").total
  end
  return attributes
end

local CHIP = "temperature:0"           -- in a meter, this sensor is inside the case
local SENSORS = {          -- each part has one attribute
  temperature = "temperature", humidity = "humidity", illuminance = "illuminance", smoke = "smoke", flood = "water_leak", devicepower = "battery",
}

local function commands_of(what, config)
  local commands = { SWITCH, "brightness" }
  local range = part(config, "ct_range")
  if what == "cct" or what == "rgbcct" then commands[#commands + 1] = white(tonumber(range[1]) or 2700, tonumber(range[2]) or 6500) end
  if what:find("rgb", 1, true) then commands[#commands + 1] = "color_rgb" end
  if what == "rgbw" then commands[#commands + 1] = { capability = WHITE, actions = { "set" }, type = "integer", min = 0, max = 255 } end
  return commands
end

local function second_generation(ctx, config, sensor)
  local status, found, inputs, unknown = ctx:fetch("/rpc/Shelly.GetStatus", "sys", REASONS), {}, {}, {}
  local owners, has_meter, has_virtual = {}, false, false
  for key in parts(status) do
    local what = key:match("^%w+")
    has_meter, has_virtual = has_meter or METERS[what], has_virtual or VIRTUAL[what] ~= nil
  end
  for key, fields in parts(status) do                                         -- the first of two sensors is part of `sensor`
    local what = key:match("^([%a%d_]+):%d+$")
    local kind = part(config, key).type
    local attributes = what and attributes_of(what, fields, part(status, (key:gsub(":", "data:"))), kind)
    if what == "switch" then add(found, key, "Switch", "plug", { SWITCH }, attributes)
    elseif what == "cover" then add_cover(found, key, fields.current_pos, attributes)
    elseif what == "thermostat" then
      local modes = { capability = "hvac_mode", actions = { "set" }, values = { "off", kind == "cooling" and "cool" or "heat" } }
      add(found, key, "Switch", "climate", { target(5, 35, 0.5), modes }, attributes)
    elseif RPC[what] then add(found, key, "Light", nil, commands_of(what, config[key]), attributes)
    elseif METERS[what] or what == "voltmeter" then add(found, key, "Sensor", "meter", nil, attributes)
    elseif what == "input" then inputs[#inputs + 1] = { key = key, attributes = attributes }
    elseif SENSORS[what] and not (key == CHIP and has_meter) then
      local name = SENSORS[what]
      owners[key] = not sensor.has_sensor[name] and "sensor" or nil
      add_sensor(found, sensor, key, name, attributes[name])
    elseif what and not SILENT[what] then unknown[#unknown + 1] = key
    end
  end
  -- Buttons, detached inputs, and sensors are devices. An input that switches the output of its channel is not a device.
  local has_outputs = next(found) ~= nil
  for _, input in ipairs(inputs) do
    local kind, number = part(config, input.key).type, input.key:match("%d+$")
    local is_free = not has_outputs or tonumber(number) >= 100 or kind and kind ~= "switch"
      or part(config, "switch:" .. number).mode == "detached" or part(config, "light:" .. number).mode == "detached"
    if is_free then add(found, input.key, "Sensor", kind ~= "analog" and kind ~= "count" and "button" or nil, nil, input.attributes) end
  end
  ctx.memory.owners, ctx.memory.is_gateway = owners, has_virtual or status.bthome ~= nil or status.blugw ~= nil
  report_unknown(ctx, unknown)
  return found
end

-- Return names, types, and modes of channels by id. If the device does not answer, return an empty table; channels
-- then have numbers instead of names.
local function read_config(ctx)
  local answer, config = ctx:http { path = "/rpc/Shelly.GetConfig" }, {}
  for key, each in parts(answer.json) do
    config[key] = { name = text(each.name), type = text(each.type), mode = text(each.in_mode), ct_range = each.ct_range }
  end
  return answer.status == 200 and config or {}
end

-- Call a method. A busy Shelly can answer error 429 with status 200. The call is then repeated once, unless a second
-- execution would have a further effect.
local TOO_MANY, RELATIVE = 429, { Toggle = true, Trigger = true }
local function call(ctx, method, parameters, timeout_secs)
  local request = { method = "POST", path = "/rpc", timeout_secs = timeout_secs, json = { id = 1, method = method, params = parameters } }
  local answer = ctx:http(request)
  if part(answer.json, "error").code == TOO_MANY and not RELATIVE[method:match("%a+$")] then return ctx:http(request) end
  return answer
end

---------------------------------------------------------------- dynamic components

local COMPONENT_SECS, MAX_COMPONENTS = 60, 200
local OPEN, HELD = { [true] = "open", [false] = "closed" }, { [true] = "occupied", [false] = "unoccupied" }
local PLAIN = { [true] = true, [false] = false }
-- Attributes by BTHome object number. The second entry converts the value: a unit, a table of raw to reported values,
-- or `round`.
local OBJECTS = {
  [1] = { "battery" }, [2] = { "temperature", "°C" }, [69] = { "temperature", "°C" }, [87] = { "temperature", "°C" }, [88] = { "temperature", "°C" },
  [3] = { "humidity", "%" }, [46] = { "humidity", "%" }, [4] = { "pressure", "hPa" }, [5] = { "illuminance", round }, [18] = { "co2", "ppm" },
  [17] = { "contact", OPEN }, [26] = { "contact", OPEN }, [27] = { "contact", OPEN }, [45] = { "contact", OPEN }, [33] = { "motion", MOTIONS },
  [35] = { "occupancy", HELD }, [32] = { "water_leak", PLAIN }, [41] = { "smoke", PLAIN },
  [30] = { "custom.shelly.light" }, [63] = { "custom.shelly.rotation" }, [64] = { "custom.shelly.distance" },
}
local BUTTON = 58

-- Return the components in a group.
local function members_of(status)
  local members = {}
  for _, each in ipairs(part(status, "value")) do members[#members + 1] = text(each) end
  return members
end

-- Return the attributes of a component, from a whole answer or from a pushed part.
local function component_of(ctx, key, status)
  if key:find("^blutrv:") then return key, valve_of(status.target_C, status.current_C, status.pos, status.battery) end
  if key:find("^bthomedevice:") then return key, { battery = status.battery } end
  if key:find("^presencezone:") then return key, { occupancy = HELD[status.value], ["custom.shelly.people"] = status.num_objects } end
  if key:find("^group:") then return key, { ["custom.shelly.members"] = table.concat(members_of(status), ", ") } end
  if VIRTUAL[key:match("^%a+")] then return key, { ["custom.shelly.value"] = status.value } end
  local about, value = part(ctx.memory.objects, key), status.value
  local known = OBJECTS[about.object] or { "custom.shelly.object_" .. tostring(about.object) }
  local name, form = known[1], known[2]
  if about.number and about.number > 1 then name = "custom.shelly." .. name:gsub("^custom%.shelly%.", "") .. "_" .. about.number end
  if type(form) == "table" then value = form[value]
  elseif form == round then value = round(value)
  elseif form then value = measure(value, form)
  elseif type(value) ~= "number" and type(value) ~= "boolean" then value = nil
  end
  return about.device, { [name] = value }
end

-- Return the commands of a component, or nil for a sensor.
local function component_commands(key, config)
  local what, kind = key:match("^%a+"), { boolean = "boolean", number = "number", enum = "enum" }
  if what == "blutrv" then return { target(4, 30, 0.1) } end
  if what == "button" then return { { capability = "custom.shelly.button", actions = { "press" } } } end
  if VIRTUAL[what] then
    return { { capability = "custom.shelly.value", actions = { "set" }, type = kind[what] or "string", min = tonumber(config.min),
      max = tonumber(config.max), values = config.options, unit = text(part(config, "meta", "ui").unit) } }
  end
end

-- Return every dynamic component, page by page.
local function read_components(ctx)
  local found, count = {}, 0
  repeat
    local answer = call(ctx, "Shelly.GetComponents", { offset = count, dynamic_only = true, include = { "status", "config" } })
    local result = part(answer.json, "result")
    local page = rows(result, "components")
    for _, each in ipairs(page) do found[text(each.key, "")] = each end
    count = count + #page
  until #page == 0 or count >= (tonumber(result.total) or 0) or count >= MAX_COMPONENTS
  return found
end

-- Return the valves and sensors of a Bluetooth gateway, the zones of a presence sensor, and the virtual components.
-- If no reading is due, return only the ids of the devices, because the gateway pushes changes.
local function dynamic_devices(ctx)
  local now, memory = ctx:now(), ctx.memory
  if memory.read_at and (not next(memory.behind) or now < memory.read_at + COMPONENT_SECS and now > (memory.watched_until or 0)) then
    local known = {}
    for _, id in ipairs(memory.behind) do known[#known + 1] = { id = id } end
    return known
  end
  local components, devices, by_address, owned, objects = read_components(ctx), {}, {}, {}, {}
  for key, each in parts(components) do
    local trv = text(part(each, "config").trv)
    if trv then owned[trv] = true end
  end
  for key, each in parts(components) do
    local config, status = part(each, "config"), part(each, "status")
    local what = key:match("^%a+")
    if what == "blutrv" or what == "presencezone" or what == "group" or VIRTUAL[what] or what == "bthomedevice" and not owned[key] then
      local _, attributes = component_of(ctx, key, status)
      local commands = component_commands(key, config)
      local device = { id = key, name = text(config.name), kind = commands and "Switch" or "Sensor", class = ({ blutrv = "climate", button = "button" })[what],
        info = { manufacturer = "Shelly", serial = text(config.addr), firmware = text(status.fw_ver) },
        commands = commands, attributes = attributes, state = status.connected == false and "unavailable" or nil }
      devices[#devices + 1], by_address[text(config.addr, key)] = device, device
    end
  end
  for key, each in parts(components) do                                       -- a group is the parent of its members
    for _, member in ipairs(key:find("^group:") and members_of(part(each, "status")) or {}) do
      part(by_address, member, "info").parent_id = key
    end
  end
  memory.objects, memory.buttons = {}, {}
  for key, each in parts(components) do
    local config = part(each, "config")
    local device = key:find("^bthomesensor:") and by_address[text(config.addr, "")]
    if device and not device.commands then
      memory.objects[key] = { device = device.id, object = math.tointeger(config.obj_id), number = (math.tointeger(config.idx) or 0) + 1 }
      if config.obj_id == BUTTON then memory.buttons[device.id] = true
      else
        local _, attributes = component_of(ctx, key, part(each, "status"))
        for name, value in pairs(attributes) do device.attributes[name] = value end
      end
    end
  end
  memory.behind, memory.read_at = {}, now
  for _, each in ipairs(devices) do memory.behind[#memory.behind + 1] = each.id end
  return devices
end

---------------------------------------------------------------- both

-- Return the generation. GET /shelly needs no password, and is sent only once.
local function about(ctx)
  ctx.memory.about = ctx.memory.about or ctx:fetch("/shelly", "mac", REASONS)
  return ctx.memory.about, (tonumber(ctx.memory.about.gen) or 1) >= 2
end

local function poll(ctx)
  local whole, is_second = about(ctx)
  ctx.memory.config = ctx.memory.config or (is_second and read_config or read_settings)(ctx)
  local sensor = { is_present = false, has_sensor = {}, attributes = {} }
  local found = (is_second and second_generation or first_generation)(ctx, ctx.memory.config, sensor)
  if sensor.is_present then add(found, "sensor", "Sensor", sensor.class or nil, nil, sensor.attributes) end
  local model = text(whole.model, whole.type)
  local name = text(whole.name, model, "Shelly")
  local firmware = text(whole.ver) or (text(whole.fw) or ""):match("v[%d.]+")
  local mains, ids = 0, {}
  for _, each in ipairs(found) do mains = mains + (each.commands and 1 or 0) end
  for number, each in ipairs(found) do
    local is_only = #found == 1 or mains == 1 and each.commands
    local suffix = each.class == "button" and " input " .. math.tointeger(each.id:match("%d+$")) + 1 or " " .. number
    each.info = { manufacturer = "Shelly", model = model, firmware = firmware, serial = text(whole.mac) }
    each.name = text(part(ctx.memory.config, each.id).name, is_only and name or name .. suffix)
    ids[each.id] = true
  end
  for _, each in ipairs(ctx.memory.is_gateway and dynamic_devices(ctx) or {}) do
    found[#found + 1], ids[each.id] = each, true
  end
  ctx.memory.ids = ids
  return found
end

-- Return the query of a command for the first generation, or the method and its parameters for the second.
local function request_of(what, asked, has_modes)
  local action, value, fade = asked.action, asked.value, asked.transition_secs
  if what == "button" then return nil, "Button.Trigger", { event = "single_push" } end
  if VIRTUAL[what] then return nil, VIRTUAL[what] .. ".Set", { value = value } end
  if asked.capability == "cover_tilt" then
    return nil, "Cover.GoToPosition", { slat_pos = action == "set" and value or action == "open" and 100 or 0 }
  elseif what == "cover" then
    local go = ({ open = "Open", close = "Close", stop = "Stop", set = "GoToPosition" })[action]
    return { go = action == "set" and "to_pos" or action, roller_pos = value }, "Cover." .. go, { pos = value }
  end
  if action == "toggle" then return nil, RPC[what] .. ".Toggle", {} end
  local query, parameters = { transition = fade and math.floor(fade * 1000) }, { transition_duration = what ~= "switch" and fade or nil }
  if asked.capability == "color_rgb" then
    query.mode, query.red, query.green, query.blue = has_modes and "color" or nil, value.r, value.g, value.b
    parameters.mode, parameters.rgb = what == "rgbcct" and "rgb" or nil, { value.r, value.g, value.b }
  elseif asked.capability == WHITE then parameters.white = value
  elseif asked.capability == "color_temperature" then
    local kelvin = value.unit == "mireds" and round(1000000 / value.value) or value.value
    query.mode, query.temp = has_modes and "white" or nil, kelvin
    parameters.mode, parameters.ct = what == "rgbcct" and "cct" or nil, kelvin
  else
    local on = action == "on" or action == "set" and value > 0
    local bright = on and value or nil                          -- in colour mode, the first generation uses the field gain
    query.turn, query.brightness, query.gain = ON[on], bright, bright
    parameters.on, parameters.brightness = on, bright
  end
  return query, RPC[what] .. ".Set", parameters
end

-- Send a command to a thermostat or a valve. A valve of a gateway can answer late. If a valve answers late, the next
-- readings contain its state.
local function set_climate(ctx, device, what, number, asked)
  local mode, target, _, is_second = asked.capability == "hvac_mode" and asked.value, part(asked, "value").value, about(ctx)
  if not is_second then return ctx:http { path = "/thermostat/" .. number, query = { target_t_enabled = 1, target_t = target } } end
  local id = tonumber(number)
  if what == "thermostat" then
    local config = { id = id, target_C = target }
    if mode then config = { id = id, enable = mode ~= "off" } end
    return call(ctx, "Thermostat.SetConfig", { id = id, config = config })
  end
  ctx.memory.watched_until = ctx:now() + 10
  local came, answer = pcall(call, ctx, "BluTrv.Call", { id = id, method = "Trv.SetTarget", params = { id = 0, target_C = target } }, 2.5)
  return came and answer or { status = 200 }
end

local PATHS = { switch = "/relay/", light = "/light/", cover = "/roller/" }

local function refusal(answer)
  local reason = part(answer.json, "error").message or answer.status ~= 200 and "status " .. answer.status
  if reason then return nil, "the Shelly refuses: " .. tostring(reason) end
end

local function command(ctx, device, asked)
  local what, number = device.id:match("^(%a+):(%d+)$")
  if asked.capability == "target_temperature" or asked.capability == "hvac_mode" then
    return refusal(set_climate(ctx, device, what, number, asked))
  end
  local query, method, parameters = request_of(what, asked, part(ctx.memory, "modes")[device.id])
  local _, is_second = about(ctx)
  parameters.id = tonumber(number)
  if parameters.slat_pos then                        -- if the target were missing, the slats would end a movement of the cover
    parameters.pos = tonumber(part(ctx:http { path = "/rpc/Cover.GetStatus", query = { id = number } }.json).target_pos)
  elseif VIRTUAL[what] then ctx.memory.watched_until = ctx:now() + 10
  end
  return refusal(is_second and call(ctx, method, parameters) or ctx:http { path = PATHS[what] .. number, query = query })
end

---------------------------------------------------------------- pushes of the second generation

local GREETING = { id = 1, src = "lares", method = "Shelly.GetDeviceInfo" }

-- Answer the device's password request, which contains the realm and a nonce. The device asks once per connection.
local function login(ctx, fault)
  local asked = json.decode(tostring(fault.message)) or {}
  if not ctx.settings.password or ctx.memory.has_logged_in or type(asked) ~= "table" then return nil end
  ctx.memory.has_logged_in = true
  local realm, nonce, cnonce = tostring(asked.realm), tostring(asked.nonce), crypto.random(8)
  local count = tostring(asked.nc or 1)
  local secret = crypto.sha256("admin:" .. realm .. ":" .. ctx.settings.password)
  local response = crypto.sha256(table.concat({ secret, nonce, count, cnonce, "auth", crypto.sha256("dummy_method:dummy_uri") }, ":"))
  return { id = 2, src = "lares", method = GREETING.method, auth = {
    realm = realm, username = "admin", nonce = asked.nonce, cnonce = cnonce, response = response, algorithm = "SHA-256" } }
end

local function hello(ctx)
  ctx.memory.has_logged_in = nil
  return GREETING
end

-- Return the presses. The end of a long press is a release.
local function presses_of(ctx, happened)
  local events, held = {}, ctx.memory.held or {}
  for _, each in ipairs(happened) do
    local id, raw = text(each.component), text(each.event)
    local is_press = id and (id:find("^input:") or id:find("^button:"))
    if id and id:find("^bthomesensor:") then
      id = part(ctx.memory.objects, id).device
      is_press = id and part(ctx.memory.buttons)[id]
    elseif id and id:find("^bthomedevice:") then is_press = not part(ctx.memory.buttons)[id]
    end
    if raw and is_press then
      local name = PRESSES[raw] or raw == "btn_up" and held[id] and "release"
      held[id] = raw == "long_push" or nil
      if name then events[#events + 1] = { id = id, event = name, data = { raw = raw } } end
    end
  end
  ctx.memory.held = held
  return events
end

local CHANGES = { config_changed = true, component_added = true, component_removed = true }

local function receive(ctx, message)
  if part(message, "error").code == 401 then return { send = login(ctx, message.error) } end
  local fields = part(message, "params")
  if message.method == "NotifyEvent" then
    local changed = false
    for _, each in ipairs(rows(fields, "events")) do changed = changed or CHANGES[each.event] end
    if changed then ctx.memory.config, ctx.memory.read_at = nil, nil end
    return { events = presses_of(ctx, rows(fields, "events")), poll = changed == true }
  elseif message.method == "NotifyStatus" then
    local devices = {}
    for key, each in parts(fields) do
      local what = key:match("^([%a%d_]+):%d+$")
      local id, attributes
      if SILENT[what] then id, attributes = component_of(ctx, key, each)
      else
        attributes = what and attributes_of(what, each, {}, part(ctx.memory.config, key).type) or {}
        id = SENSORS[what] and part(ctx.memory.owners)[key] or key
      end
      if id and next(attributes) and part(ctx.memory, "ids")[id] then devices[#devices + 1] = { id = id, attributes = attributes } end
    end
    return { devices = devices }
  end
end

return {
  name = "Shelly",
  settings = { base_url = { type = "string", required = true, description = 'its address, like "http://192.168.1.50"' } },
  poll_interval_secs = 5,
  listen = {
    path = function(ctx)
      local _, is_second = about(ctx)
      return is_second and "/rpc" or nil
    end,
    hello = hello,
    receive = receive,
  },
  hook = function() return { poll = true } end,
  poll = poll,
  command = command,
}
