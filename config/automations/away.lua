-- When everybody has left, all lights go out, and in the evening one light or another shows that somebody might be there.
--
-- Name the devices that show who is at home, and make a group "pretend" of the lights to be seen from outside. The
-- variable `away` tells other automations.
--
-- Yours to change: PEOPLE, the ids of the devices that show who is at home; GROUP and the hours.
-- Then reload, and switch it on. It works when `lares why away` says `ran`; where nothing happens, that command says why.

local lights = require("lights")
local presence = require("presence")
local schedule = require("schedule")
local triggers = require("triggers")

local PEOPLE = {} -- such as { "phones:ann", "phones:bob" }
local GROUP = "pretend"
local FROM, TO = "18:00", "23:00"
local STEP_MINS = 30

-- Another light of the group than before; all are off when the evening is over.
local function pretend(ctx)
  local found = lights.find(ctx, GROUP)
  lights.off(ctx, found)
  if #found > 0 and schedule.is_between(FROM, TO) then
    local number = os.time() // (STEP_MINS * 60) % #found + 1
    lights.on(ctx, found[number].id, { brightness = 60 })
    ctx:start_timer("away.pretend", STEP_MINS * 60)
  else
    ctx:start_timer("away.pretend", schedule.secs_until(FROM))
  end
end

---@type Automation
return {
  id = "away",
  name = "Away",
  description = "Everything goes off when nobody is at home; in the evening a light pretends that somebody is.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  triggers = triggers.of(PEOPLE, {
    { id = "left", type = "device_state_change", attribute = "presence", equals = false, duration_secs = 600 },
    { id = "came", type = "device_state_change", attribute = "presence", equals = true },
    { id = "next", type = "timer", name = "away.pretend" },
  }),
  mode = "queued",
  execute = function(ctx, event)
    local is_away, has_group = ctx:get("away", false), ctx:get_group(GROUP) ~= nil
    if event.trigger_id == "left" and not is_away and presence.nobody(ctx) then
      ctx:set("away", true, { durable = true })
      lights.off(ctx, lights.find(ctx))
      if has_group then
        ctx:start_timer("away.pretend", schedule.is_between(FROM, TO) and 60 or schedule.secs_until(FROM))
      end
    elseif event.trigger_id == "came" and is_away then
      ctx:set("away", false, { durable = true })
      ctx:cancel_timer("away.pretend")
      if has_group then
        lights.off(ctx, lights.find(ctx, GROUP))
      end
    elseif event.trigger_id == "next" and is_away and has_group then
      pretend(ctx)
    end
  end,
}
