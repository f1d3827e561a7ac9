-- Lights: find, switch, dim, and fade lights.
--
-- A file in this folder is a module: it returns a table of functions, and a scene or automation gets that table with
-- `local lights = require("lights")`. A module has no ctx; its caller passes one.
--
-- `which` is the id of a light, a list of ids, or a list of devices. Unknown ids are skipped, and a light without
-- brightness or colour temperature does not receive such a command. A failed command raises no error.

local offers = require("offers")

local lights = {}

local MAX_STEPS = 60

-- The present state of the devices.
local function look_up(ctx, which)
  local found = {}
  for _, each in ipairs(type(which) == "string" and { which } or which) do
    found[#found + 1] = ctx:get_device(type(each) == "table" and each.id or each)
  end
  return found
end

local function command(ctx, device, capability, action, value)
  return ctx:command(device.id, { capability = capability, action = action, value = value }).status == "ok"
end

local function set_brightness(ctx, device, level)
  local spec = offers.find(device, "brightness", "set")
  return not spec or command(ctx, device, "brightness", "set", offers.clamp(spec, level))
end

local function set_kelvin(ctx, device, kelvin)
  local spec = offers.find(device, "color_temperature", "set")
  if not spec then
    return true
  end
  local unit = spec.schema.unit or "kelvin"
  local wanted = unit == "mireds" and 1000000 // kelvin or kelvin
  local value = math.floor(offers.clamp(spec, wanted))
  return command(ctx, device, "color_temperature", "set", { value = value, unit = unit })
end

-- Return the online lights of a group, or of the home if the group is missing.
---@param ctx Context
---@param group_id? string
---@return Device[]
function lights.find(ctx, group_id)
  local has_group = group_id and ctx:get_group(group_id)
  local found = {}
  for _, device in ipairs(has_group and ctx:list_group_devices(group_id) or ctx:list_devices()) do
    if device.kind == "Light" and device.attributes.state == "online" then
      found[#found + 1] = device
    end
  end
  return found
end

-- Return whether the light is online and on.
---@param ctx Context
---@param id string
---@return boolean
function lights.is_on(ctx, id)
  local device = ctx:get_device(id)
  return device ~= nil and device.attributes.state == "online" and device.attributes.power == "on"
end

-- Switch them on, with this brightness (percent) and colour temperature (kelvin) if given; lights that are on get no
-- power command. Returns true if there was a light and every command succeeded.
---@param ctx Context
---@param which string|string[]|Device[]
---@param options? LightOptions
---@return boolean
function lights.on(ctx, which, options)
  local wanted, found = options or {}, look_up(ctx, which)
  local has_succeeded = #found > 0
  for _, device in ipairs(found) do
    if wanted.brightness then
      has_succeeded = set_brightness(ctx, device, wanted.brightness) and has_succeeded
    end
    if wanted.kelvin then
      has_succeeded = set_kelvin(ctx, device, wanted.kelvin) and has_succeeded
    end
    if not lights.is_on(ctx, device.id) then
      has_succeeded = command(ctx, device, "power", "on") and has_succeeded
    end
  end
  return has_succeeded
end

-- Switch the lights off. Returns true if there was a light and every command succeeded.
---@param ctx Context
---@param which string|string[]|Device[]
---@return boolean
function lights.off(ctx, which)
  local found = look_up(ctx, which)
  local has_succeeded = #found > 0
  for _, device in ipairs(found) do
    if device.attributes.power ~= "off" then
      has_succeeded = command(ctx, device, "power", "off") and has_succeeded
    end
  end
  return has_succeeded
end

-- If one of the lights is on, switch all lights off. Otherwise, switch all lights on.
---@param ctx Context
---@param which string|string[]|Device[]
---@param options? LightOptions For switching on.
---@return boolean
function lights.toggle(ctx, which, options)
  for _, device in ipairs(look_up(ctx, which)) do
    if lights.is_on(ctx, device.id) then
      return lights.off(ctx, which)
    end
  end
  return lights.on(ctx, which, options)
end

-- Return the lights to fade with their first brightness. Switch on the lights that are off.
local function begin_fade(ctx, which, options)
  local fading = {}
  for _, device in ipairs(look_up(ctx, which)) do
    local is_on = lights.is_on(ctx, device.id)
    if options.to > 0 and not is_on then
      lights.on(ctx, device.id, { brightness = 1, kelvin = options.kelvin })
    elseif is_on and options.kelvin then
      set_kelvin(ctx, device, options.kelvin)
    end
    if is_on or options.to > 0 then
      local from = is_on and device.attributes.brightness or 1
      fading[#fading + 1] = { device = device, from = from, level = from }
    end
  end
  return fading
end

-- Set the next brightness of the lights that are still on, and return them.
local function step_fade(ctx, fading, to, step, steps)
  local still_on = {}
  for _, each in ipairs(fading) do
    if lights.is_on(ctx, each.device.id) then
      still_on[#still_on + 1] = each
      local level = math.max(1, each.from + (to - each.from) * step // steps)
      if to == 0 and step == steps then
        lights.off(ctx, each.device.id)
      elseif level ~= each.level then
        each.level = level
        set_brightness(ctx, each.device, level)
      end
    end
  end
  return still_on
end

-- Fade the lights to another brightness, and return after the given seconds. A light that is off begins at its lowest
-- brightness. A fade to 0 switches the lights off. A light that you switch off meanwhile stays off. The fade ends if no
-- light is left.
---@param ctx Context
---@param which string|string[]|Device[]
---@param options FadeOptions
function lights.fade(ctx, which, options)
  local steps = options.steps or math.max(1, math.min(MAX_STEPS, math.floor(options.secs)))
  local fading = begin_fade(ctx, which, options)
  for step = 1, steps do
    if #fading == 0 then
      return
    end
    ctx:sleep(options.secs / steps)
    fading = step_fade(ctx, fading, options.to, step, steps)
  end
end

return lights
