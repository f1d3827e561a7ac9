-- Wind down: the lights that are on turn warm, grow dimmer for ten minutes, and go out.
--
-- A scene that sleeps holds up nothing else. Started again, this one begins anew: its mode is "restart". Who asks for
-- it over HTTP is answered when it has ended, and need not wait for that: it runs on.

local STEPS = 10
local MINUTES = 10
local WARM = { capability = "color_temperature", action = "set", value = { value = 2900, unit = "kelvin" } }

-- The lights that are on, each with its brightness.
local function lights_on(ctx)
  local found = {}
  for _, device in ipairs(ctx:list_devices()) do
    local is = device.attributes
    if device.kind == "Light" and is.power == "on" and is.brightness then
      found[#found + 1] = { id = device.id, brightness = is.brightness }
    end
  end
  return found
end

-- Whether it is still on: somebody may have switched it off by hand, and then it is left alone.
local function is_on(ctx, id)
  local device = ctx:get_device(id)
  return device and device.attributes.power == "on"
end

---@type Scene
return {
  id = "wind_down",
  name = "Wind down",
  description = "Lights that are on turn warm, grow dimmer for ten minutes, and go out.",
  mode = "restart",
  execute = function(ctx)
    local lights = lights_on(ctx)
    if #lights == 0 then
      ctx:log("info", "wind down: no light is on")
      return
    end
    for _, light in ipairs(lights) do
      ctx:command(light.id, WARM)
    end
    for left = STEPS - 1, 0, -1 do
      ctx:sleep(MINUTES * 60 / STEPS)
      for _, light in ipairs(lights) do
        if not is_on(ctx, light.id) then
          light.brightness = 0
        elseif left > 0 and light.brightness > 0 then
          local level = math.max(1, light.brightness * left // STEPS)
          ctx:command(light.id, { capability = "brightness", action = "set", value = level })
        elseif light.brightness > 0 then
          ctx:command(light.id, { capability = "power", action = "off" })
        end
      end
    end
  end,
}
