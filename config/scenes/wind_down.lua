-- Wind down: the lights that are on turn warm, grow dimmer for ten minutes, and go out.
--
-- A scene that sleeps holds up nothing else. Started again, this one begins again: its mode is "restart". Whoever
-- starts it over HTTP is answered when it has ended, but may hang up before: it keeps running.
--
-- Yours to change: MINUTES.
-- It works when the answer says `ok` and lists what each lamp did; where nothing happens, `lares why wind_down` says why.

local lights = require("lights")

local STEPS = 10
local MINUTES = 10

---@type Scene
return {
  id = "wind_down",
  name = "Wind down",
  description = "Lights that are on turn warm, dim for ten minutes, and go out.",
  mode = "restart",
  execute = function(ctx)
    local lit = {}
    for _, light in ipairs(lights.find(ctx)) do
      if light.attributes.power == "on" then
        lit[#lit + 1] = light
      end
    end
    if #lit == 0 then
      ctx:log("info", "wind down: no light is on")
      return
    end
    lights.fade(ctx, lit, { to = 0, secs = MINUTES * 60, steps = STEPS, kelvin = 2900 })
  end,
}
