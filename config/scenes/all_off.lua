-- Lights off: every light of the home that is on is switched off. Sockets, a washing machine behind one, and the TV stay on.
--
-- A file in this folder is a scene: it returns a table with an id, a name and what to do. Run it with
--
--     curl -X POST -H "Authorization: Bearer $KEY" http://127.0.0.1:3000/scenes/all_off/execute
--
-- After a change, `lares check` says whether the file is sound, and POST /scenes/reload puts it in force.
--
-- It works when the answer says `ok` and lists what each lamp did; where nothing happens, `lares why all_off` says why.

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
