-- Everything off: switches lights, plugs, and players off, except those that you name.

--- @field except device power: the devices that stay as they are
local except = {}

---@type Scene
return {
  id = "everything_off",
  name = "Everything off",
  description = "Switches everything off, except the devices that you name.",
  mode = "single",
  execute = function(ctx)
    local stays = {}
    for _, id in ipairs(except) do
      local device = ctx:get_device(id)
      stays[device and device.id or id] = true
    end
    for _, device in ipairs(ctx:list_devices()) do
      if device.attributes.power == "on" and not stays[device.id] then
        ctx:command(device.id, { capability = "power", action = "off" })
      end
    end
  end,
}
