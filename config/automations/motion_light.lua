-- Motion switches the lights on; when there was none for a while, they go off again, also after a restart of the hub.
--
-- Name your sensors, and the group of the lights. The hold time begins when the sensor tells that it is clear.
--
-- Yours to change: SENSORS, the ids of your sensors; GROUP, the lights; HOLD_SECS.
-- Then reload, and switch it on. It works when `lares why motion_light` says `ran`; where nothing happens, that command says why.

local lights = require("lights")
local triggers = require("triggers")

local SENSORS = {} -- such as { "mqtt:hall_motion" }
local GROUP = "hall"
local HOLD_SECS = 180
local MAX_SECS = 3600 -- for a sensor that falls silent after it saw somebody

---@type Automation
return {
  id = "motion_light",
  name = "Motion light",
  description = "Lights the group hall when somebody moves, and for three minutes more.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = triggers.of(SENSORS, {
    { id = "moves", type = "device_state_change", attribute = "motion", equals = "detected" },
    { id = "rests", type = "device_state_change", attribute = "motion", equals = "clear" },
    { id = "over", type = "timer", name = "motion_light" },
  }),
  mode = "queued",
  execute = function(ctx, event)
    if not ctx:get_group(GROUP) then
      return
    end
    if event.trigger_id == "moves" then
      ctx:start_timer("motion_light", MAX_SECS)
      lights.on(ctx, lights.find(ctx, GROUP), { brightness = 60 })
    elseif event.trigger_id == "rests" then
      ctx:start_timer("motion_light", HOLD_SECS)
    elseif event.trigger_id == "over" then
      lights.off(ctx, lights.find(ctx, GROUP))
    end
  end,
}
