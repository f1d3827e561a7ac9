-- Presence: who is at home, as the devices tell that have the attribute presence.
--
-- A phone that has not been heard of may be at home as well as not: of one that is not online nothing is concluded.

local presence = {}

-- The ids of those that tell they are at home.
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

-- Whether somebody certainly is at home.
---@param ctx Context
---@return boolean
function presence.home(ctx)
  return #presence.who(ctx) > 0
end

-- Whether certainly nobody is: there are devices that tell, all are online, and each says so. Not the opposite of `home`.
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
