-- Movie night: dims the lights to a warm white, and switches the TV on.
--
-- If nothing happens, run `lares why movie_night`.

local lights = require("lights")

--- @field tv device power: the TV
local tv = "roku_tv:tv"
--- @field brightness number 1..100 %: the brightness of the lights
local brightness = 10

---@type Scene
return {
  id = "movie_night",
  name = "Movie night",
  description = "Dims the lights to a warm white, and switches the TV on.",
  mode = "single",
  execute = function(ctx)
    local found = lights.find(ctx)
    lights.on(ctx, found, { brightness = brightness, kelvin = 2900 })

    -- get_device returns nil for an unknown id, so test the result before you use it.
    local device = ctx:get_device(tv)
    if not device then
      ctx:log("info", "movie night: the TV is missing", { device = tv })
    elseif device.attributes.power ~= "on" then
      local done = ctx:command(tv, { capability = "power", action = "on" })
      if done.status ~= "ok" then
        ctx:log("warn", "movie night: the TV stays off", { why = done.message })
      end
    end
  end,
}
