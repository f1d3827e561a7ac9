-- Wake up: the bedroom brightens over a quarter of an hour.
--
-- Its lights are those of the group "bedroom"; without that group, all lights of the home.
--
-- Yours to change: MINUTES, BRIGHTEST and the group.
-- It works when the answer says `ok` and lists what each lamp did; where nothing happens, `lares why wake_up` says why.

local lights = require("lights")

local MINUTES = 15
local STEPS = 30
local BRIGHTEST = 80

---@type Scene
return {
  id = "wake_up",
  name = "Wake up",
  description = "The lights of the group bedroom brighten over a quarter of an hour.",
  mode = "single",
  execute = function(ctx)
    local found = lights.find(ctx, "bedroom")
    if #found == 0 then
      ctx:log("info", "wake up: there is no light to wake up by")
      return
    end
    -- Who switches a light off is awake, or wants to sleep on: `fade` leaves that light alone.
    lights.fade(ctx, found, { to = BRIGHTEST, secs = MINUTES * 60, steps = STEPS, kelvin = 2900 })
  end,
}
