-- Movie night: the lights turn low and warm, and the TV goes on.
--
-- Yours to change: TV, the id of yours; brightness and warmth.
-- It works when the answer says `ok` and lists what each lamp did; where nothing happens, `lares why movie_night` says why.

local lights = require("lights")

local TV = "roku_tv:tv"

---@type Scene
return {
  id = "movie_night",
  name = "Movie night",
  description = "Lights turn low and warm, and the TV goes on.",
  mode = "single",
  execute = function(ctx)
    local found = lights.find(ctx)
    lights.on(ctx, found, { brightness = 10, kelvin = 2900 })

    -- get_device gives nil where there is no such device, so look before you use what it gave.
    local tv = ctx:get_device(TV)
    if not tv then
      ctx:log("info", "movie night: there is no TV", { device = TV })
    elseif tv.attributes.power ~= "on" then
      local done = ctx:command(TV, { capability = "power", action = "on" })
      if done.status ~= "ok" then
        ctx:log("warn", "movie night: the TV stays off", { why = done.message })
      end
    end
  end,
}
