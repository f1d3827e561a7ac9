-- Dawn and dusk: switches lights on around sunset, and off around sunrise.
--
-- It needs `locale.latitude` and `locale.longitude` in the configuration.

local lights = require("lights")

--- @field group group: the lights
local group = "outside"
--- @field after_sunset number -120..120 minutes: when they go on; a negative number is before sunset
local after_sunset = -15
--- @field after_sunrise number -120..120 minutes: when they go off; a negative number is before sunrise
local after_sunrise = 15
--- @field brightness number 1..100 %: the brightness
local brightness = 50

---@type Automation
return {
  id = "dawn_and_dusk_lights",
  name = "Dawn and dusk lights",
  description = "Switches the lights of a group on around sunset, and off around sunrise.",
  triggers = {
    { id = "dusk", type = "sunset", offset_mins = after_sunset },
    { id = "dawn", type = "sunrise", offset_mins = after_sunrise },
  },
  mode = "queued",
  execute = function(ctx, event)
    local found = ctx:list_group_devices(group)
    if event.trigger_id == "dusk" then
      lights.on(ctx, found, { brightness = brightness })
    else
      lights.off(ctx, found)
    end
  end,
}
