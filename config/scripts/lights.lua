-- Lights: finding them, switching, dimming and fading them, and leaving alone what somebody has switched by hand.
--
-- A file in this folder is a module: it returns a table of functions, and a scene or automation gets that table with
-- `local lights = require("lights")`. A module has no ctx of its own; its caller hands it one.
--
-- `which` is the id of a light, a list of ids, or a list of devices. What does not exist is passed over, and a light
-- that has no brightness or colour temperature is not asked for one. Nothing here raises because a light does not obey.

local offers = require("offers")

local lights = {}

local MAX_STEPS = 60

-- The devices as they are now.
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

-- The lights of a group that are there at present; where there is no such group, all lights of the home.
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

-- Whether the light is there and on now. What a device showed when it was found may have changed since.
---@param ctx Context
---@param id string
---@return boolean
function lights.is_on(ctx, id)
  local device = ctx:get_device(id)
  return device ~= nil and device.attributes.state == "online" and device.attributes.power == "on"
end

-- Switch them on, with this brightness (percent) and colour temperature (kelvin) if they are named; those that are on
-- are not switched again. Gives whether there was a light and all obeyed.
---@param ctx Context
---@param which string|string[]|Device[]
---@param options? LightOptions
---@return boolean
function lights.on(ctx, which, options)
  local wanted, found = options or {}, look_up(ctx, which)
  local has_obeyed = #found > 0
  for _, device in ipairs(found) do
    if wanted.brightness then
      has_obeyed = set_brightness(ctx, device, wanted.brightness) and has_obeyed
    end
    if wanted.kelvin then
      has_obeyed = set_kelvin(ctx, device, wanted.kelvin) and has_obeyed
    end
    if not lights.is_on(ctx, device.id) then
      has_obeyed = command(ctx, device, "power", "on") and has_obeyed
    end
  end
  return has_obeyed
end

-- Switch them off; those that are off are left as they are. Gives whether there was a light and all obeyed.
---@param ctx Context
---@param which string|string[]|Device[]
---@return boolean
function lights.off(ctx, which)
  local found = look_up(ctx, which)
  local has_obeyed = #found > 0
  for _, device in ipairs(found) do
    if device.attributes.power ~= "off" then
      has_obeyed = command(ctx, device, "power", "off") and has_obeyed
    end
  end
  return has_obeyed
end

-- Where one of them is on, switch all off, else all on.
---@param ctx Context
---@param which string|string[]|Device[]
---@param options? LightOptions For those that are switched on.
---@return boolean
function lights.toggle(ctx, which, options)
  for _, device in ipairs(look_up(ctx, which)) do
    if lights.is_on(ctx, device.id) then
      return lights.off(ctx, which)
    end
  end
  return lights.on(ctx, which, options)
end

-- The lights that are to be faded, each with the brightness that it starts from; what is off is switched on for it.
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

-- Bring those that are still on to their next brightness, and give them.
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

-- Bring them to another brightness within so many seconds; it returns when that is done. A light that is off is switched
-- on at its lowest first, and to 0 ends with switching off. Who switches a light off meanwhile wants it off: that light
-- is left alone, and the last one ends the fade.
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
