-- Climate: set thermostats, and pause the heating while a window is open.

local offers = require("offers")

local climate = {}

local COLDEST_CELSIUS = 5

local function succeeds(ctx, id, capability, value)
  return ctx:command(id, { capability = capability, action = "set", value = value }).status == "ok"
end

-- The last part of the variable's name that keeps the state of a paused device: "climate." .. key.
local function key_of(id)
  return id:lower():gsub("[^a-z0-9_]", "_"):sub(1, 56)
end

-- Set the target temperature in the device's unit (degrees Celsius by default), within its range. Returns true if the
-- command succeeded.
---@param ctx Context
---@param id string
---@param temperature number
---@return boolean
function climate.set(ctx, id, temperature)
  local device = ctx:get_device(id)
  local spec = device and offers.find(device, "target_temperature", "set")
  if not device or not spec then
    return false
  end
  local shown = device.attributes.target_temperature
  local unit = spec.schema.unit or shown and shown.unit or "°C"
  local value = { value = offers.clamp(spec, temperature), unit = unit }
  return succeeds(ctx, id, "target_temperature", value)
end

-- Set the mode: "heat", "off". Returns true if the command succeeded, false for an unknown mode.
---@param ctx Context
---@param id string
---@param mode string
---@return boolean
function climate.mode(ctx, id, mode)
  local device = ctx:get_device(id)
  local spec = device and offers.find(device, "hvac_mode", "set")
  if not spec then
    return false
  end
  for _, each in ipairs(spec.schema.values) do
    if each == mode then
      return succeeds(ctx, id, "hvac_mode", mode)
    end
  end
  return false
end

-- Pause a device: switch the device off, or set its lowest temperature if it cannot be switched off. `pause` stores
-- the previous state across restarts. A paused device stays paused. Returns true if the device is paused now.
---@param ctx Context
---@param id string
---@return boolean
function climate.pause(ctx, id)
  local device, key = ctx:get_device(id), key_of(id)
  if not device or ctx:get("climate." .. key) then
    return device ~= nil
  end
  local mode, target = device.attributes.hvac_mode, device.attributes.target_temperature
  if mode == "off" then
    return true
  elseif mode and climate.mode(ctx, id, "off") then
    ctx:set("climate." .. key, { mode = mode }, { durable = true })
    return true
  elseif target and climate.set(ctx, id, COLDEST_CELSIUS) then
    ctx:set("climate." .. key, { target = target.value }, { durable = true })
    return true
  end
  return false
end

-- Restore the state before `pause`. Do nothing if the device is not paused. A failed command is repeated at the next
-- call.
---@param ctx Context
---@param id string
---@return boolean has_succeeded
function climate.resume(ctx, id)
  local key = key_of(id)
  local before = ctx:get("climate." .. key)
  if not before then
    return true
  end
  local has_succeeded = before.mode and climate.mode(ctx, id, before.mode)
    or before.target and climate.set(ctx, id, before.target)
    or false
  if has_succeeded then
    ctx:set("climate." .. key, nil, { durable = true })
  end
  return has_succeeded
end

return climate
