-- Good night: switches all lights off. The lights of a group stay on dimly and go out later.
--
-- Make the group on the page, under Settings, Rooms and groups.
-- If nothing happens, run `lares why good_night`.

--- @field group group: the night lights
local group = "night"
--- @field minutes number 1..120 minutes: how long the night lights stay on
local minutes = 15

-- The ids of the group's devices as a set: { ["elgato_lights:light:0"] = true }.
local function members_of(found)
  local is_member = {}
  for _, id in ipairs(found and found.members or {}) do
    is_member[id] = true
  end
  return is_member
end

---@type Scene
return {
  id = "good_night",
  name = "Good night",
  description = "Switches all lights off; the night lights go out later.",
  mode = "restart",
  execute = function(ctx)
    local found = ctx:get_group(group)
    local stays = members_of(found)
    for _, device in ipairs(ctx:list_devices()) do
      if device.kind == "Light" and device.attributes.power == "on" and not stays[device.id] then
        ctx:command(device.id, { capability = "power", action = "off" })
      end
    end
    if not found then
      ctx:log("info", "good night: the group of night lights is missing", { group = group })
      return
    end
    ctx:command_group(group, { capability = "power", action = "on" })
    ctx:command_group(group, { capability = "brightness", action = "set", value = 5 })
    ctx:sleep(minutes * 60)
    ctx:command_group(group, { capability = "power", action = "off" })
  end,
}
