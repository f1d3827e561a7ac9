-- Lights off: switches off every light that is on. Plugs and the TV stay on.
--
-- A file in this folder is a scene: it returns a table with an id, a name, and a function. Tap its name on the page to run it.
-- The page's editor checks and loads a change at once. With an editor of your own, run `lares check` and `lares reload`.
-- If nothing happens, run `lares why all_off`.

local OFF = { capability = "power", action = "off" }

---@type Scene
return {
  id = "all_off",
  name = "All lights off",
  description = "Switches off every light that is on.",
  execute = function(ctx)
    for _, device in ipairs(ctx:list_devices()) do
      if device.kind == "Light" and device.attributes.power == "on" then
        ctx:command(device.id, OFF)
      end
    end
  end,
}
