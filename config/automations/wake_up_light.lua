-- On weekday mornings the lights of the group "bedroom" brighten over twenty minutes.
--
-- Whoever switches one off meanwhile wants to sleep on, or is awake: it stays off. Without the group nothing happens.
--
-- Yours to change: GROUP, MINUTES and the time.
-- Then reload, and switch it on. It works when `lares why wake_up_light` says `ran`; where nothing happens, that command says why.

local lights = require("lights")
local presence = require("presence")

local GROUP = "bedroom"
local MINUTES = 20

---@type Automation
return {
  id = "wake_up_light",
  name = "Wake-up light",
  description = "The lights of the group bedroom brighten from 6:30 on weekdays, unless nobody is at home.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  trigger = { type = "wall_clock", time = "06:30", weekdays = { "mon", "tue", "wed", "thu", "fri" } },
  mode = "single",
  execute = function(ctx)
    if ctx:get_group(GROUP) and not presence.nobody(ctx) then
      lights.fade(ctx, lights.find(ctx, GROUP), { to = 80, secs = MINUTES * 60, steps = 20, kelvin = 2900 })
    end
  end,
}
