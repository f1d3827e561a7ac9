-- Evening light: switches lights on at a time of day.

local lights = require("lights")

--- @field group group: the lights
local group = "evening"
--- @field time time: when they go on
local time = "18:00"
--- @field days choice every day|weekdays|weekend: on which days
local days = "weekdays"
--- @field brightness number 1..100 %: the brightness
local brightness = 33

local WEEKDAYS = {
  ["every day"] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" },
  weekdays = { "mon", "tue", "wed", "thu", "fri" },
  weekend = { "sat", "sun" },
}

---@type Automation
return {
  id = "evening_light",
  name = "Evening light",
  description = "Switches the lights of a group on at a time of day.",
  trigger = { type = "wall_clock", time = time, weekdays = WEEKDAYS[days] },
  execute = function(ctx)
    lights.on(ctx, ctx:list_group_devices(group), { brightness = brightness, kelvin = 2900 })
  end,
}
