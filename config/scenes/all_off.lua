-- Lights off: switches off every light that is on. Plugs and the TV stay on.
--
-- A file in this folder is a scene: it returns a table with an id, a name, and a function. Run it with
--
--     curl -X POST -H "Authorization: Bearer $KEY" http://127.0.0.1:3000/scenes/all_off/execute
--
-- After a change, run `lares check`, then reload the scenes on the page or with `lares reload`.
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
