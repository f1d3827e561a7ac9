-- Wake up: the bedroom grows bright in a quarter of an hour.
--
-- Its lights are those of the group "bedroom"; without that group, all lights of the home.

local fade = require("fade")
local lights = require("lights")

local MINUTES = 15
local STEPS = 30
local BRIGHTEST = 80

---@type Scene
return {
  id = "wake_up",
  name = "Wake up",
  description = "The lights of the group bedroom grow bright in a quarter of an hour.",
  mode = "single",
  execute = function(ctx)
    local found = lights.find(ctx, "bedroom")
    if #found == 0 then
      ctx:log("info", "wake up: there is no light to wake up by")
      return
    end
    lights.set(ctx, found, 1, 2900)
    lights.switch(ctx, found, "on")

    -- Who switches a light off is awake, or wants to sleep on: that light is left alone, and the last one ends it.
    fade.run(ctx, MINUTES * 60, fade.levels(1, BRIGHTEST, STEPS), function(level)
      local still_on = {}
      for _, light in ipairs(found) do
        if lights.is_on(ctx, light.id) then
          still_on[#still_on + 1] = light
        end
      end
      found = still_on
      lights.set(ctx, found, level)
      return #found > 0
    end)
  end,
}
