-- Washing machine: sends a message when it is done, because it has used almost no power for three minutes.
--
-- It needs a plug that measures power.

--- @field plugs device power_consumption: the plug of the washing machine
local plugs = { "mqtt:tasmota_d8bfc0aa11ef" }
--- @field runs_above number 1..3000 W: the power above which it runs
local runs_above = 10
--- @field rests_below number 0..3000 W: the power below which it rests
local rests_below = 4
--- @rule rests_below < runs_above: otherwise, the machine would run and rest at the same power

---@type Automation
return {
  id = "washing_machine",
  name = "Washing machine",
  description = "Sends a message when the washing machine is done.",
  triggers = {
    { id = "runs", type = "device_state_change", device_id = plugs, attribute = "power_consumption", above = runs_above },
    {
      id = "rests",
      type = "device_state_change",
      device_id = plugs,
      attribute = "power_consumption",
      below = rests_below,
      duration_secs = 180,
    },
  },
  mode = "queued",
  execute = function(ctx, event)
    if event.trigger_id == "runs" then
      ctx:set("washing_machine.runs", true, { durable = true })
    elseif ctx:get("washing_machine.runs") then
      ctx:set("washing_machine.runs", nil, { durable = true })
      ctx:notify("The washing machine is done", { title = "Washing" })
    end
  end,
}
