-- Wind down: turns the lights that are on to a warm white, dims them slowly, and switches them off.
--
-- A scene that sleeps does not block others. This scene starts again if you run it again, because its mode is "restart".
-- Over HTTP, the answer comes when the scene has ended; it continues if you disconnect.
-- If nothing happens, run `lares why wind_down`.

local lights = require("lights")

--- @field minutes number 1..120 minutes: how long they dim
local minutes = 10

local STEPS = 10

---@type Scene
return {
  id = "wind_down",
  name = "Wind down",
  description = "Dims the lights that are on slowly, and switches them off.",
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
    lights.fade(ctx, lit, { to = 0, secs = minutes * 60, steps = STEPS, kelvin = 2900 })
  end,
}
