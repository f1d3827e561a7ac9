-- Motion light: switches lights on at motion, and off some time after the last motion.
--
-- The hold time starts when all sensors report clear. This time continues across restarts of the hub.

local lights = require("lights")

--- @field sensors device motion|occupancy: the motion sensors
local sensors = { "mqtt:zigbee2mqtt_0x00158d00045b2f1a" }
--- @field group group: the lights
local group = "hall"
--- @field brightness number 1..100 %: the brightness
local brightness = 60
--- @field hold duration: how long the lights stay on after the last motion
local hold = 180

local MAX_SECS = 3600 -- for a sensor that falls silent after it has reported motion

-- Return whether a sensor reports motion. Return nil if no sensor reports motion and a sensor is offline.
local function is_moving(ctx)
  local moves = false
  for _, id in ipairs(sensors) do
    local sensor = ctx:get_device(id)
    if not sensor or sensor.attributes.state ~= "online" then
      moves = nil
    elseif sensor.attributes.motion == "detected" or sensor.attributes.occupancy == "occupied" then
      return true
    end
  end
  return moves
end

---@type Automation
return {
  id = "motion_light",
  name = "Motion light",
  description = "Switches the lights of a group on at motion, and off some time later.",
  triggers = {
    { id = "change", type = "device_state_change", device_id = sensors },
    { id = "over", type = "timer", name = "motion_light" },
  },
  mode = "queued",
  execute = function(ctx, event)
    if event.trigger_id == "over" then
      lights.off(ctx, ctx:list_group_devices(group))
      return
    end
    local moves, moved = is_moving(ctx), ctx:get("motion_light.moves", false)
    if moves and not moved then
      ctx:set("motion_light.moves", true)
      ctx:start_timer("motion_light", MAX_SECS)
      lights.on(ctx, ctx:list_group_devices(group), { brightness = brightness })
    elseif moved and moves == false then
      ctx:set("motion_light.moves", false)
      ctx:start_timer("motion_light", hold)
    end
  end,
}
