-- While a window is open, the heating rests; when all are closed, it goes on as before, also after a restart of the hub.
--
-- Yours to change: WINDOWS and HEATING, the ids of your sensors and radiators.
-- Then reload, and switch it on. It works when `lares why window_heating` says `ran`; where nothing happens, that command says why.

local climate = require("climate")
local triggers = require("triggers")

local WINDOWS = {} -- such as { "mqtt:kitchen_window", "mqtt:kitchen_door" }
local HEATING = {} -- such as { "mqtt:kitchen_radiator" }

-- Whether one of them is open; of one that is not there nothing is known, and it counts as closed.
local function is_one_open(ctx)
  for _, id in ipairs(WINDOWS) do
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
  description = "The heating rests while a window is open for more than half a minute.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = triggers.of(WINDOWS, {
    { type = "device_state_change", attribute = "contact", equals = "open", duration_secs = 30 },
    { type = "device_state_change", attribute = "contact", equals = "closed" },
  }),
  mode = "queued",
  execute = function(ctx)
    local set = is_one_open(ctx) and climate.pause or climate.resume
    for _, id in ipairs(HEATING) do
      if not set(ctx, id) then
        ctx:log("warn", "the heating does not obey", { device = id })
      end
    end
  end,
}
