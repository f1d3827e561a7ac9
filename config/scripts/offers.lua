-- The commands that a device accepts: capabilities, their actions, and their ranges.

local offers = {}

-- Return the device's entry for this command, or nil if the device does not accept the command.
---@param device Device
---@param capability Capability
---@param action Action
---@return CommandSpec?
function offers.find(device, capability, action)
  for _, spec in ipairs(device.commands) do
    if spec.capability == capability then
      for _, each in ipairs(spec.actions) do
        if each == action then
          return spec
        end
      end
    end
  end
  return nil
end

-- Return the number, limited to the device's range.
---@param spec CommandSpec
---@param value number
---@return number
function offers.clamp(spec, value)
  local range = spec.schema
  local lowest, step = range.min or 0, range.step
  if step and step > 0 then
    value = lowest + math.floor((value - lowest) / step + 0.5) * step
  end
  return math.max(range.min or value, math.min(range.max or value, value))
end

return offers
