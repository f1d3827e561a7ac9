-- Presence: the devices with the attribute presence that are at home.
--
-- A phone that is offline is neither at home nor away.

local presence = {}

-- Return the ids of the devices at home.
---@param ctx Context
---@return string[]
function presence.who(ctx)
  local found = {}
  for _, device in ipairs(ctx:list_devices()) do
    if device.attributes.presence == true and device.attributes.state == "online" then
      found[#found + 1] = device.id
    end
  end
  return found
end

-- Return whether a device is certainly at home.
---@param ctx Context
---@return boolean
function presence.home(ctx)
  return #presence.who(ctx) > 0
end

-- Return whether the home is certainly empty: at least one device has `presence`, and all of these are online and
-- away. If a phone is offline, the result is false.
---@param ctx Context
---@return boolean
function presence.nobody(ctx)
  local count = 0
  for _, device in ipairs(ctx:list_devices()) do
    local is_home = device.attributes.presence
    if is_home ~= nil then
      if is_home or device.attributes.state ~= "online" then
        return false
      end
      count = count + 1
    end
  end
  return count > 0
end

return presence
