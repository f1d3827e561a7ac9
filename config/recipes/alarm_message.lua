-- Alarm: sends a message when a sensor detects smoke or water.

--- @field smoke device smoke: the smoke detectors
local smoke = { "mqtt:zigbee2mqtt_0x00158d0001f2e3d4" }
--- @field leaks device water_leak: the leak sensors
local leaks = {}

local triggers = {}
if #smoke > 0 then
  triggers[1] = { id = "smoke", type = "device_state_change", device_id = smoke, attribute = "smoke", equals = true }
end
if #leaks > 0 then
  triggers[#triggers + 1] =
    { id = "leak", type = "device_state_change", device_id = leaks, attribute = "water_leak", equals = true }
end

---@type Automation
return {
  id = "alarm_message",
  name = "Smoke and leak alarm",
  description = "Sends a message when a sensor detects smoke or water.",
  triggers = triggers,
  mode = { type = "queued", max = 50 },
  execute = function(ctx, event)
    local device = ctx:get_device(event.device_id)
    local what = event.trigger_id == "smoke" and "Smoke" or "Water"
    local where = device and device.name or event.device_id
    ctx:notify(what .. " detected: " .. where, { title = "Alarm", priority = "urgent" })
  end,
}
