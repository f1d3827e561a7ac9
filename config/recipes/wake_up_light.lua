-- Wake-up light: brightens lights slowly in the morning.
--
-- A light that you switch off meanwhile stays off. If the home is certainly empty, nothing happens.

local lights = require("lights")
local presence = require("presence")

--- @field group group: the lights
local group = "bedroom"
--- @field time time: when they start to brighten
local time = "06:30"
--- @field days choice every day|weekdays|weekend: on which days
local days = "weekdays"
--- @field duration duration: how long they brighten
local duration = 1200
--- @field brightness number 1..100 %: the brightness at the end
local brightness = 80

local WEEKDAYS = {
  ["every day"] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" },
  weekdays = { "mon", "tue", "wed", "thu", "fri" },
  weekend = { "sat", "sun" },
}

---@type Automation
return {
  id = "wake_up_light",
  name = "Wake-up light",
  description = "Brightens the lights of a group slowly in the morning, unless nobody is at home.",
  trigger = { type = "wall_clock", time = time, weekdays = WEEKDAYS[days] },
  mode = "single",
  execute = function(ctx)
    if not presence.nobody(ctx) then
      local found = ctx:list_group_devices(group)
      lights.fade(ctx, found, { to = brightness, secs = duration, steps = 20, kelvin = 2900 })
    end
  end,
}
