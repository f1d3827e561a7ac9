-- Good night: all lights go off, but for those of the group "night", which show the way and go out later.
--
-- A group is made with
--
--     curl -H "Authorization: Bearer $KEY" http://127.0.0.1:3000/groups \
--       -d '{"id": "night", "name": "Night lights", "members": ["elgato_lights:light:0"]}'
--
-- Yours to change: GROUP and MINUTES.
-- It works when the answer says `ok` and lists what each lamp did; where nothing happens, `lares why good_night` says why.

local GROUP = "night"
local MINUTES = 15

-- The ids of the group's devices as a set: { ["elgato_lights:light:0"] = true }.
local function members_of(group)
  local is_member = {}
  for _, id in ipairs(group and group.members or {}) do
    is_member[id] = true
  end
  return is_member
end

---@type Scene
return {
  id = "good_night",
  name = "Good night",
  description = "All lights go off; the lights of the group night go out a quarter of an hour later.",
  mode = "restart",
  execute = function(ctx)
    local group = ctx:get_group(GROUP)
    local stays = members_of(group)
    for _, device in ipairs(ctx:list_devices()) do
      if device.kind == "Light" and device.attributes.power == "on" and not stays[device.id] then
        ctx:command(device.id, { capability = "power", action = "off" })
      end
    end
    if not group then
      ctx:log("info", "good night: there is no group of night lights", { group = GROUP })
      return
    end
    ctx:command_group(GROUP, { capability = "power", action = "on" })
    ctx:command_group(GROUP, { capability = "brightness", action = "set", value = 5 })
    ctx:sleep(MINUTES * 60)
    ctx:command_group(GROUP, { capability = "power", action = "off" })
  end,
}
