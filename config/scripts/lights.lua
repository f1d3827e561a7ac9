-- Lights: finding them, setting them, and leaving alone what somebody has switched by hand.
--
-- A file in this folder is a module: it returns a table of functions, and a scene or automation gets that table with
-- `local lights = require("lights")`. A module has no ctx of its own; it is handed the one of whoever calls it.

local lights = {}

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

-- Whether the light is on now. What a device showed when it was found may have changed since.
---@param ctx Context
---@param id string
function lights.is_on(ctx, id)
  local device = ctx:get_device(id)
  return device ~= nil and device.attributes.power == "on"
end

-- Set the brightness, in percent, and where a light can show it the warmth, in kelvin. It does not switch anything on.
---@param ctx Context
---@param found Device[]
---@param brightness Percentage
---@param kelvin? integer
function lights.set(ctx, found, brightness, kelvin)
  for _, light in ipairs(found) do
    if light.attributes.brightness then
      ctx:command(light.id, { capability = "brightness", action = "set", value = brightness })
    end
    if kelvin and light.attributes.color_temperature then
      local warmth = { value = kelvin, unit = "kelvin" }
      ctx:command(light.id, { capability = "color_temperature", action = "set", value = warmth })
    end
  end
end

-- Switch them on or off; those that are so already are left as they are.
---@param ctx Context
---@param found Device[]
---@param action "on"|"off"
function lights.switch(ctx, found, action)
  for _, light in ipairs(found) do
    if lights.is_on(ctx, light.id) ~= (action == "on") then
      ctx:command(light.id, { capability = "power", action = action })
    end
  end
end

return lights
