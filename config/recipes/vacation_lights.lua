-- Vacation lights: during a vacation, lights go on in the evening and off at night, each day at another minute.
--
-- A vacation begins when the variable `vacation` is true: set it on the page, under Automations, Variables.
--- @variable vacation: true during a vacation

local lights = require("lights")

--- @field group group: the lights
local group = "vacation"
--- @field from time: when the lights go on
local from = "18:30"
--- @field to time: when they go off
local to = "22:30"
--- @rule from ~= to: otherwise, the evening would have no duration
--- @field brightness number 1..100 %: the brightness
local brightness = 70

local SPREAD_MINS = 20

-- Minutes from 0 to SPREAD_MINS, a different number each day.
local function shift()
  return os.date("*t").yday * 8 % (SPREAD_MINS + 1)
end

---@type Automation
return {
  id = "vacation_lights",
  name = "Vacation lights",
  description = "While the variable vacation is true, lights go on in the evening and off at night.",
  triggers = {
    { id = "evening", type = "wall_clock", time = from },
    { id = "night", type = "wall_clock", time = to },
    { id = "on", type = "timer", name = "vacation_lights.on" },
    { id = "off", type = "timer", name = "vacation_lights.off" },
  },
  conditions = { { type = "variable", name = "vacation", equals = true } },
  mode = "queued",
  execute = function(ctx, event)
    if event.trigger_id == "evening" then
      ctx:start_timer("vacation_lights.on", shift() * 60)
    elseif event.trigger_id == "night" then
      ctx:start_timer("vacation_lights.off", shift() * 60)
    elseif event.trigger_id == "on" then
      lights.on(ctx, ctx:list_group_devices(group), { brightness = brightness })
    else
      lights.off(ctx, ctx:list_group_devices(group))
    end
  end,
}
