-- Heating schedule: sets the temperature of a room in the morning and at night.

local climate = require("climate")

--- @field room room: the room
local room = "living_room"
--- @field day_time time: when the day begins
local day_time = "06:30"
--- @field day_temperature number 5..30 °C: the temperature by day
local day_temperature = 21
--- @field night_time time: when the night begins
local night_time = "22:30"
--- @field night_temperature number 5..30 °C: the temperature at night
local night_temperature = 17
--- @rule day_time ~= night_time: otherwise, both temperatures would be set at the same time

---@type Automation
return {
  id = "heating_schedule",
  name = "Heating schedule",
  description = "Sets the temperature of a room in the morning and at night.",
  triggers = {
    { id = "day", type = "wall_clock", time = day_time },
    { id = "night", type = "wall_clock", time = night_time },
  },
  mode = "queued",
  execute = function(ctx, event)
    local temperature = event.trigger_id == "day" and day_temperature or night_temperature
    local has_thermostat = false
    for _, device in ipairs(ctx:list_room_devices(room)) do
      if device.attributes.target_temperature then
        has_thermostat = true
        if not climate.set(ctx, device.id, temperature) then
          ctx:log("warn", "the heating did not follow", { device = device.id })
        end
      end
    end
    if not has_thermostat then
      ctx:log("warn", "the room has no thermostat", { room = room })
    end
  end,
}
