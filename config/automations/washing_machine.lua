-- Sends a message when the washing machine is done: after it ran, it has drawn next to nothing for three minutes.
--
-- It needs a plug that measures power. That it runs is kept in a variable, which a restart of the hub does not end.
--
-- Yours to change: PLUGS, the ids of your plugs, and the two powers; `[notify] targets`, where the message goes.
-- Then reload, and switch it on. It works when `lares why washing_machine` says `ran`; where nothing happens, that command says why.

local triggers = require("triggers")

local PLUGS = {} -- such as { "mqtt:washing_machine" }
local RUNS_WATTS, RESTS_WATTS = 10, 4

---@type Automation
return {
  id = "washing_machine",
  name = "Washing machine",
  description = "Sends a message when the washing machine is done.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = triggers.of(PLUGS, {
    { id = "runs", type = "device_state_change", attribute = "power_consumption", above = RUNS_WATTS },
    { id = "rests", type = "device_state_change", attribute = "power_consumption", below = RESTS_WATTS, duration_secs = 180 },
  }),
  mode = "queued",
  execute = function(ctx, event)
    if event.trigger_id == "runs" then
      ctx:set("washing_machine.runs", true, { durable = true })
    elseif event.trigger_id == "rests" and ctx:get("washing_machine.runs") then
      ctx:set("washing_machine.runs", nil, { durable = true })
      ctx:notify("the washing machine is done", { title = "Washing" })
    end
  end,
}
