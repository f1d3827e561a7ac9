-- Wake up: brightens the lights of a group slowly. If the group is missing, it brightens all lights.
--
-- If nothing happens, run `lares why wake_up`.

local lights = require("lights")

--- @field group group: the lights
local group = "bedroom"
--- @field minutes number 1..120 minutes: how long they brighten
local minutes = 15
--- @field brightness number 1..100 %: the brightness at the end
local brightness = 80

local STEPS = 30

---@type Scene
return {
  id = "wake_up",
  name = "Wake up",
  description = "Brightens the lights of a group slowly.",
  mode = "single",
  execute = function(ctx)
    local found = lights.find(ctx, group)
    if #found == 0 then
      ctx:log("info", "wake up: the group has no light that is online", { group = group })
      return
    end
    -- A light that you switch off meanwhile stays off.
    lights.fade(ctx, found, { to = brightness, secs = minutes * 60, steps = STEPS, kelvin = 2900 })
  end,
}
