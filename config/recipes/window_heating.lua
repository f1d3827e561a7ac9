-- Window open, heating off: pauses the heating while a window is open, and resumes it when all are closed.

local climate = require("climate")

--- @field windows device contact: the sensors of the windows
local windows = { "mqtt:zigbee2mqtt_0x00158d0002b3c4d5" }
--- @field heating device target_temperature|hvac_mode: the thermostats
local heating = { "mqtt:zigbee2mqtt_0x540f57fffe8a1b2c" }

-- Return whether a window is open. Treat an offline window as closed.
local function is_one_open(ctx)
  for _, id in ipairs(windows) do
    local window = ctx:get_device(id)
    if window and window.attributes.state == "online" and window.attributes.contact == "open" then
      return true
    end
  end
  return false
end

---@type Automation
return {
  id = "window_heating",
  name = "Window open, heating off",
  description = "Pauses the heating while a window is open for more than half a minute.",
  triggers = {
    { type = "device_state_change", device_id = windows, attribute = "contact", equals = "open", duration_secs = 30 },
    { type = "device_state_change", device_id = windows, attribute = "contact", equals = "closed" },
  },
  mode = "queued",
  execute = function(ctx)
    local set = is_one_open(ctx) and climate.pause or climate.resume
    for _, id in ipairs(heating) do
      if not set(ctx, id) then
        ctx:log("warn", "the heating did not follow", { device = id })
      end
    end
  end,
}
