-- On weekday evenings the lights of the group "evening" are switched on, at a third of their brightness.
--
-- A file in this folder is an automation: it returns a table that says what it waits for and what it does then. This one
-- does nothing until there is such a group, which is made with
--
--     curl -H "Authorization: Bearer $KEY" http://127.0.0.1:3000/groups \
--       -d '{"id": "evening", "name": "Evening", "members": ["elgato_lights:light:0"]}'
--
-- Once `locale.latitude` and `locale.longitude` are set, let the sun say when the evening begins:
--
--     trigger = { type = "sunset", offset_mins = -15, weekdays = WEEKDAYS },
--
-- `lares simulate --from 2026-12-24T00:00` tells when it would fire that day.
--
-- Yours to change: GROUP, WEEKDAYS and the time.
-- Then reload, and switch it on. It works when `lares why evening_light` says `ran`; where nothing happens, that command says why.

local lights = require("lights")

local GROUP = "evening"
local WEEKDAYS = { "mon", "tue", "wed", "thu", "fri" }

---@type Automation
return {
  id = "evening_light",
  name = "Evening light",
  description = "Switches the lights of the group evening on at 18:00 on weekdays.",
  enabled = false, -- off until you switch it on, on the page or as docs/lua.md tells; fill in the names above first
  trigger = { type = "wall_clock", time = "18:00", weekdays = WEEKDAYS },
  execute = function(ctx)
    if ctx:get_group(GROUP) then
      lights.on(ctx, lights.find(ctx, GROUP), { brightness = 33, kelvin = 2900 })
    end
  end,
}
