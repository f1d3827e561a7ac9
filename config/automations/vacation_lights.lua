-- During a vacation the lights of the group "vacation" go on in the evening and off at night, each day some minutes later
-- or earlier than the day before.
--
-- A vacation begins and ends with a variable, which the hub keeps over restarts:
--
--     curl -X PUT -H "Authorization: Bearer $KEY" http://127.0.0.1:3000/variables/vacation -d '{"value": true}'
--
-- Yours to change: GROUP and the two times.
-- Then reload, and switch it on. It works when `lares why vacation_lights` says `ran`; where nothing happens, that command says why.

local lights = require("lights")

local GROUP = "vacation"
local SPREAD_MINS = 20

-- Minutes from 0 to SPREAD_MINS, another number each day.
local function shift()
  return os.date("*t").yday * 8 % (SPREAD_MINS + 1)
end

---@type Automation
return {
  id = "vacation_lights",
  name = "Vacation lights",
  description = "While the variable vacation is true, lights go on from 18:30 and off from 22:30.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = {
    { id = "evening", type = "wall_clock", time = "18:30" },
    { id = "night", type = "wall_clock", time = "22:30" },
    { id = "on", type = "timer", name = "vacation.on" },
    { id = "off", type = "timer", name = "vacation.off" },
  },
  conditions = { { type = "variable", name = "vacation", equals = true } },
  mode = "queued",
  execute = function(ctx, event)
    if not ctx:get_group(GROUP) then
      return
    end
    if event.trigger_id == "evening" then
      ctx:start_timer("vacation.on", shift() * 60)
    elseif event.trigger_id == "night" then
      ctx:start_timer("vacation.off", shift() * 60)
    elseif event.trigger_id == "on" then
      lights.on(ctx, lights.find(ctx, GROUP), { brightness = 70 })
    elseif event.trigger_id == "off" then
      lights.off(ctx, lights.find(ctx, GROUP))
    end
  end,
}
